"""The lock of a run on its folder of results, and the messages of the run and its kernels."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from benchlib import progress
from benchlib.errors import BenchlibError, write_error

LOOK_S = 1.0  # between two looks into the log: measurements are going on beside it


@contextmanager
def hold_lock(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder of results, until this process ends at most; a BenchlibError if another run does."""
    with writable(folder):
        file = open(folder / ".lock", "a+", encoding="utf-8")  # noqa: SIM115 - closed below
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            file.seek(0)
            other = f"another run ({file.read()}) is at work there: wait until it is done, or stop it"
            why = other if isinstance(error, BlockingIOError) else f"cannot be locked ({error.strerror})"
            raise BenchlibError(f"{folder}: {why}, or choose another folder with --outputs") from None
        with writable(folder):
            file.truncate(0)
            file.write(f"process {os.getpid()}, since {datetime.now().astimezone():%Y-%m-%d %H:%M:%S}")
            file.flush()
        yield


@contextmanager
def writable(folder: Path) -> Iterator[None]:
    """Turn an OSError of the block into a BenchlibError that names ``folder``."""
    try:
        yield
    except OSError as error:
        raise BenchlibError(write_error(error, folder)) from None


@contextmanager
def follow_progress(log: Path) -> Iterator[None]:
    """Name ``log`` to the kernels as the file for lines of progress, and print the lines that come in there."""
    with writable(log.parent):
        log.write_text("", encoding="utf-8")
    over = threading.Event()
    thread = threading.Thread(target=_follow, args=(log, over), daemon=True)
    thread.start()
    try:
        with progress.variable(progress.FILE_VARIABLE, str(log.resolve())):
            yield
    finally:
        over.set()
        thread.join()


def _follow(log: Path, over: threading.Event) -> None:
    unfinished, last = "", False
    with log.open(encoding="utf-8") as file:
        while not last:
            last = over.wait(LOOK_S)
            *lines, unfinished = (unfinished + file.read()).split("\n")
            with contextlib.suppress(BrokenPipeError):  # the reader is gone: the main thread will find out
                for line in lines:
                    say(f"  {line}")


def say(line: str) -> None:
    """Print a line at once; that it goes to a disk that is full is no reason to measure less."""
    try:
        print(line, flush=True)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
