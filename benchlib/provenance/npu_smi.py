"""Ascend NPUs as the table of ``npu-smi info`` shows them, and CANN, their toolkit. Written from output that others
recorded (it is in the tests); never run on Ascend.
"""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import time
from ctypes.util import find_library
from pathlib import Path
from typing import Any

from benchlib.progress import say

COMMAND = ("npu-smi", "info")
TIMEOUT_S = 10.0  # it takes a second or two
EVERY_S = 5.0  # so often is it asked while workers are timed

_CHIP = re.compile(
    r"""^\|\s*\d+\s+(?P<name>\S+)\s*\|[^|]*\|\s*(?P<power_w>\S+)\s+(?P<temperature_c>\S+).*\|\s*\n
         \|\s*\d+[^|]*\|[^|]*\|\s*(?P<percent>\S+)\s.*?(?P<memory_mib>\d+)\s*/\s*(?P<memory_total_mib>\d+)\s*\|\s*$""",
    re.MULTILINE | re.VERBOSE,
)
"""The two lines of a chip. Memory is that in use, of the last kind in the line: the HBM where there is one."""


@functools.cache
def npus() -> list[dict[str, Any]]:
    """The chips that workers may use, in the runtime's order; none where there is no npu-smi, or it cannot be read."""
    if shutil.which(COMMAND[0]) is None:
        return []
    try:
        text = subprocess.run(COMMAND, capture_output=True, text=True, timeout=TIMEOUT_S, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        text = str(error)
    if not _CHIP.search(text):
        say(f"npu-smi info: no chip can be read from it, so NPUs are not watched: {text.strip()[:200]!r}")
    return _visible(text)


class Chips:
    """The chips as they were a few seconds ago: npu-smi is started and not waited for."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._started, self._chips = 0.0, list[dict[str, Any]]()

    def read(self) -> list[dict[str, Any]]:
        """The chips (:func:`npus`); none until npu-smi has answered."""
        if self._process and self._process.poll() is not None:
            self._chips, self._process = _visible(self._process.communicate()[0]), None
        if not self._process and time.monotonic() > self._started + EVERY_S:
            self._process = subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self._started = time.monotonic()
        return self._chips


def _visible(text: str) -> list[dict[str, Any]]:
    """The chips in a table that ASCEND_RT_VISIBLE_DEVICES makes visible; None for a value that is not a number."""
    every = [match.groupdict() for match in _CHIP.finditer(text)]
    for chip in every:
        cells = [(what, cell) for what, cell in chip.items() if what != "name"]
        chip.update({what: float(cell) if re.fullmatch(r"[\d.]+", cell) else None for what, cell in cells})
    visible = os.environ.get("ASCEND_RT_VISIBLE_DEVICES")
    if visible is None:
        return every
    return [every[int(name)] for name in visible.split(",") if name.strip().isdigit() and int(name) < len(every)]


def cann() -> str:
    """The version of CANN; empty where none is set up."""
    file = Path(os.environ.get("ASCEND_TOOLKIT_HOME") or "/no/cann", "version.cfg")
    match = re.search(r"\[([\d.\w]+)(?::|\])", file.read_text(errors="replace")[:4000]) if file.is_file() else None
    return match[1] if match else ""


def why_missing() -> str | None:
    """The reason why workers may use no NPU, and the remedy; None where they may."""
    if not list(Path("/dev").glob("davinci[0-9]*")):
        return "no Ascend device (/dev/davinci*); with one, see environments/ascend.txt; else use 'cpu'"
    folders = os.environ.get("LD_LIBRARY_PATH", "").split(":")
    if any(Path(folder, "libhccl.so").exists() for folder in folders if folder) or find_library("hccl"):
        return None
    return "libhccl.so of CANN is not on LD_LIBRARY_PATH: source its set_env.sh (environments/ascend.txt), or use 'cpu'"
