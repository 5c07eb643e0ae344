"""Training to watch: event files for TensorBoard, and in JupyterLab a figure that grows below the cell at work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchlib.progress import in_jupyterlab, say
from benchlib.store import Measurement
from benchlib.suite import events

if TYPE_CHECKING:
    from benchlib.analysis.training import TrainingRuns
    from benchlib.measure.epochs import AfterEpoch

SHARE = 0.1
"""So much of the time that training takes may go into drawing, which nothing is measured beside."""


@contextmanager
def watch(folder: Path, kept: TrainingRuns) -> Iterator[AfterEpoch]:
    """As :func:`benchlib.measure.watched.watched`, whose callers need no packages of the suite's."""
    written = _Events(folder / events.FOLDER)
    written.keep(kept.measurements)
    if not in_jupyterlab():
        yield written.add
        return
    figure = _Figure(kept)

    def after_epoch(run: Measurement) -> None:
        written.add(run)
        figure.add(run)

    try:
        yield after_epoch
    finally:
        figure.complete()


class _Events:
    """Event files in ``folder``, until one cannot be written: that is said, and ends no measurement."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._works = True

    def keep(self, runs: list[Measurement]) -> None:
        try:
            events.keep(self.folder, runs)
        except OSError as error:
            self._give_up(error)

    def add(self, run: Measurement) -> None:
        if not self._works:
            return
        try:
            events.add(self.folder, run)
        except OSError as error:
            events.remove(self.folder, run)  # so that it is written whole when it is asked for again
            self._give_up(error)

    def _give_up(self, error: OSError) -> None:
        self._works = False
        say(f"{self.folder}: TensorBoard's files could not be written ({error.strerror}); the measurements go on")


class _Figure:
    """One output of a cell, drawn anew as the runs go on."""

    def __init__(self, runs: TrainingRuns) -> None:
        self._runs = runs
        self._by_file = {run.file: run for run in runs.measurements}
        self._shown: Any = None  # IPython's handle of the output
        self._due = 0.0  # on the monotonic clock: not drawn before
        self._complete = True

    def add(self, run: Measurement) -> None:
        self._by_file[run.file] = run
        self._complete = False
        if time.monotonic() >= self._due:
            self._draw()

    def complete(self) -> None:
        """Draw what has come since it was drawn last."""
        if not self._complete:
            self._draw()

    def _draw(self) -> None:
        from IPython.display import HTML, display

        from benchlib.suite import plots  # only now: matplotlib takes long to import

        started = time.monotonic()
        html = HTML(plots.at_work(replace(self._runs, measurements=list(self._by_file.values())))._repr_html_())
        if self._shown is None:
            self._shown = display(html, display_id=True)
        else:
            self._shown.update(html)
        ended = time.monotonic()
        self._due, self._complete = ended + (ended - started) / SHARE, True
