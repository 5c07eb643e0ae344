"""What is in an environment, seen by trying: a worker of each framework is started in it, and its session is asked to
keep what it promises (``benchlib.conformance``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchlib import conformance, environments, frameworks, scratch, workloads
from benchlib.condition import Condition
from benchlib.environments import Environment
from benchlib.errors import BenchlibError
from benchlib.interpreters import probe
from benchlib.provenance import installed
from benchlib.runner import availability
from benchlib.runner.processes import WorkerFailed, WorkerProcess

PATIENCE_S = 300.0
"""Until a framework has been imported."""


@dataclass(frozen=True)
class Finding:
    """A line on an environment, and whether it says that something is wrong."""

    says: str
    wrong: bool = False


def inspect(name: str) -> Iterator[Finding]:
    """What the environment ``name`` is, what each framework can use in it, and what of its requirements is missing, a
    line at a time. A BenchlibError where it is not there or cannot say anything.
    """
    environment = environments.find(name)
    yield Finding(f"environment {name}: Python {probe(environment.python, ()).python}, {environment.python}")
    there = [one for one in frameworks.names() if installed.offers(name, one)]
    for framework in frameworks.names():
        if framework not in there:
            yield Finding(f"{framework}: {frameworks.package(framework)} is not installed")
            continue
        opened = _opened(framework, name)
        yield opened
        for device in () if opened.wrong else frameworks.devices(framework):
            missing = availability.available(framework, device, name)
            yield Finding(f"{framework}, {device}: {missing or 'usable'}")
        if not opened.wrong:
            yield from _of_session(framework, name)
    if not there:
        yield Finding("it offers no framework", wrong=True)
    if environment.made:
        yield from _of_requirements(environment)


def _opened(framework: str, environment: str) -> Finding:
    """A worker imports the framework's file of benchlib, and numpy."""
    workload = next((name for name in workloads.names() if framework in frameworks.of(workloads.load(name))), None)
    if workload is None:
        return Finding(
            f"{framework}: no workload has a file for it, to try it with: write workloads/NAME/{framework}.py for one "
            f"of {', '.join(workloads.names())}, or for one of yours",
            wrong=True,
        )
    condition = Condition(workload=workload, framework=framework, environment=environment)
    try:
        with WorkerProcess(condition, 0, PATIENCE_S) as worker:
            versions = {**installed.versions(framework, environment), **worker.opened()["versions"]}
    except WorkerFailed as failure:
        # What its framework raised says enough without the traceback.
        raised = failure.failure.sentence.splitlines()[0] if failure.failure.exception else None
        return Finding(f"{framework}: {raised or failure}", wrong=True)
    except BenchlibError as error:
        return Finding(f"{framework}: {error}", wrong=True)
    return Finding(f"{framework}: imported; {', '.join(f'{name} {version}' for name, version in versions.items())}")


def _of_session(framework: str, environment: str) -> Iterator[Finding]:
    """Does the framework's session keep its promises here, and see its timer all the work?"""
    with scratch.scratch("inspection") as inputs:
        try:
            rows = conformance.check(framework, inputs, PATIENCE_S, environment=environment)
        except BenchlibError as error:
            yield Finding(f"{framework}: {error}", wrong=True)
            return
    for mode in dict.fromkeys(row.mode for row in rows):
        of_mode = [row for row in rows if row.mode == mode]
        broken = [row for row in of_mode if not row.passed]
        yield from (Finding(f"{framework} {mode}: not so: {row.what}: {row.why}", wrong=True) for row in broken)
        if not broken:
            kept = "promises of a session are kept, its timer and a model's certificate among them"
            yield Finding(f"{framework} {mode}: {len(of_mode)} {kept}")


def _of_requirements(environment: Environment) -> Iterator[Finding]:
    asked = environments.requirements(environment.name)
    if asked is None:
        yield Finding(f"{environments.requirements_file(environment.name)}: is gone; it was made of that", wrong=True)
        return
    again = f"benchlib environment remove {environment.name}, and create it again"
    for sentence in asked.system:
        yield Finding(f"the system has to have: {sentence}")
    for says in environments.missing(asked, environment):
        yield Finding(f"{says}: {again}", wrong=True)
