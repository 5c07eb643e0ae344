"""Training runs: a fresh process trains a condition epoch by epoch, with an evaluation off the clock after each. The
first step, with compilation, is timed apart, and then undone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator

import numpy as np

from benchlib import metrics
from benchlib.cache import Block, Epoch, Measurement
from benchlib.progress import Progress
from benchlib.runner import recording, worker_sessions
from benchlib.runner.interference import Watch, hold_still, mark_outliers
from benchlib.runner.jobs import Job
from benchlib.runner.processes import WorkerProcess
from benchlib.runner.worker_sessions import Entry, run_guarded
from benchlib.validation import Strict
from benchlib.worker import files
from benchlib.workloads import load

BLOCK_STEPS = 16  # of a block in training: their batches are put on the device together, off the clock

AfterEpoch = Callable[[Measurement], None]
"""Takes a run at work, after each of its epochs: its worker waits meanwhile, and nothing is timed."""


class TrainingSettings(Strict):
    """The length of a training run; a part of its key."""

    epochs: int  # at least
    threshold: float | None  # of the metric; None: none to reach
    most_epochs: int  # a run that has not reached the threshold after ``epochs`` goes on until this one


def startable_together(missing: dict[str, Job]) -> Iterator[dict[str, Job]]:
    """Runs whose processes start side by side, by the keys of their files; one may take an accelerator's memory."""
    number = 2 if all(job.condition.device == "cpu" for job in missing.values()) else 1
    for first in range(0, len(missing), number):
        yield dict(list(missing.items())[first : first + number])


def train_runs(
    asked: dict[str, Job],
    settings: TrainingSettings,
    load: Callable[[str], Measurement | None],
    patience_s: float,
    keep: Callable[[list[Measurement]], None],
    progress: Progress,
    after_epoch: AfterEpoch,
) -> Generator[Measurement, None, None]:
    """Each run, as soon as it is done. One that another process has measured meanwhile is given as it is; the others go
    to ``keep``, and to ``after_epoch`` after each epoch. The processes start together, and train one after the other.
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
        gave = f"epoch {run.epochs[-1].epoch}: loss {run.epochs[-1].loss:.3f}, metric {run.epochs[-1].metric:.3f}"
        progress.step(f"{run.condition}, seed {run.seed}, {gave}")

    identity = {"kind": "training", "role": "condition", "repetition": 0}
    members = [
        Entry(recording.begin("epochs", job, group=file, file=file, seed=job.seed, **identity), job)
        for file, job in missing.items()
    ]
    try:
        worker_sessions.start(members, patience_s)
        worker_sessions.build(members)
        for number, entry in enumerate(members):
            others = [other.worker for other in members[number + 1 :] if other.worker is not None]
            run_guarded(entry, _begin, others)
            worker_sessions.require_hashed(entry, "epochs")  # before it has taken its time
            run_guarded(entry, _train, others, settings, step)
            worker_sessions.require_hashed(entry, "epochs")
            keep([entry.measurement])
            worker_sessions.end([entry])
            progress.total -= settings.most_epochs - len(entry.measurement.epochs)
            yield entry.measurement
    finally:
        worker_sessions.end(members)


def _begin(entry: Entry, others: list[WorkerProcess]) -> None:
    entry.measurement.started_utc = recording.utc_now()  # not when its process started, beside another
    recording.first_step(entry.measurement, entry.worker, others)
    entry.worker.ask("reset")


def _train(entry: Entry, others: list[WorkerProcess], settings: TrainingSettings, after_epoch: AfterEpoch) -> None:
    measurement = entry.measurement
    for number in range(1, settings.most_epochs + 1):
        measurement.epochs.append(_epoch(entry, others, number))
        after_epoch(measurement)
        reached = settings.threshold is None or max(epoch.metric for epoch in measurement.epochs) >= settings.threshold
        if number >= settings.epochs and reached:
            break
    recording.memory(measurement, entry.worker)


def _epoch(entry: Entry, others: list[WorkerProcess], number: int) -> Epoch:
    measurement, worker, sampler = entry.measurement, entry.worker, entry.sampler
    job = entry.job.epoch(number)
    blocks: list[Block] = []
    hold_still(others)
    watch, started = Watch(worker, others), time.perf_counter()

    def add(answer: dict) -> None:
        nonlocal watch
        seen = watch.end()  # of the block, and of making its batches
        block = Block(round=-1, position=len(blocks), epoch=number, **vars(seen), **answer)
        # The worker does not wait between blocks, so one may look longer than the wait for it; all together cannot.
        left_s = time.perf_counter() - started - sum(one.wall_s for one in blocks)
        blocks.append(recording.require_plausible(block, left_s, alone=False))
        watch = Watch(worker, others)

    sampler.start()
    details = {"number": number, "orders": str(job.orders), "block_steps": BLOCK_STEPS}
    answer = worker.ask("epoch", tick=sampler.tick, each=add, **details)
    sampler.tick()
    recording.require_same(worker, "order", answer["order_sha256"], job.order(number))
    measurement.blocks += blocks
    mark_outliers(measurement.blocks, job.condition.device, None)  # it cannot be taken again, but it is said
    measurement.trace = sampler.trace
    file = worker.scratch / "predictions.npy"
    worker.ask("predict", file=str(file))
    workload, predictions, data = load(job.condition.workload), worker.arrays(file, np.load), files.arrays(job.data)
    if wrong := metrics.wrong(workload, predictions, data):
        raise worker.give_up(f"wrote unusable results: {wrong}")
    metric = metrics.measure(workload, predictions, data)
    return Epoch(epoch=number, wall_s=sum(block.wall_s for block in blocks), loss=answer["loss"], metric=metric)
