"""Training runs that have been asked for, measured a few at a time: each is kept as soon as it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

from benchlib.condition import Condition
from benchlib.measure import epochs, record
from benchlib.measure.attempts import Attempt
from benchlib.progress import Progress
from benchlib.store import Measurement, Store

TOGETHER = 2
"""Training runs whose processes start side by side: two cores import a framework twice in about the time of once, and
more processes would hold more memory for longer. On an accelerator, whose memory a framework may take as a whole, one.
"""


def together(attempts: list[Attempt], conditions: list[Condition]) -> Iterator[list[Attempt]]:
    """Attempts whose processes start side by side."""
    number = TOGETHER if all(condition.device == "cpu" for condition in conditions) else 1
    for first in range(0, len(attempts), number):
        yield attempts[first : first + number]


def trained(
    attempts: list[Attempt],
    settings: epochs.Settings,
    store: Store,
    patience_s: float,
    keep: Callable[[list[Measurement]], None],
    progress: Progress,
    after_epoch: epochs.AfterEpoch,
) -> Iterator[tuple[Attempt, Measurement]]:
    """Each run, which goes to ``keep`` as soon as it is done, and to ``after_epoch`` after each of its epochs; what
    another process has measured meanwhile is read from ``store``.
    """
    missing = []
    for attempt in attempts:
        if of_another := store.usable(attempt.file):
            progress.total -= settings.most_epochs
            yield attempt, *of_another
        else:
            missing.append((attempt, *attempt.members[0]))

    def step(run: Measurement) -> None:
        after_epoch(run)
        progress.step(_line(run))

    empty = [record.begin("training", "epochs", attempt, role, job, job.seed) for attempt, role, job in missing]
    jobs = [job for _, _, job in missing]
    runs = epochs.measure_runs(empty, jobs, settings, patience_s, step)
    with closing(runs):
        for (attempt, _, _), run in zip(missing, runs, strict=True):
            keep([run])
            progress.total -= settings.most_epochs - len(run.epochs)
            yield attempt, run


def _line(run: Measurement) -> str:
    """What the last epoch gave, for whoever reads along."""
    epoch = run.epochs[-1]
    gave = f"loss {epoch.loss:.3f}, metric {epoch.metric:.3f}"
    return f"{run.condition}, seed {run.seed}, epoch {epoch.epoch}: {gave}"
