"""Training runs that have been asked for, measured a few at a time: each is kept as soon as it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

from benchlib.progress import Progress
from benchlib.runner import epochs, recording
from benchlib.runner.jobs import Job
from benchlib.store import Measurement

TOGETHER = 2
"""Training runs whose processes start side by side: two cores import a framework twice in about the time of once, and
more processes would hold more memory for longer. On an accelerator, whose memory a framework may take as a whole, one.
"""


def together(missing: dict[str, Job]) -> Iterator[dict[str, Job]]:
    """Runs whose processes start side by side, by the keys of their files."""
    number = TOGETHER if all(job.condition.device == "cpu" for job in missing.values()) else 1
    for first in range(0, len(missing), number):
        yield dict(list(missing.items())[first : first + number])


def trained(
    asked: dict[str, Job],
    settings: epochs.Settings,
    load: Callable[[str], Measurement | None],
    patience_s: float,
    keep: Callable[[list[Measurement]], None],
    progress: Progress,
    after_epoch: epochs.AfterEpoch,
) -> Iterator[Measurement]:
    """Each run, which goes to ``keep`` as soon as it is done, and to ``after_epoch`` after each of its epochs. What
    another process has measured meanwhile is ``load``-ed.
    """
    missing = {}
    for file, job in asked.items():
        if (of_another := load(file)) is not None:
            progress.total -= settings.most_epochs
            yield of_another
        else:
            missing[file] = job

    def step(run: Measurement) -> None:
        after_epoch(run)
        progress.step(_line(run))

    identity = {"kind": "training", "role": "condition", "repetition": 0}
    empty = [
        recording.begin("epochs", job, group=file, file=file, seed=job.seed, **identity)
        for file, job in missing.items()
    ]
    runs = epochs.measure_runs(empty, list(missing.values()), settings, patience_s, step)
    with closing(runs):
        for run in runs:
            keep([run])
            progress.total -= settings.most_epochs - len(run.epochs)
            yield run


def _line(run: Measurement) -> str:
    """What the last epoch gave, for whoever reads along."""
    epoch = run.epochs[-1]
    gave = f"loss {epoch.loss:.3f}, metric {epoch.metric:.3f}"
    return f"{run.condition}, seed {run.seed}, epoch {epoch.epoch}: {gave}"
