"""The name of a host in a folder of results: two live machines that have the same one are refused."""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from benchlib.errors import BenchlibError
from benchlib.provenance import machine

BOOT = Path("/proc/sys/kernel/random/boot_id")  # another one on every machine, and the same in its containers


@contextmanager
def hold_name(folder: Path) -> Iterator[None]:
    """Hold this host's name in a folder of results while it measures; refuse that of another live machine."""
    name = machine.describe()["host"]
    ours, boot = (hashlib.sha256(one.encode()).hexdigest()[:16] for one in (name, machine.read(BOOT)))
    own = folder / "hosts" / f"{ours}-{boot}.lock"
    own.parent.mkdir(parents=True, exist_ok=True)
    with open(own, "a+", encoding="utf-8") as held:  # a shared lock on NFS takes a file that can be read
        _lock(held, fcntl.LOCK_SH)  # the machine's other processes hold it, too
        for path in own.parent.glob(f"{ours}-*.lock"):
            with open(path, "a+", encoding="utf-8") as other:
                if path != own and not _lock(other, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    raise BenchlibError(f"{path}: another live machine is {name!r}, too: set {machine.HOST} on each")
        yield


def _lock(file: TextIO, how: int) -> bool:
    """Lock a file; False where somebody holds it."""
    try:
        fcntl.flock(file, how)
    except OSError as error:
        if isinstance(error, BlockingIOError):
            return False
        why = f"cannot be locked ({error.strerror}), and that keeps hosts apart"
        raise BenchlibError(f"{file.name}: {why}: choose a file system with locks with --outputs") from None
    return True
