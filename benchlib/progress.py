"""Progress of long work: a bar in JupyterLab, elsewhere lines, to the file that ``BENCHLIB_PROGRESS`` names.

The suite follows that file to the terminal, so that they do not end up in executed notebooks.
"""

from __future__ import annotations

import contextlib
import html
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

FILE_VARIABLE = "BENCHLIB_PROGRESS"


class Progress:
    """Counts ``total`` steps of one piece of work.

    >>> with Progress(30, "learning_rate: training runs") as progress:  # doctest: +SKIP
    ...     progress.step("pytorch lr 0.01 seed 0: 61.2 %")
    learning_rate: training runs: 0/30
    learning_rate: training runs: 1/30, 29 min left: pytorch lr 0.01 seed 0: 61.2 %
    """

    def __init__(self, total: int, title: str) -> None:
        self.total = total
        self.title = title
        self.done = 0
        self._started = 0.0
        self._bar: Any = None

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._show("")
        return self

    def step(self, text: str = "") -> None:
        """One step is done; ``text`` says what it gave, in a few words."""
        self.done += 1
        left = ""
        if self.done < self.total:
            seconds = (time.monotonic() - self._started) / self.done * (self.total - self.done)
            left = f", {duration(seconds)} left"
        self._show(left + (f": {text}" if text else ""))

    def tell(self, text: str) -> None:
        """Say something about the work that is going on, such as what it waits for."""
        self._show(f": {text}")

    def stood_still(self, seconds: float) -> None:
        """Nothing was done for so long, which says nothing of how long the rest takes."""
        self._started += seconds

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        taken = duration(time.monotonic() - self._started)
        self._show(f", done in {taken}" if kind is None else f", stopped after {taken} by {kind.__name__}")

    def _show(self, text: str) -> None:
        line = f"{self.title}: {self.done}/{self.total}{text}"
        if not in_jupyterlab():
            say(line)
            return
        # Plain HTML, not a widget: it needs no extension, and a saved notebook shows its last state.
        from IPython.display import HTML, display

        bar = HTML(f'<progress value="{self.done}" max="{self.total}"></progress> {html.escape(line)}')
        if self._bar is None:
            self._bar = display(bar, display_id=True)
        else:
            self._bar.update(bar)


def say(line: str) -> None:
    """Write one line to the progress file or, without one that can be written, to standard error."""
    line = " ".join(line.split())
    path = os.environ.get(FILE_VARIABLE)
    if path:
        with contextlib.suppress(OSError), open(path, "a", encoding="utf-8") as file:
            file.write(f"{line}\n")
            return
    print(line, file=sys.stderr, flush=True)


def in_jupyterlab() -> bool:
    """Is this a kernel of JupyterLab, and no headless execution?"""
    # A program that a notebook starts inherits the name of the session, but has not imported IPython.
    return FILE_VARIABLE not in os.environ and "JPY_SESSION_NAME" in os.environ and "IPython" in sys.modules


def duration(seconds: float) -> str:
    """Seconds in words: ``8 s``, ``3 min``, ``1 h 20 min``."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


@contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    """Have an environment variable for as long as this lasts, for processes started meanwhile."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name)
        if before is not None:
            os.environ[name] = before
