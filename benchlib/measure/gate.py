"""The equivalence gate's measuring half: what two workers compute from the same weights and batches, in fresh
processes, before any ratio.

Several conditions of one framework, mode, device and lane share a process here: nothing is timed.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.measure.jobs import INITIAL_SEED, prepare_job
from benchlib.measure.processes import WorkerFailed, WorkerProcess

BATCH_SIZE = 4  # at most: so small that most trials meet no kink (see ``equivalence``), and quick everywhere
STEPS = 3  # of a trial: momentum shows from the second on


def gated(condition: Condition) -> Condition:
    """The condition as the gate runs it: what its workload has to neutralise neutralised, a small batch, the
    workload's own learning rate.
    """
    workload = workloads.load(condition.workload)
    return condition.but(
        hyperparameters={**condition.hyperparameters, **workload.gate},
        batch_size=min(condition.batch_size, BATCH_SIZE),
        learning_rate=workload.learning_rate,
        threads=None,
    )


def reference(condition: Condition) -> Condition:
    """What a gated condition is compared with: PyTorch (a workload without it: its first framework), eager, on the
    CPU, in the default lane.
    """
    offered = workloads.load(condition.workload).frameworks()
    framework = "pytorch" if "pytorch" in offered else offered[0]
    return condition.but(framework=framework, mode="eager", device="cpu", lane="default", precision="fp32")


def run(conditions: Iterable[Condition], inputs: Path, patience_s: float) -> dict[str, dict[str, np.ndarray] | str]:
    """What each condition computes, by condition key: arrays by name, or a failure's text."""
    alike: dict[tuple, list[Condition]] = {}
    for condition in conditions:
        alike.setdefault(
            (condition.framework, condition.mode, condition.precision, condition.device, condition.lane), []
        ).append(condition)
    groups = [(group, prepared(group, inputs)) for group in alike.values()]
    workers = []
    found: dict[str, dict[str, np.ndarray] | str] = {}
    try:
        for group, _ in groups:
            workers.append(WorkerProcess(group[0], INITIAL_SEED, patience_s))
        for worker, (group, jobs) in zip(workers, groups, strict=True):
            found |= _computed(worker, group, jobs)
    finally:
        for worker in workers:
            worker.end()
    return found


def prepared(conditions: list[Condition], inputs: Path) -> list:
    """The jobs of ``conditions``."""
    return [prepare_job(condition, INITIAL_SEED, inputs) for condition in conditions]


def _computed(worker: WorkerProcess, conditions: list[Condition], jobs: list) -> dict[str, dict[str, np.ndarray] | str]:
    found: dict[str, dict[str, np.ndarray] | str] = {}
    try:
        worker.opened()
        for condition, job in zip(conditions, jobs, strict=True):
            worker.ask("build", **job.document())
            file = worker.scratch / "computed.npz"
            worker.ask("check", steps=STEPS, file=str(file))
            with np.load(file) as arrays:
                found[condition.key] = dict(arrays)
    except WorkerFailed as failure:
        for condition in conditions:
            found.setdefault(condition.key, str(failure))
    return found
