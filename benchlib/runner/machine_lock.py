"""One measurement at a time on a machine, whatever notebook, folder or user asks: two would measure each other."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchlib.errors import BenchlibError
from benchlib.runner.interrupt import one_interrupt

LOCK = Path("/tmp/benchlib-measuring.lock")  # whatever a user's or batch job's TMPDIR is


@contextmanager
def hold_machine(tell: Callable[[str], None]) -> Iterator[float]:
    """Hold the machine's lock until this, or the process, ends; give the seconds of waiting. ``tell`` hears of it."""
    file, before = _open_lock(), time.monotonic()
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell("waiting: another benchlib measures on this machine")
            fcntl.flock(file, fcntl.LOCK_EX)
            tell("the machine is free: measuring")
        except OSError as error:
            why = f"cannot be locked ({error.strerror}): it keeps measurements apart"
            raise BenchlibError(f"{LOCK}: {why}, so it has to be on a file system with locks") from None
        waited_s = time.monotonic() - before
        with one_interrupt():
            yield waited_s
    finally:
        os.close(file)


def _open_lock() -> int:
    """Open the lock file; the first process makes it. An existing file is only read, which any user may do."""
    try:
        try:
            return os.open(LOCK, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            file = os.open(LOCK, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC)
            os.fchmod(file, 0o644)  # whatever this user's umask is
            return file
    except OSError as error:
        why = f"the lock that keeps measurements apart cannot be opened: {error.strerror}"
        raise BenchlibError(f"{LOCK}: {why}; make that possible, or have its owner remove it") from None
