"""Training runs for people who watch: what is kept, and each epoch of a run at work as soon as it is there.

How they are shown is the matter of the suite's floor, of which this one has the name only, as ``benchlib.shown`` has.
Without the suite's packages nobody watches.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchlib.analysis.training import TrainingRuns
from benchlib.measure.epochs import AfterEpoch

WATCHING = "benchlib.suite.watching"


@contextmanager
def watched(folder: Path, kept: TrainingRuns) -> Iterator[AfterEpoch]:
    """Show the runs of ``kept``, which are in this outputs folder, and those that follow in the ``with`` block."""
    try:
        watching = importlib.import_module(WATCHING)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("benchlib"):
            raise
        yield lambda run: None
        return
    with watching.watch(folder, kept) as after_epoch:
        yield after_epoch
