"""Work on several notebooks at once, in threads: where nothing is measured, each keeps one core busy."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import TypeVar

import psutil

from benchlib.measure import own_code
from benchlib.measure.interrupt import one_interrupt

AT_ONCE = 2

KERNEL_FILE = str(own_code.PACKAGE / "suite" / "kernel.py")
"""What every kernel of ours is started with."""

LOOK_S = 0.2  # between two looks for a kernel that was just being started when all were ended

Item = TypeVar("Item")
Product = TypeVar("Product")


class Ended(BaseException):
    """The kernel of this thread was ended, because all were: nothing is to be made of it."""


def each(work: Callable[[Item], Product], items: Iterable[Item]) -> list[Product]:
    """What ``work`` makes of each item, in order. If that fails, or is interrupted, the others are not begun, the
    kernels that are at work are ended, and :func:`require_going` raises in their threads.
    """
    with one_interrupt(), ThreadPoolExecutor(AT_ONCE) as pool:
        futures: list[Future[Product]] = []
        try:
            for item in items:  # one by one: an interrupt ends those that are begun
                futures.append(pool.submit(work, item))
            for future in wait(futures, return_when=FIRST_EXCEPTION).done:
                future.result()
            return [future.result() for future in futures]
        except BaseException:
            _ended.set()
            logging.disable()  # jupyter's word for what is done here is that kernels died
            pool.shutdown(wait=False, cancel_futures=True)
            while not all(future.done() for future in futures):
                _end_kernels()
                time.sleep(LOOK_S)
            raise
        finally:
            logging.disable(logging.NOTSET)
            _ended.clear()


def require_going() -> None:
    """Raise Ended if all work is being ended."""
    if _ended.is_set():
        raise Ended


_ended = threading.Event()


def _end_kernels() -> None:
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            if KERNEL_FILE in child.cmdline():
                child.kill()
