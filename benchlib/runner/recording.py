"""The records of a process in its measurement: versions, settings, hashes, memory; and checks of its times."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchlib import env_vars, plugins
from benchlib.cache import Block, Measurement
from benchlib.condition import Condition
from benchlib.provenance import fingerprint, installed, machine
from benchlib.runner.interference import LEAST_CORES, LEAST_S, NO_CPU, Watch, hold_still
from benchlib.runner.jobs import Job
from benchlib.runner.processes import WorkerFailed, WorkerProcess


def begin(procedure: str, job: Job, **identity: Any) -> Measurement:
    """An empty measurement of ``job``; ``identity`` are its kind, group, file, repetition, role and seed."""
    one = job.condition
    packages = installed.packages(one.framework, one.workload, one.environment)
    code = {"code": fingerprint.digest(one, procedure), "commit": fingerprint.commit()}
    about = {"condition": one, "initial_seed": job.seed, "started_utc": utc_now(), "machine": machine.describe()}
    return Measurement(**identity, **about, **code, packages=packages)


def utc_now() -> str:
    """The time, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def record_import(measurement: Measurement, worker: WorkerProcess) -> None:
    """Wait for the import of the framework; versions and memory after it."""
    answer = worker.finish_open()
    measurement.versions = {**versions(worker.condition), **answer["versions"]}
    measurement.memory = {"after_import": answer["rss_mib"]}  # see ``memory``


def versions(condition: Condition) -> dict[str, str]:
    """The versions of Python, the framework, its imports, its compiler and plug-ins, by name."""
    here = {**installed.versions(condition.framework, condition.environment), **installed.compiler(condition)}
    return {**here, **plugins.of_condition(condition.framework, condition.workload, condition.data)}


def record_build(measurement: Measurement, worker: WorkerProcess, job: Job) -> None:
    """Wait until the job is built; the weights that the framework now holds must be those of the file."""
    measurement.built = worker.finish("build")
    require_inputs(worker, job, measurement.built)
    require_same(worker, "weights", measurement.built["weights_sha256"], measurement.built["weights_file_sha256"])


def require_inputs(worker: WorkerProcess, job: Job, answer: dict[str, Any]) -> None:
    """The data and the order that a worker says it has (its answer to ``build``) must be those that it was given."""
    given = job.hashes()
    for name in ("data", "order"):
        require_same(worker, name, answer[f"{name}_sha256"], given[name])


def require_same(worker: WorkerProcess, what: str, used: str, given: str) -> None:
    """A worker that used another ``what`` than it was given, by its hash, has failed."""
    if used != given:
        raise worker.give_up(f"used another {what} than it was given: its sha256 begins with {used}, not with {given}")


def require_hashed(worker: WorkerProcess, known: Mapping[str, Path]) -> None:
    """Require that all imports of a worker are among the hashed files ``known``, by module: they are in the key."""
    files = worker.ask("imported", beside=env_vars.worker_folders(os.environ))["files"]
    # A worker has imported the package of each workload that a plug-in adds a file to, whatever it was asked for.
    extended = {name for name in files if len(getattr(sys.modules.get(name), "__path__", ())) > 1}
    if unknown := [name for name in files if name not in known and name not in extended]:
        what = f"imported {', '.join(unknown)}, which the hash of the code does not know"
        rule = "a model's file may import workloads and helpers, by import statements of its own"
        raise worker.give_up(f"{what}: {rule}")
    for name, file in ((name, file) for name, file in files.items() if name in known):
        there, here = Path(file).resolve(), known[name].resolve()
        if not file:
            raise worker.give_up(f"has {name}, but not by importing {here}, whose code is hashed: import it by name")
        if there != here and not (there.is_file() and there.read_bytes() == here.read_bytes()):
            what = f"imported {name} from {there}, which is another file than {here}, whose code is hashed"
            remedy = f"take that folder off the path of the environment {worker.condition.environment} (.pth files)"
            raise worker.give_up(f"{what}: {remedy}")


def first_step(measurement: Measurement, worker: WorkerProcess, others: list[WorkerProcess]) -> None:
    """Time the first step, compilation included, while ``others`` should sleep."""
    hold_still(others)
    watch = Watch(worker, others, compiles=True)
    answer = worker.ask("first_step")
    by = watch.end().disturbed_by
    starved = worker.condition.device == "cpu" and LEAST_CORES * watch.window_s - watch.own_s > LEAST_S
    if not (math.isfinite(answer["wall_s"]) and answer["wall_s"] > 0):
        raise worker.give_up(f"reported impossible times: a first step of {answer['wall_s']!r} s")
    measurement.first_step_s = answer["wall_s"]
    measurement.first_step_disturbed_by = by or (NO_CPU if starved else "")


def memory(measurement: Measurement, worker: WorkerProcess) -> None:
    """The settings after the last step, and memory in MiB (2**20 bytes). ``after_import`` is resident in the worker's
    process once the framework is imported, ``steady`` after the last step. ``private`` is the part of ``steady``
    without mapped files; ``peak`` the most ever. ``children`` is resident in processes that it started (compilers). Of
    the device, from the framework's allocator: ``device_allocated`` now, ``device_peak``.
    """
    answer = worker.ask("memory")
    answer["children"] = sum(worker.map_children(lambda child: child.memory_info().rss / 2**20))
    measurement.settings, measurement.memory = answer.pop("settings"), {**measurement.memory, **answer}


CLOCK_S = 0.01  # by so much a block may last longer than the parent waited for it


def require_plausible(block: Block, window_s: float, alone: bool) -> Block:
    """The block, if its times can be true. ``window_s`` is the time that the parent waited for it, by its own clock. If
    it waited for this block ``alone``, the block cannot be much shorter either.
    """
    wall_s = block.wall_s
    if not (wall_s > 0 and math.isfinite(wall_s + block.cpu_s)):
        raise WorkerFailed(f"reported impossible times: {wall_s!r} s wall, {block.cpu_s!r} s CPU")
    if wall_s > window_s + CLOCK_S or (alone and wall_s < window_s / 2 - 10 * CLOCK_S):
        took = f"a block of {wall_s:.3f} s in the {window_s:.3f} s that its answer took"
        raise WorkerFailed(f"reported impossible times: {took}: its clock is wrong")
    return block
