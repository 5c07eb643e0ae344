"""The state of an environment, found by trying. A framework's session is held against the promises of
:class:`benchlib.frameworks.Session`, with the smallest workload that the framework has a file for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchlib import environments, frameworks, scratch, workloads
from benchlib.condition import Condition
from benchlib.equivalence import compare, gate
from benchlib.errors import BenchlibError, NotInThisVersion
from benchlib.interpreters import probe
from benchlib.provenance import installed, knobs
from benchlib.runner import availability, timer_check
from benchlib.runner.jobs import INITIAL_SEED, prepare_job
from benchlib.runner.processes import PATIENCE_S, WorkerFailed, WorkerProcess

IMPORT_S = 300.0  # until a framework has been imported


class Finding(NamedTuple):
    """A line on an environment, and whether it says that something is wrong."""

    says: str
    wrong: bool = False


class Promise(NamedTuple):
    """A promise of a session in one mode; ``why`` is the behaviour seen instead, and empty where it was kept."""

    mode: str
    what: str
    why: str = ""
    refused: bool = False  # this version of the framework has no such mode


def inspect(name: str) -> Iterator[Finding]:
    """Yield the contents of environment ``name``, line by line; a BenchlibError where it is missing or broken."""
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
    if environment.made and (asked := environments.requirements(name)):
        again = f"benchlib environment remove {name}, and create it again"
        yield from (Finding(f"the system has to have: {sentence}") for sentence in asked.system)
        yield from (Finding(f"{says}: {again}", wrong=True) for says in environments.mismatches(asked, environment))


def _inspect_framework(framework: str, environment: str) -> Iterator[Finding]:
    """Can a worker import the framework, which devices can it use, and does its session keep its promises?"""
    try:
        chosen = {"framework": framework, "environment": environment, "mode": frameworks.modes(framework)[0]}
        condition = Condition(workload=_smallest(framework), **chosen)
        with WorkerProcess(condition, 0, IMPORT_S) as worker:
            versions = {**installed.versions(framework, environment), **worker.finish_open()["versions"]}
        yield Finding(f"{framework}: imported; {', '.join(map(' '.join, versions.items()))}")
        for device in frameworks.devices(framework):
            missing = availability.why_absent(framework, device, environment)
            yield Finding(f"{framework}, {device}: {missing or 'usable'}")
        with scratch.scratch("inspection") as inputs:
            promises = list(check(framework, inputs, IMPORT_S, environment=environment))
    except (WorkerFailed, BenchlibError) as error:
        raised = isinstance(error, WorkerFailed) and error.failure.exception  # which says enough without the traceback
        yield Finding(f"{framework}: {error.failure.sentence.splitlines()[0] if raised else error}", wrong=True)
        return
    yield from (Finding(f"{framework}: {one.why}") for one in promises if one.refused)
    for mode in dict.fromkeys(one.mode for one in promises if not one.refused):
        whys = [f"{one.what}: {one.why}" for one in promises if one.mode == mode and one.why]
        yield from (Finding(f"{framework} {mode}: not so: {why}", wrong=True) for why in whys)
        if not whys:
            yield Finding(f"{framework} {mode}: all promises of a session are kept")


def check(
    framework: str, inputs: Path, patience_s: float = PATIENCE_S, modes: Sequence[str] = (), **choices: str
) -> Iterator[Promise]:
    """Try each promise of a framework's session, in ``modes`` (none: all); ``choices`` are more, such as ``device``."""
    workload, inputs = _smallest(framework), Path(inputs).resolve()  # workers work elsewhere
    conditions = [
        Condition(workload=workload, framework=framework, mode=mode, **choices)
        for mode in modes or frameworks.modes(framework)
    ]
    availability.require(conditions)
    for condition in conditions:
        yield from _promises(condition, inputs, patience_s)


def _smallest(framework: str) -> str:
    """The training workload with the fewest weights, if possible one whose optimizer keeps a state."""
    trained = [one for one in map(workloads.load, workloads.names()) if one.kind == "training"]
    offered = [one for one in trained if framework in one.frameworks()]
    if not offered:
        file = f"workloads/NAME/{framework}.py"
        raise BenchlibError(f"framework {framework!r}: no workload that trains has a file for it; write {file} for one")
    shapes = {one.name: [weight.shape for weight in one.weights(one.values({})).values()] for one in offered}
    return min(offered, key=lambda one: (not one.optimizer_state, sum(map(math.prod, shapes[one.name])))).name


def _promises(condition: Condition, inputs: Path, patience_s: float) -> Iterator[Promise]:
    mode = condition.mode
    job = prepare_job(compare.neutralise(gate.adapt(condition)), INITIAL_SEED, inputs)
    works, why = "starts, builds a model, and makes a step", ""
    try:
        with WorkerProcess(job.condition, INITIAL_SEED, patience_s, knobs.of_gate(job.condition)) as worker:
            worker.finish_open()
            built = worker.ask("build", **job.document())
            worker.ask("first_step")
            settings = worker.ask("memory")["settings"]
    except WorkerFailed as failure:
        refused = failure.failure.exception == NotInThisVersion.__name__
        yield Promise(mode, works, failure.failure.message if refused else str(failure), refused)
        return  # whatever else is tried needs a session that works
    yield Promise(mode, works)
    if built["weights_sha256"] != built["weights_file_sha256"]:
        why = "weights() gives other numbers, names or shapes than load() was given"
    yield Promise(mode, "weights are read back as they were loaded", why)
    why = "" if settings else "settings() says nothing: at least the number of threads changes speed"
    yield Promise(mode, "settings are said", why)
    yield Promise(mode, "synchronize waits for all work", _waits(condition, inputs, patience_s))
    yield Promise(mode, f"{condition.workload} is the reference's model", _certified(condition, inputs, patience_s))


def _waits(condition: Condition, inputs: Path, patience_s: float) -> str:
    seen = timer_check.check(condition, inputs, patience_s)
    if seen.ok or seen.failure:
        return seen.failure
    saw = f"{seen.share:.0%} of work of known duration, and {seen.share_of_few:.0%} of a few steps"
    return f"a timer that stops after synchronize() saw {saw}"


def _certified(condition: Condition, inputs: Path, patience_s: float) -> str:
    gated = gate.adapt(condition)
    its = gate.reference(gated)
    if missing := availability.why_absent(its.framework, its.device, its.environment):
        return f"it cannot be compared with {its.subject}: {missing}"
    (one,) = gate.run({gated: condition.batch_size}, inputs, patience_s)
    certificate = gate.certify(one)
    return "" if certificate.same else certificate.reason or f"it differs from {its.subject}: {certificate.why}"
