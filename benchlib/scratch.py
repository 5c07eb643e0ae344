"""Folders of ours among the temporary files: each has an owner, a process, which holds a lock on a file in it. The
operating system lets go of the lock when the owner ends, however it ends: a folder whose lock can be had is nobody's,
and the next start of benchlib removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

KINDS = ("worker", "kernel", "chromium", "probe", "inspection")

OWNED = ".owned"
"""The file in each folder that its owner holds locked from the moment that it has this name."""

DYING_S = 2.0
"""For so long, processes of an owner that was killed may still write into what is being removed."""

_locks: dict[Path, int] = {}  # of the folders that are this process's


def make(kind: str) -> Path:
    """A new empty folder, this process's own; :func:`remove` it. An OSError where there is no room for it."""
    folder = Path(tempfile.mkdtemp(prefix=f"benchlib-{kind}-"))
    try:
        lock = os.open(folder / f"{OWNED}-soon", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        _locks[folder] = lock
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(folder / f"{OWNED}-soon", folder / OWNED)
    except BaseException:
        remove(folder)
        raise
    return folder


def remove(folder: Path) -> None:
    """Remove a folder that :func:`make` made, with all that is in it; once is enough."""
    shutil.rmtree(folder, ignore_errors=True)
    lock = _locks.pop(folder, None)
    if lock is not None:
        os.close(lock)


@contextmanager
def scratch(kind: str) -> Iterator[Path]:
    """A folder as :func:`make` makes it, for as long as this lasts."""
    folder = make(kind)
    try:
        yield folder
    finally:
        remove(folder)


def remove_own(kind: str) -> None:
    """Remove all folders of a kind that are this process's: whoever was to remove them has been interrupted."""
    for folder in list(_locks):
        if folder.name.startswith(f"benchlib-{kind}-"):
            remove(folder)


def remove_stale() -> None:
    """Remove the folders that are nobody's: their owners were killed."""
    here, end = Path(tempfile.gettempdir()), time.monotonic() + DYING_S
    stale = [folder for kind in KINDS for folder in here.glob(f"benchlib-{kind}-*") if _is_nobodys(folder)]
    while stale:
        for folder in stale:
            shutil.rmtree(folder, ignore_errors=True)
        stale = [folder for folder in stale if folder.exists() and time.monotonic() < end]
        if stale:
            time.sleep(0.1)


def _is_nobodys(folder: Path) -> bool:
    """Has the folder an owner no more? One that is just being made, or another user's, cannot be asked."""
    with contextlib.suppress(OSError), open(folder / OWNED, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
