"""What is in an environment, found by trying, and whether a framework's session does what
:class:`benchlib.frameworks.Session` promises.

Each promise that can be seen from outside is tried with the smallest workload that the framework has a file for.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchlib import environments, frameworks, metrics, scratch, workloads
from benchlib.condition import Condition
from benchlib.data.weights import prepare_weights
from benchlib.environments import Environment
from benchlib.equivalence import compare, gate, trials
from benchlib.equivalence.tolerances import tolerances
from benchlib.errors import BenchlibError
from benchlib.interpreters import probe
from benchlib.provenance import installed, knobs
from benchlib.runner import availability, timer_check
from benchlib.runner.jobs import INITIAL_SEED, Job, prepare_job
from benchlib.runner.processes import PATIENCE_S, WorkerFailed, WorkerProcess
from benchlib.worker import files

IMPORT_S = 300.0
"""Until a framework has been imported."""


@dataclass(frozen=True)
class Finding:
    """A line on an environment, and whether it says that something is wrong."""

    says: str
    wrong: bool = False


@dataclass(frozen=True)
class Promise:
    """A promise of a session in one mode; ``why`` says what was seen instead, and is empty where it was kept."""

    mode: str
    what: str
    why: str = ""


def inspect(name: str) -> Iterator[Finding]:
    """What is in the environment ``name``, a line at a time; a BenchlibError where it is not there or cannot answer."""
    environment = environments.find(name)
    yield Finding(f"environment {name}: Python {probe(environment.python, ()).python}, {environment.python}")
    offered = [framework for framework in frameworks.names() if installed.offers(name, framework)]
    for framework in frameworks.names():
        if framework in offered:
            yield from _inspect_framework(framework, name)
        else:
            yield Finding(f"{framework}: {frameworks.package(framework)} is not installed")
    if not offered:
        yield Finding("it offers no framework", wrong=True)
    if environment.made:
        yield from _inspect_requirements(environment)


def _inspect_framework(framework: str, environment: str) -> Iterator[Finding]:
    """Can a worker import the framework, which devices can it use, and does its session keep its promises?"""
    try:
        condition = Condition(workload=_smallest(framework), framework=framework, environment=environment)
        with WorkerProcess(condition, 0, IMPORT_S) as worker:
            versions = {**installed.versions(framework, environment), **worker.opened()["versions"]}
        listed = ", ".join(f"{name} {version}" for name, version in versions.items())
        yield Finding(f"{framework}: imported; {listed}")
        for device in frameworks.devices(framework):
            missing = availability.available(framework, device, environment)
            yield Finding(f"{framework}, {device}: {missing or 'usable'}")
        with scratch.scratch("inspection") as inputs:
            promises = check(framework, inputs, IMPORT_S, environment=environment)
    except (WorkerFailed, BenchlibError) as error:
        raised = isinstance(error, WorkerFailed) and error.failure.exception  # which says enough without the traceback
        yield Finding(f"{framework}: {error.failure.sentence.splitlines()[0] if raised else error}", wrong=True)
        return
    for mode in dict.fromkeys(one.mode for one in promises):
        whys = [f"{one.what}: {one.why}" for one in promises if one.mode == mode and one.why]
        yield from (Finding(f"{framework} {mode}: not so: {why}", wrong=True) for why in whys)
        if not whys:
            yield Finding(f"{framework} {mode}: all promises of a session are kept")


def _inspect_requirements(environment: Environment) -> Iterator[Finding]:
    """What of the file that an environment was made of is not so."""
    asked = environments.requirements(environment.name)
    if asked is None:
        yield Finding(f"{environments.requirements_file(environment.name)}: is gone; it was made of that", wrong=True)
        return
    again = f"benchlib environment remove {environment.name}, and create it again"
    yield from (Finding(f"the system has to have: {sentence}") for sentence in asked.system)
    yield from (Finding(f"{says}: {again}", wrong=True) for says in environments.missing(asked, environment))


def check(
    framework: str, inputs: Path, patience_s: float = PATIENCE_S, modes: Sequence[str] = (), **choices: str
) -> list[Promise]:
    """Try each promise of a framework's session, in ``modes`` (none: all); ``choices`` are more, such as ``device``."""
    workload, inputs = _smallest(framework), Path(inputs).resolve()  # workers work elsewhere
    conditions = [
        Condition(workload=workload, framework=framework, mode=mode, **choices)
        for mode in modes or frameworks.modes(framework)
    ]
    availability.require(conditions)
    return [promise for condition in conditions for promise in _promises(condition, inputs, patience_s)]


