"""Interrupts (Ctrl-C, or a notebook's *Interrupt Kernel*) while workers are at work: one ends them all."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from benchlib import scratch

STOPPED = "stopped by an interrupt; the measurements are kept: run it again to go on from there"


@contextmanager
def one_interrupt() -> Iterator[None]:
    """Let the first interrupt through, and no other: a second would cut the ending of the workers short."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield  # no interrupt comes here
        return
    came = False

    def once(number: int, frame: object) -> None:
        nonlocal came
        if not came:
            came = True
            try:
                before(number, frame)
            except KeyboardInterrupt as interrupt:
                # IPython shows that: where it was is of no use.
                interrupt._render_traceback_ = lambda: [STOPPED]  # type: ignore[attr-defined]
                raise

    signal.signal(signal.SIGINT, once)
    try:
        yield
    except KeyboardInterrupt:
        for child in psutil.Process().children(recursive=True):  # a worker whose start the interrupt met halfway
            with contextlib.suppress(psutil.Error):
                if Path(child.cwd()).name.startswith("benchlib-worker-"):
                    child.kill()
        scratch.remove_own("worker")
        raise
    finally:
        signal.signal(signal.SIGINT, before)
