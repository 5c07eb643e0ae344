"""Does a framework's session do what ``benchlib.frameworks.Session`` promises? For who writes one: each promise that
can be seen from outside is tried with the smallest workload that the framework has a file for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchlib import frameworks, metrics, workloads
from benchlib.condition import Condition
from benchlib.data.weights import prepare_weights
from benchlib.equivalence import compare, gate, trials
from benchlib.equivalence.tolerances import tolerances
from benchlib.errors import BenchlibError
from benchlib.provenance import knobs
from benchlib.runner import availability, timer_check
from benchlib.runner.jobs import INITIAL_SEED, Job, prepare_job
from benchlib.runner.processes import PATIENCE_S, WorkerFailed, WorkerProcess
from benchlib.worker import files


@dataclass(frozen=True)
class Row:
    """One promise: of which mode, whether it was kept, and if not, what was seen instead."""

    mode: str
    what: str
    passed: bool
    why: str = ""


def check(framework: str, inputs: Path, patience_s: float = PATIENCE_S, **choices: str) -> list[Row]:
    """All :func:`rows` of a framework, in each of its modes."""
    return list(rows(framework, inputs, patience_s, frameworks.modes(framework), **choices))


def rows(framework: str, inputs: Path, patience_s: float, modes: Sequence[str], **choices: str) -> Iterator[Row]:
    """A row for each promise, in each of ``modes``; ``choices`` are further ones of the conditions that are tried, such
    as ``device``. Inputs are prepared under ``inputs``. A BenchlibError where there is nothing to try.
    """
    workload = _smallest(framework)
    conditions = [Condition(workload=workload, framework=framework, mode=m, **choices) for m in modes]
    availability.require(conditions)
    inputs = Path(inputs).resolve()  # workers work elsewhere
    for condition in conditions:
        yield from _rows(condition, inputs, patience_s)


def _smallest(framework: str) -> str:
    """The training workload with the fewest weights whose optimizer keeps a state, which a session can forget to reset;
    without one, the smallest that trains.
    """
    offered = [
        workload
        for workload in map(workloads.load, workloads.names())
        if framework in workload.frameworks() and workload.kind == "training"
    ]
    if not offered:
        raise BenchlibError(
            f"framework {framework!r}: no workload that trains has a file for it; write workloads/NAME/{framework}.py "
            f"for one of {', '.join(workloads.names())}, or for one of yours"
        )
    return min(offered, key=lambda one: (not one.optimizer_state, _size(one))).name


def _size(workload: workloads.Workload) -> int:
    return sum(int(np.prod(weight.shape)) for weight in workload.weights(workload.values({})).values())


def _rows(condition: Condition, inputs: Path, patience_s: float) -> Iterator[Row]:
    def row(what: str, why: str) -> Row:
        return Row(condition.mode, what, not why, why)

    job = prepare_job(compare.neutral(gate.gated(condition)), INITIAL_SEED, inputs)
    what = "starts, and says its versions"
    try:
        with WorkerProcess(job.condition, INITIAL_SEED, patience_s, knobs.of_gate(job.condition)) as worker:
            worker.opened()
            yield row(what, "")
            for what, ask in {
                "weights are read back as they were loaded": _weights,
                "outputs and gradients have the shapes of the model, and are numbers": _shapes,
                "load forgets all that steps have left: the optimizer's state, running statistics": _reset,
                "predictions are one for each test sample": _predictions,
                "settings and memory are said": _said,
                "update takes the optimizer's steps with given gradients, and dropouts shows what is dropped": _probe,
            }.items():
                yield row(what, ask(worker, job))
    except WorkerFailed as failure:
        yield row(what, str(failure))
        return  # whatever else is tried needs a session that works
    yield row("a weight that the model does not have is refused", _refuses(job, inputs, patience_s, misshapen=False))
    yield row("a weight of another shape is refused", _refuses(job, inputs, patience_s, misshapen=True))
    yield row("synchronize waits for all work", _waits(condition, inputs, patience_s))
    yield row(f"{condition.workload} is the reference's model", _certified(condition, inputs, patience_s))


def _weights(worker: WorkerProcess, job: Job) -> str:
    answer = worker.ask("build", **job.document())
    same = answer["weights_sha256"] == answer["weights_file_sha256"]
    return "" if same else "weights() gives other numbers, names or shapes than load() was given"


def _shapes(worker: WorkerProcess, job: Job) -> str:
    computed = _computed(worker)
    condition = job.condition
    declared = workloads.load(condition.workload).weights(condition.hyperparameters)
    expected = {f"0/gradient:{name}": weight.shape for name, weight in declared.items() if weight.trained}
    gradients = {name: array.shape for name, array in computed.items() if name.startswith("0/gradient:")}
    if gradients != expected:
        return f"gradients() gives {gradients}, and the trained weights are {expected}"
    if not computed["0/outputs:0"].ndim:
        return "outputs() gives a single number: it is to give the model's outputs, and not the loss"
    broken = [name for name, array in computed.items() if not np.isfinite(array).all()]
    return f"not finite: {', '.join(broken)}" if broken else ""


def _reset(worker: WorkerProcess, job: Job) -> str:
    first, again = _computed(worker), _computed(worker)
    apart = {
        name: float(np.abs(again[name] - array).max() / max(np.abs(array).max(), np.finfo(np.float32).tiny))
        for name, array in first.items()
    }
    worst = max(apart, key=apart.__getitem__)
    if apart[worst] <= tolerances(job.condition)["repetition"]:
        return ""
    return f"after load() the same steps from the same weights give another {worst[2:]}, by {apart[worst]:.2g} of it"


def _computed(worker: WorkerProcess) -> dict[str, np.ndarray]:
    """What the gate asks for, of its first trial."""
    file = worker.scratch / "computed.npz"
    worker.ask("check", steps=trials.STEPS, trial=0, moved=0, again=False, file=str(file))
    return worker.arrays(file)


def _probe(worker: WorkerProcess, job: Job) -> str:
    file = worker.scratch / "probed.npz"
    worker.ask("probe", records=[1, 2], file=str(file))
    probed = worker.arrays(file)
    states = [[array for name, array in probed.items() if f"weights {step}:" in name] for step in (0, 1, 2)]
    for step, (before, after) in enumerate(itertools.pairwise(states), 1):
        if all(np.array_equal(one, other) for one, other in zip(before, after, strict=True)):
            return f"update() leaves all weights as they are in step {step}"
    broken = [name for name, array in probed.items() if not np.isfinite(array).all()]
    return f"not finite: {', '.join(broken)}" if broken else ""


def _predictions(worker: WorkerProcess, job: Job) -> str:
    file = worker.scratch / "predictions.npy"
    worker.ask("predict", file=str(file))
    workload = workloads.load(job.condition.workload)
    wrong = metrics.wrong(workload, worker.array(file), files.arrays(job.data))
    return f"predictions() gives {wrong}" if wrong else ""


def _said(worker: WorkerProcess, job: Job) -> str:
    settings = worker.ask("first_step")["settings"]
    worker.ask("memory")
    return "" if settings else "settings() says nothing: at least the number of threads changes speed"


def _refuses(job: Job, inputs: Path, patience_s: float, misshapen: bool) -> str:
    """The weights of ``job`` with one that is wrong have to end in a BenchlibError that names it."""
    weights = files.arrays(prepare_weights(job.condition, INITIAL_SEED, inputs))
    name = next(iter(weights)) if misshapen else "nobodys.weight"
    wrong = np.zeros((1, 2, 3, 4, 5), dtype=np.float32)
    folder = inputs / f"weights-conformance-{job.condition.key}-{'misshapen' if misshapen else 'unknown'}"
    files.write(folder, {**weights, name: wrong}, {"workload": job.condition.workload, "note": ""})
    try:
        with WorkerProcess(job.condition, INITIAL_SEED, patience_s) as worker:
            worker.opened()
            worker.ask("build", **{**job.document(), "weights": str(folder)})
    except WorkerFailed as failure:
        refused = failure.failure.exception == BenchlibError.__name__ and name in failure.failure.message
        return "" if refused else f"it ends otherwise: {failure}"
    return f"load() took {name} of shape {wrong.shape}: see check_weights in benchlib.frameworks"


def _waits(condition: Condition, inputs: Path, patience_s: float) -> str:
    seen = timer_check.check(condition, inputs, patience_s)
    if seen.ok or seen.failure:
        return seen.failure
    return (
        f"a timer that stops after synchronize() saw {seen.share:.0%} of work of known duration, and of a few steps "
        f"{seen.share_of_few:.0%}"
    )


def _certified(condition: Condition, inputs: Path, patience_s: float) -> str:
    gated = gate.gated(condition)
    its = gate.reference(gated)
    if missing := availability.available(its.framework, its.device, its.environment):
        return f"it cannot be compared with {its.subject}: {missing}"
    (one,) = gate.run([gated], inputs, patience_s)
    certificate = gate.certify(one)
    if certificate.same:
        return ""
    parted = [f"{one.name}: {one.why}" for one in certificate.checks if not one.ok]
    return certificate.reason or f"it differs from {its.subject}: {', '.join(parted)}"
