"""One training run: a fresh process trains a condition epoch by epoch, with an evaluation off the clock after each.

The first step, with compilation, is timed apart, and then undone: the run starts again from the initial weights.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict

import numpy as np

from benchlib import metrics
from benchlib.data import files
from benchlib.measure import record
from benchlib.measure.disturbance import Watch
from benchlib.measure.jobs import Job
from benchlib.measure.processes import WorkerFailed, WorkerProcess, faults
from benchlib.measure.sampler import Sampler
from benchlib.results import Block, Epoch, Measurement
from benchlib.validation import Strict
from benchlib.workloads import load

BLOCK_STEPS = 16
"""Steps of a block in training: their batches are put on the device together, off the clock."""


class Settings(Strict):
    """How long a run trains; a part of its key."""

    epochs: int  # at least
    threshold: float | None  # of the metric; None: none to reach
    most_epochs: int  # a run that has not reached the threshold after ``epochs`` goes on until this one


def measure_run(
    measurement: Measurement, job: Job, settings: Settings, patience_s: float, progress: Callable[[str], None]
) -> Measurement:
    """Fill ``measurement`` with a training run and return it; a failure is recorded, with the epochs before it kept."""
    worker = None
    try:
        with faults(None):
            worker = WorkerProcess(job.condition, job.seed, patience_s)
        with faults(worker):
            _train(measurement, worker, job, settings, progress)
    except WorkerFailed as failure:
        measurement.failure = str(failure)
    finally:
        if worker is not None:
            worker.end()
    return measurement


def _train(
    measurement: Measurement, worker: WorkerProcess, job: Job, settings: Settings, progress: Callable[[str], None]
) -> None:
    record.opened(measurement, worker)
    record.build(worker, job)
    record.built(measurement, worker, job)
    record.first_step(measurement, worker)
    worker.ask("reset")
    sampler = Sampler(worker)
    for number in range(1, settings.most_epochs + 1):
        epoch = _epoch(measurement, worker, job, sampler, number)
        measurement.epochs.append(epoch)
        progress(f"{job.condition}, seed {job.seed}, epoch {number}: loss {epoch.loss:.3f}, metric {epoch.metric:.3f}")
        if number >= settings.epochs and _is_settled(measurement.epochs, settings.threshold):
            break
    record.memory(measurement, worker)


def _is_settled(epochs: list[Epoch], threshold: float | None) -> bool:
    return threshold is None or max(epoch.metric for epoch in epochs) >= threshold


def _epoch(measurement: Measurement, worker: WorkerProcess, job: Job, sampler: Sampler, number: int) -> Epoch:
    blocks: list[Block] = []
    watch, started = Watch(worker, []), time.perf_counter()

    def add(told: dict) -> None:
        nonlocal watch
        seen = watch.end()  # of the block, and of making its batches
        block = Block(round=-1, position=len(blocks), epoch=number, **asdict(seen), **told)
        # The worker does not wait between blocks: on a busy machine this process may have got the answer before late,
        # and so have waited for less than the block. The epoch's blocks together cannot be longer than the epoch.
        left_s = time.perf_counter() - started - sum(one.wall_s for one in blocks)
        blocks.append(record.checked(block, left_s, alone=False))
        watch = Watch(worker, [])

    sampler.start()
    loss = worker.ask("epoch", tick=sampler.tick, each=add, number=number, block_steps=BLOCK_STEPS)["loss"]
    sampler.tick()
    measurement.blocks += blocks
    measurement.trace = sampler.trace
    predictions = worker.scratch / "predictions.npy"
    worker.ask("predict", file=str(predictions))
    metric = metrics.measure(load(job.condition.workload).metric, np.load(predictions), files.arrays(job.data))
    return Epoch(epoch=number, wall_s=sum(block.wall_s for block in blocks), loss=loss, metric=metric)
