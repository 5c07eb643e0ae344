"""What has to hold whatever is done to a run: the judge of ``faults.py``. Each question is answered with sentences, one
for each thing that is wrong.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pyarrow.parquet as pq

from benchlib.cache import Measurement, Store
from benchlib.errors import BenchlibError

Row = tuple[str, int, str, str]
"""Of a process: group, repetition, role and condition. A training run's seed is in its group."""

GRACE_S = 20.0
"""In which processes may still end by themselves: a launcher waits for its group, a browser for its page."""

QUOTE = "The end of what it said:"
"""What follows are a worker's last words, which may hold anything."""

QUOTED_LINES = 60  # of them, at most

LEFT = ("benchlib-*", "tmp*.json", "kernel-*.json")
"""In the folder for temporary files: workers' and browsers' folders, and the files by which kernels are reached."""


class Kept:
    """What was once there has to stay as it was: the files of measurements, by hash as they were first seen."""

    def __init__(self, outputs: Path, *others: str) -> None:
        """``others`` are patterns of files beside the measurements that nothing may make a second time."""
        self._outputs, self._patterns = outputs, ("measurements/*.parquet", *others)
        self._hashes: dict[Path, str] = {}

    def look(self) -> None:
        """Take note of files that were not there before, but for training runs that failed: they are run again."""
        for path in self._files():
            if path not in self._hashes and not _crashed(path) and (digest := _digest(path)):
                self._hashes[path] = digest

    def wrong(self) -> list[str]:
        """What has been lost or changed."""
        now = {path: _digest(path) for path in self._hashes}
        lost = [f"lost: {path.name}" for path, digest in now.items() if digest is None]
        changed = [path for path, digest in now.items() if digest not in (None, self._hashes[path])]
        return lost + [f"changed, or measured twice: {path.name}" for path in changed]

    def _files(self) -> Iterable[Path]:
        return [path for pattern in self._patterns for path in sorted(self._outputs.glob(pattern))]


def results(outputs: Path, kept: Kept, expected: set[Row]) -> list[str]:
    """What does not hold of a folder of results, once a run without a fault has come to its end there."""
    measurements, damaged = rows(outputs)
    doubled, absent = twice(measurements), missing(expected, measured(measurements))
    return [*kept.wrong(), *damaged, *doubled, *absent, *unfinished(outputs)]


def rows(outputs: Path) -> tuple[list[Measurement], list[str]]:
    """The measurements of a folder of results, and which files are none."""
    try:
        return Store(outputs / "measurements").all(), []
    except BenchlibError as error:
        return [], [f"cannot be read: {line}" for line in str(error).splitlines()]


def measured(measurements: Iterable[Measurement]) -> set[Row]:
    """What went well."""
    return {_row(m) for m in measurements if m.ok}


def last(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Of each condition of a comparison, and of each training run, the last process."""
    in_order = sorted(measurements, key=lambda m: m.repetition)
    return list({(m.group, m.role, m.condition.key): m for m in in_order}.values())


def twice(measurements: Iterable[Measurement]) -> list[str]:
    """A process is measured once."""
    counts = Counter(map(_row, measurements))
    return [f"{number} times the same process: {row}" for row, number in counts.items() if number > 1]


def missing(expected: set[Row], present: set[Row]) -> list[str]:
    """A run that goes on after a fault measures as many processes as one without it, under the same keys. A process
    that failed is replaced by another repetition, and a planner may ask for more: they vary with the noise.
    """
    groups = {row[0] for row in expected}
    wanted, there = (Counter((group, *which) for group, _, *which in rows) for rows in (expected, present))
    foreign = sorted(row for row in present if row[0] not in groups)
    return [f"not measured in the end: {row}" for row in sorted(wanted - there)] + [
        f"another key: {row}" for row in foreign
    ]


def left_processes(place: Path, grace_s: float = GRACE_S) -> list[str]:
    """Processes that have to do with ``place`` (by working directory, command or environment) after a while."""
    end = time.monotonic() + grace_s
    while (left := _processes_of(place)) and time.monotonic() < end:
        time.sleep(0.1)
    return [f"still running: {process.pid} {' '.join(_read(process.cmdline) or [])[:120]}" for process in left]


def end_processes(place: Path) -> None:
    """Kill what still has to do with ``place``."""
    for process in _processes_of(place):
        with suppress(psutil.Error):
            process.kill()


def left_files(temporary: Path) -> list[str]:
    """What a run that has ended left among the temporary files."""
    left = sorted(path for pattern in LEFT for path in temporary.glob(pattern))
    return [f"left in the folder for temporary files: {path.name}" for path in left]


def age(temporary: Path, seconds: float = 3600.0) -> None:
    """Make what was left there as old as it would be when somebody starts the next run after a while."""
    then = time.time() - seconds
    for path in temporary.iterdir():
        os.utime(path, (then, then), follow_symlinks=False)


def unfinished(outputs: Path) -> list[str]:
    """Notebooks whose record does not say that they succeeded, and files that are in part."""
    records = {path: json.loads(path.read_text(encoding="utf-8")) for path in outputs.glob("notebooks/[a-z]*.json")}
    statuses = [f"{path.stem} is {one['status']}" for path, one in records.items() if one["status"] != "succeeded"]
    parts = [path for path in outputs.rglob("*") if ".partial" in path.name and "inputs" not in path.parts]
    return statuses + [f"in part: {path.relative_to(outputs)}" for path in parts]


def tracebacks(said: str) -> list[str]:
    """Python's own words in what a user sees, unless a worker said them."""
    lines = said.splitlines()
    for number, line in enumerate(lines):
        own = not any(QUOTE in before for before in lines[max(0, number - QUOTED_LINES) : number])
        if own and line.startswith(("Traceback (most recent call last)", "Exception ignored in", "Fatal Python error")):
            return [f"{line[:40]} ... {lines[-1][:200]}"]
    return []


def ended(code: int | None, allowed: Iterable[int]) -> list[str]:
    """None is one that did not end."""
    if code is None:
        return ["it hung"]
    return [] if code in allowed else [f"exit code {code} instead of {' or '.join(map(str, sorted(allowed)))}"]


def _row(m: Measurement) -> Row:
    return (m.group, m.repetition, m.role, m.condition.key)


def _crashed(path: Path) -> bool:
    """Does a file hold a training run that failed?"""
    if path.suffix != ".parquet":
        return False
    with suppress(FileNotFoundError):
        rows = pq.read_table(path, columns=["kind", "failure"]).to_pylist()
        return any(row["kind"] == "training" and row["failure"] for row in rows)
    return False


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def _processes_of(place: Path) -> list[psutil.Process]:
    """A process that ends while it is looked at is not there."""
    mark, left = str(place), []
    for process in psutil.process_iter():
        if process.pid == os.getpid() or _read(process.status) in (None, psutil.STATUS_ZOMBIE):
            continue
        command = _read(process.cmdline) or []
        if any(mark in part for part in (_read(process.cwd) or "", *command, *(_read(process.environ) or {}).values())):
            left.append(process)
    return left


def _read(question: Callable[[], Any]) -> Any:
    try:
        return question()
    except (psutil.Error, OSError):
        return None
