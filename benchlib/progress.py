"""Progress of long work: a bar in JupyterLab, elsewhere lines, to the file that ``BENCHLIB_PROGRESS`` names, which the
suite follows to the terminal.
"""

from __future__ import annotations

import contextlib
import html
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

FILE_VARIABLE = "BENCHLIB_PROGRESS"


class Progress:
    """Counts ``total`` steps of one piece of work: ``training runs: 1/30, 29 min left: pytorch seed 0: 61.2 %``."""

    def __init__(self, total: int, title: str) -> None:
        self.total, self.title, self.done = total, title, 0
        self._started, self._bar = 0.0, None

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._show("")
        return self

    def step(self, text: str = "") -> None:
        """One step is done; ``text`` is its result, in a few words."""
        self.done += 1
        left = ""
        if self.done < self.total:
            seconds = (time.monotonic() - self._started) / self.done * (self.total - self.done)
            left = f", {duration(seconds)} left"
        self._show(left + (f": {text}" if text else ""))

    def tell(self, text: str) -> None:
        """Say something about the work that is going on, such as the reason for a wait."""
        self._show(f": {text}")

    def stood_still(self, seconds: float) -> None:
        """Leave out seconds in which nothing was done."""
        self._started += seconds

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        taken = duration(time.monotonic() - self._started)
        self._show(f", done in {taken}" if kind is None else f", stopped after {taken} by {kind.__name__}")

    def _show(self, text: str) -> None:
        line = f"{self.title}: {self.done}/{self.total}{text}"
        # A program that a notebook starts inherits the name of the session, but has not imported IPython.
        if FILE_VARIABLE in os.environ or "JPY_SESSION_NAME" not in os.environ or "IPython" not in sys.modules:
            say(line)
            return
        from IPython.display import HTML, display  # no widget: it needs no extension, and is saved with the notebook

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


def duration(seconds: float) -> str:
    """Seconds in words: ``8 s``, ``3 min``, ``1 h 20 min``."""
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


@contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    """Have an environment variable for as long as this lasts, for processes started meanwhile."""
    before = {name: os.environ[name]} if name in os.environ else {}
    os.environ[name] = value
    try:
        yield
    finally:
        del os.environ[name]
        os.environ.update(before)
