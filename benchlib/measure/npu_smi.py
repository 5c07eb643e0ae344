"""What ``npu-smi`` says of Ascend NPUs: its table and its ``watch`` form, as numbers.

Names and columns differ from driver to driver: what is not known is left out, what is missing is None. What has another
form is a BenchlibError that shows it. Written from output that others recorded (it is in the tests); never run on
Ascend.
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from benchlib.errors import BenchlibError

PATIENCE_S = 10.0  # npu-smi takes a second or two

_GAPS = ("-", "NA", "N/A")


@dataclass(frozen=True)
class Npu:
    """A chip, as the table shows it. ``memory_mib`` is that of the HBM, or where there is none of the DDR."""

    npu: int
    chip: int
    name: str
    health: str
    power_w: float | None
    temperature_c: float | None
    percent: float | None  # of the AI cores
    memory_mib: float | None
    memory_total_mib: float | None


@dataclass(frozen=True)
class Usage:
    """What a chip is doing."""

    percent: float | None = None  # of the AI cores
    memory_percent: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None


@dataclass(frozen=True)
class Chips:
    """The chips that workers may use, in their order; ``trouble`` says why none could be found, where npu-smi is."""

    usable: tuple[Npu, ...] = ()
    trouble: str = ""


@functools.cache
def chips() -> Chips:
    """The chips of this machine that ASCEND_RT_VISIBLE_DEVICES lets workers see, as the runtime numbers them."""
    if shutil.which("npu-smi") is None:
        return Chips()
    try:
        ran = subprocess.run(["npu-smi", "info"], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
        every = parse_table(ran.stdout)
    except (OSError, subprocess.SubprocessError) as error:
        return Chips(trouble=f"npu-smi info failed: {error}")
    except BenchlibError as error:
        return Chips(trouble=str(error))
    visible = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    if visible is None:
        return Chips(tuple(every))
    numbers = [name.strip() for name in visible.split(",")]
    return Chips(tuple(every[int(name)] for name in numbers if name.isdigit() and int(name) < len(every)))


def npus() -> tuple[Npu, ...]:
    """The chips that workers may use; none where there is no npu-smi, or it fails (:func:`chips` says how)."""
    return chips().usable


def parse_table(text: str) -> list[Npu]:
    """The chips in the table of ``npu-smi info``: two lines each, under two lines of headings."""
    heads: list[list[str]] = []
    listed, first = [], None
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.lstrip().startswith("|") or len(cells) < 3 or not any(cells):
            continue
        if not cells[0]:
            raise _unreadable("npu-smi info", line)
        if cells[0].split()[0] in {"NPU", "Chip"}:
            if cells[1].lower().startswith("process"):
                break  # another table, of processes
            heads.append(cells)
        elif len(heads) < 2:
            raise _unreadable("npu-smi info", line)
        elif first is None:
            first = cells
        else:
            listed.append(_chip(heads, first, cells))
            first = None
    if not heads or first is not None:
        raise _unreadable("npu-smi info", text)
    return listed


def parse_watch(lines: Iterable[str]) -> Usage | None:
    """The last row that ``npu-smi info watch`` has printed under its headings; None as long as there is none."""
    heads: list[str] = []
    last = None
    for line in filter(str.strip, lines):
        if line.split()[0].lower().startswith("npuid"):
            heads = [re.sub(r"\W|_", "", head.lower()) for head in re.findall(r"[^()]+\([^)]*\)", line)]
            continue
        cells = line.split()
        if len(cells) != len(heads):
            raise _unreadable("npu-smi info watch", line)
        cells_by_head = dict(zip(heads, cells, strict=True))
        if not cells_by_head.keys() & {"aicore", "pwrw", "tempc", "memory"}:
            raise _unreadable("npu-smi info watch", line)
        last = Usage(
            percent=_first(cells_by_head, ("aicore",)),
            memory_percent=_first(cells_by_head, ("memory", "hbm")),
            power_w=_first(cells_by_head, ("pwrw", "powerw")),
            temperature_c=_first(cells_by_head, ("tempc",)),
        )
    return last


class Watched:
    """``npu-smi info watch`` of one chip beside this process: a row a second, read when asked for, without waiting."""

    def __init__(self, npu: int, chip: int) -> None:
        command = ["npu-smi", "info", "watch", "-i", str(npu), "-c", str(chip), "-d", "1", "-s", "ptaicmb"]
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        atexit.register(self._process.kill)
        os.set_blocking(self._process.stdout.fileno(), False)
        self._heading, self._begun = "", ""
        self._last: Usage | None = None

    def read(self) -> Usage | None:
        """The newest row; None until there is one."""
        text = self._begun + (self._process.stdout.read() or b"").decode(errors="replace")
        *lines, self._begun = text.split("\n")
        self._heading = next((line for line in reversed(lines) if "npuid" in line.lower()), self._heading)
        self._last = parse_watch([self._heading, *lines]) or self._last
        return self._last


def _chip(heads: list[list[str]], first: list[str], second: list[str]) -> Npu:
    upper, lower = (_columns(head[-1], cells[-1]) for head, cells in zip(heads[:2], (first, second), strict=True))
    try:
        npu, name = first[0].split(maxsplit=1)
        used, total = next(
            (pair for key in ("HBM-Usage(MB)", "Memory-Usage(MB)") if (pair := _pair(lower.get(key)))[1]), (None, None)
        )
        return Npu(
            npu=int(npu),
            chip=int(second[0].split()[0]),
            name=name,
            health=first[1],
            power_w=_number(upper.get("Power(W)")),
            temperature_c=_number(upper.get("Temp(C)")),
            percent=_number(lower.get("AICore(%)")),
            memory_mib=used,
            memory_total_mib=total,
        )
    except (ValueError, IndexError):
        raise _unreadable("npu-smi info", f"{first} {second}") from None


def _columns(head: str, cell: str) -> dict[str, str]:
    """Values by heading; ``a / b`` is one value."""
    names, values = head.split(), re.sub(r"\s*/\s*", "/", cell).split()
    if len(names) != len(values):
        raise _unreadable("npu-smi info", f"{head}: {cell}")
    return dict(zip(names, values, strict=True))


def _pair(text: str | None) -> tuple[float | None, float | None]:
    used, _, total = (text or "").partition("/")
    return _number(used or None), _number(total or None)


def _first(cells: dict[str, str], names: tuple[str, ...]) -> float | None:
    return next((_number(cells[name]) for name in names if name in cells), None)


def _number(text: str | None) -> float | None:
    return None if text is None or text.upper() in _GAPS else float(text)


def _unreadable(command: str, text: str) -> BenchlibError:
    return BenchlibError(
        f"{command}: its output has a form that is not known: {text.strip()[:200]!r}: the NPU is not watched; please "
        "report it, with the driver's version"
    )
