"""The requests of the gate to one condition's worker: trials, the first of them again, and a probe of behaviour that
trials do not show.

Trials with numbers have few samples. ``FAR`` has large weights in the last layer, so that losses saturate. ``BATCH``
has the largest batch that shares the certificate, and dropout at work with given masks.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.equivalence import compare, samples
from benchlib.equivalence.compare import AGAIN, BATCH, FAR, WITHOUT, WORK
from benchlib.equivalence.tolerances import tolerances
from benchlib.errors import Failure
from benchlib.runner import recording
from benchlib.runner.jobs import Job
from benchlib.runner.processes import WorkerProcess

STEPS = 3  # of all trials but the first: momentum shows from the second on
TRIALS = 3  # with numbers, at least: of gradients the second largest difference counts, because one may meet a kink

RECORDS = (1, 2, 3, 10, 30, 99, 105)
"""Steps of the probe of an optimizer after which weights are compared; more where a learning rate changes later."""

Arrays = dict[str, np.ndarray]
Computed = Arrays | Failure  # a condition's results, arrays by name; or its failure


def run_trials(worker: WorkerProcess, condition: Condition, job: Job, large: Job) -> Arrays:
    """Run a gated ``condition``: trial after trial, the first again, the probe, and the largest batch (``large``)."""
    workload = workloads.load(condition.workload)
    trains, alone = workload.kind == "training", condition.world_size == 1
    exact = condition.precision in ("fp32", "fp64")
    build(worker, job)
    arrays = _trial(worker, job, "0")
    for number in range(1, TRIALS):
        arrays |= _trial(worker, job, str(number))
    if not trains:  # a result kept of a batch, for the next time, is wrong for other weights
        arrays |= _trial(worker, job, str(samples.batches(job)))  # takes the first batch again, with larger weights
    if trains and alone and exact:
        arrays |= _trial(worker, job, FAR)
    if "repetition" in tolerances(condition):
        repeated = _trial(worker, job, "0", again=True)
        arrays |= {name.replace("0/", f"{AGAIN}/", 1): array for name, array in repeated.items()}
    if condition.precision != "fp64":
        arrays |= _work(worker, job)
    if trains and alone and condition.precision != "fp64":
        arrays |= _probe(worker, condition, job)
    if alone:
        build(worker, large)
        arrays |= _trial(worker, large, BATCH)
        if condition.precision != "fp64" and large.condition.batch_size > job.condition.batch_size:
            found = _work(worker, large)
            beside = f"{WORK}/beside"
            arrays |= {**found, beside: np.array(sorted({*arrays[beside].tolist(), *found[beside].tolist()}))}
    return arrays


def build(worker: WorkerProcess, job: Job) -> None:
    """Have a worker build the model of a job, from the inputs that this process knows."""
    recording.require_inputs(worker, job, worker.ask("build", **job.document()))


def _trial(worker: WorkerProcess, job: Job, trial: str, again: bool = False) -> Arrays:
    """The first is the shorter one: made again behind the others, it shows in one step the traces that they left. A
    model that makes rounding grow from step to step takes one in all of them: the probe shows the effect of more.
    """
    file = worker.scratch / "computed.npz"
    few = trial in ("0", FAR) or workloads.load(job.condition.workload).gate.fed
    steps = 1 if few else STEPS
    without = worker.ask("check", steps=steps, trial=trial, again=again, masked=trial == BATCH, file=str(file))["why"]
    arrays = _read(worker, file, worker.condition.world_size)
    return {**arrays, f"{WITHOUT}/{without}": np.zeros(0)} if without else arrays


def _work(worker: WorkerProcess, job: Job) -> Arrays:
    """The work of a step, and what the model's file does beside it; calls by the size of the batch."""
    seen = worker.ask("work")
    seen[f"calls {job.condition.batch_size}"] = seen.pop("calls")
    return {f"{WORK}/{name}": np.array(one) for name, one in seen.items() if one is not None}


def _probe(worker: WorkerProcess, condition: Condition, job: Job) -> Arrays:
    """Probe with the hyperparameters that the condition is measured with. Mixed precision has the optimizer of fp32."""
    usual = replace(job, condition=compare.with_usual_rate(condition))
    build(worker, usual)
    workload = workloads.load(condition.workload)
    changes = workload.schedule(usual.condition.hyperparameters)
    records = sorted({*RECORDS, *(changes + beyond for beyond in (-1, 1, 30) if changes > 1)})
    records = records if condition.precision == "fp32" else []
    file = worker.scratch / "probed.npz"
    worker.ask("probe", records=records, file=str(file))
    return worker.arrays(file)


def _read(worker: WorkerProcess, file: Path, world_size: int) -> dict[str, np.ndarray]:
    """Read the results. Of a group they are the outputs of all parts of the batch, and the mean of their losses.
    Gradients and state are those of the first process, and must be the whole batch's. A gradient or trained weight
    that differs in another process is nan.
    """
    if world_size == 1:
        return worker.arrays(file)
    parts = [worker.arrays(Path(f"{file}.{rank}.npz")) for rank in range(world_size)]
    shapes = [{name: array.shape for name, array in part.items()} for part in parts]
    if unlike := sorted({name for shape in shapes for name, _ in shape.items() ^ shapes[0].items()}):
        raise worker.give_up(f"wrote unusable results: its processes differ in {', '.join(unlike[:3])}")
    made = dict(parts[0])
    for name in made:
        quantity = name.partition("/")[2].partition(":")[0]
        if quantity in {"outputs", "evaluation outputs", "predictions"}:
            made[name] = np.concatenate([part[name] for part in parts])
        elif quantity in {"losses", "first loss"}:
            made[name] = np.mean([part[name] for part in parts], axis=0)
        elif quantity in {"gradient", "update"}:
            alike = all(np.array_equal(parts[0][name], part[name], equal_nan=True) for part in parts)
            made[name] = made[name] if alike else np.full_like(made[name], np.nan)
    return made