def _smallest(framework: str) -> str:
    """The training workload with the fewest weights, of those whose optimizer keeps a state if there are any."""
    trained = [one for one in map(workloads.load, workloads.names()) if one.kind == "training"]
    offered = [one for one in trained if framework in one.frameworks()]
    if not offered:
        raise BenchlibError(
            f"framework {framework!r}: no workload that trains has a file for it; write workloads/NAME/{framework}.py "
            f"for one of {', '.join(workloads.names())}, or for one of yours"
        )

    def size(one: workloads.Workload) -> int:
        return sum(int(np.prod(weight.shape)) for weight in one.weights(one.values({})).values())

    return min(offered, key=lambda one: (not one.optimizer_state, size(one))).name


def _promises(condition: Condition, inputs: Path, patience_s: float) -> Iterator[Promise]:
    mode = condition.mode
    job = prepare_job(compare.neutral(gate.gated(condition)), INITIAL_SEED, inputs)
    what = "starts, and says its versions"
    try:
        with WorkerProcess(job.condition, INITIAL_SEED, patience_s, knobs.of_gate(job.condition)) as worker:
            worker.opened()
            yield Promise(mode, what)
            for what, ask in {
                "weights are read back as they were loaded": _weights,
                "outputs and gradients have the shapes of the model, and are numbers": _shapes,
                "load forgets all that steps have left: the optimizer's state, running statistics": _reset,
                "predictions are one for each test sample": _predictions,
                "settings and memory are said": _settings,
                "update takes the optimizer's steps with given gradients, and dropouts shows what is dropped": _probe,
            }.items():
                yield Promise(mode, what, ask(worker, job))
    except WorkerFailed as failure:
        yield Promise(mode, what, str(failure))
        return  # whatever else is tried needs a session that works
    yield Promise(mode, "a weight that the model does not have is refused", _refuses(job, inputs, patience_s, False))
    yield Promise(mode, "a weight of another shape is refused", _refuses(job, inputs, patience_s, misshapen=True))
    yield Promise(mode, "synchronize waits for all work", _waits(condition, inputs, patience_s))
    yield Promise(mode, f"{condition.workload} is the reference's model", _certified(condition, inputs, patience_s))


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
    return _not_finite(computed)


def _not_finite(arrays: dict[str, np.ndarray]) -> str:
    broken = [name for name, array in arrays.items() if not np.isfinite(array).all()]
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
    return _not_finite(probed)


def _predictions(worker: WorkerProcess, job: Job) -> str:
    file = worker.scratch / "predictions.npy"
    worker.ask("predict", file=str(file))
    workload = workloads.load(job.condition.workload)
    wrong = metrics.wrong(workload, worker.arrays(file, np.load), files.arrays(job.data))
    return f"predictions() gives {wrong}" if wrong else ""


def _settings(worker: WorkerProcess, job: Job) -> str:
    settings = worker.ask("first_step")["settings"]
    worker.ask("memory")
    return "" if settings else "settings() says nothing: at least the number of threads changes speed"


def _refuses(job: Job, inputs: Path, patience_s: float, misshapen: bool) -> str:
    """Does a wrong one among the weights of ``job`` end in a BenchlibError that names it?"""
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
    saw = f"{seen.share:.0%} of work of known duration, and {seen.share_of_few:.0%} of a few steps"
    return f"a timer that stops after synchronize() saw {saw}"


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
