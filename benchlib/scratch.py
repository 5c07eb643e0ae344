"""Temporary folders of benchlib: each is removed with its owner, a process, or by the next one that starts. And files
that are written whole or not at all.

An owner holds a lock on a file in the folder, which the operating system lets go of when the owner ends, however it
ends. So a folder whose lock can be taken has no owner.
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

OWNED = ".owned"  # the file in each folder that its owner holds locked

_locks: dict[Path, int] = {}  # of the folders that are this process's


def make(kind: str) -> Path:
    """A new empty folder, this process's own; :func:`remove` it. An OSError where there is no room for it."""
    folder = Path(tempfile.mkdtemp(prefix=f"benchlib-{kind}-"))
    try:
        lock = _locks[folder] = os.open(folder / f"{OWNED}-soon", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with contextlib.suppress(OSError):  # a file system without locks: the folder stays if the owner is killed
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(folder / f"{OWNED}-soon", folder / OWNED)
    except BaseException:
        remove(folder)
        raise
    return folder


def remove(folder: Path) -> None:
    """Remove a folder that :func:`make` made, with all that is in it; once is enough."""
    shutil.rmtree(folder, ignore_errors=True)
    if (lock := _locks.pop(folder, None)) is not None:
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
    """Remove all folders of a kind that are this process's: the code that should remove them was interrupted."""
    for folder in [one for one in _locks if one.name.startswith(f"benchlib-{kind}-")]:
        remove(folder)


@contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """A file to write to, which then takes the place of ``path``; where it cannot be written, the old one stays."""
    partial = path.with_name(f".partial-{path.stem}-{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield partial
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        partial.replace(path)
    finally:
        with contextlib.suppress(OSError):
            partial.unlink()


def remove_stale() -> None:
    """Remove the folders whose owners were killed."""
    for owned in Path(tempfile.gettempdir()).glob(f"benchlib-*/{OWNED}"):
        with contextlib.suppress(OSError), owned.open("r+") as file:  # another user's; or it is held, or gone
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            for _ in range(20):  # processes of an owner that was killed may still write into it
                shutil.rmtree(owned.parent, ignore_errors=True)
                if not owned.parent.exists():
                    break
                time.sleep(0.1)
