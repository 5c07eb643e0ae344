"""The name of a host in a folder of results: two live machines that have the same one are refused."""

from __future__ import annotations

import fcntl
import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from benchlib.errors import BenchlibError
from benchlib.provenance import machine

BOOT = Path("/proc/sys/kernel/random/boot_id")  # another one on every machine, and the same in its containers
TRIES = 40


@contextmanager
def hold_name(folder: Path) -> Iterator[None]:
    """Hold this host's name in a folder of results while it measures; refuse that of another live machine."""
    name = machine.describe()["host"]
    path = folder / "hosts" / f"{hashlib.sha256(name.encode()).hexdigest()[:16]}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    own = f"{name}, {machine.read(BOOT)}"
    with open(path, "a+", encoding="utf-8") as file:
        for _ in range(TRIES):
            if _lock(file, fcntl.LOCK_EX):
                file.truncate(0)
                file.write(own)
                file.flush()
            if shared := _lock(file, fcntl.LOCK_SH):
                break
            time.sleep(0.05)  # another process writes it
        file.seek(0)
        if not shared or file.read() != own:
            what = f"{path}: another machine that is at work there has the name {name!r}, too"
            raise BenchlibError(f"{what}: set {machine.HOST} to a name of its own on each of the two")
        yield


def _lock(file: TextIO, how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except OSError as error:
        if isinstance(error, BlockingIOError):
            return False
        why = f"cannot be locked ({error.strerror}), and that keeps hosts apart"
        raise BenchlibError(f"{file.name}: {why}: choose a file system with locks with --outputs") from None
    return True
