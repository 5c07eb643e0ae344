"""What every measurement records of its process: versions, settings, hashes, memory; and that its times can be true."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from benchlib import plugins, variables
from benchlib.cache import Block, Measurement
from benchlib.condition import Condition
from benchlib.provenance import fingerprint, installed, machine
from benchlib.runner.interference import NO_CPU, Watch, hold_still
from benchlib.runner.jobs import Job
from benchlib.runner.processes import OtherCode, WorkerFailed, WorkerProcess

AFTER_IMPORT = "after_import"
"""Of a process's memory: see :func:`memory`."""


def begin(procedure: str, job: Job, **identity: Any) -> Measurement:
    """An empty measurement of ``job``; ``identity`` are its kind, group, file, repetition, role and seed."""
    return Measurement(
        **identity,
        condition=job.condition,
        initial_seed=job.seed,
        started_utc=now(),
        packages=installed.packages(job.condition.framework, job.condition.workload, job.condition.environment),
        machine=machine.describe(),
        code=fingerprint.digest(job.condition, procedure),
        commit=fingerprint.commit(),
    )


def now() -> str:
    """The time, UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def started(measurement: Measurement, worker: WorkerProcess) -> None:
    """What the worker's process was started with: knobs, libraries and devices, and what it did not get."""
    measurement.knobs = worker.surroundings.knobs
    measurement.inherited = worker.surroundings.inherited
    measurement.left_out = worker.surroundings.left_out


def opened(measurement: Measurement, worker: WorkerProcess) -> None:
    """Wait for the import of the framework; versions and memory after it."""
    answer = worker.opened()
    measurement.versions = {**versions(worker.condition), **answer["versions"]}
    measurement.memory = {AFTER_IMPORT: answer["rss_mib"]}


def versions(condition: Condition) -> dict[str, str]:
    """Of Python, a condition's framework, what that imports beside it, its compiler and plug-ins: by name."""
    here = {**installed.versions(condition.framework, condition.environment), **installed.compiler(condition)}
    return {**here, **plugins.named(condition.framework, condition.workload, condition.data)}


def build(worker: WorkerProcess, job: Job) -> None:
    """Have the worker begin to build the job."""
    worker.begin("build", **job.document())


def built(measurement: Measurement, worker: WorkerProcess, job: Job) -> None:
    """Wait until it is built; the weights that the framework now holds must be those of the file."""
    answer = worker.finish("build")
    measurement.built = answer
    require_inputs(worker, job, answer)
    if answer["weights_sha256"] != answer["weights_file_sha256"]:
        raise WorkerFailed(f"the model's weights are not those of {job.weights}: they changed while loading")


def require_inputs(worker: WorkerProcess, job: Job, answer: dict[str, Any]) -> None:
    """The data and the order that a worker says it has (its answer to ``build``) must be those that it was given."""
    given = job.hashes()
    for name in ("data", "order"):
        require_same(worker, name, answer[f"{name}_sha256"], given[name])


def require_same(worker: WorkerProcess, what: str, used: str, given: str) -> None:
    """A worker that used another ``what`` than it was given, by its hash, has failed."""
    if used != given:
        raise worker.failed(f"used another {what} than it was given: its sha256 begins with {used}, not with {given}")


def require_hashed(worker: WorkerProcess, known: Mapping[str, Path]) -> None:
    """What a worker has imported has to be among the hashed files ``known``, by module, or a measurement would outlive
    its model.
    """
    files = worker.ask("imported", beside=variables.worker_folders(os.environ))["files"]
    if unknown := [name for name in files if name not in known]:
        what = f"imported {', '.join(unknown)}, which the hash of the code does not know"
        rule = "a model's file may import workloads and helpers, each by an import statement of its own"
        raise OtherCode(worker.failed(f"{what}: {rule}").failure)
    for name, file in files.items():
        there, here = Path(file).resolve(), known[name].resolve()
        if file and there != here and there.read_bytes() != here.read_bytes():
            what = f"imported {name} from {there}, which is another file than {here}, whose code is hashed"
            remedy = f"take that folder off the path of the environment {worker.condition.environment} (.pth files)"
            raise OtherCode(worker.failed(f"{what}: {remedy}").failure)


def first_step(measurement: Measurement, worker: WorkerProcess, others: list[WorkerProcess]) -> None:
    """Time the first step, compilation included, while ``others`` should sleep, and read back the settings after it."""
    hold_still(others)
    watch = Watch(worker, others, compiles=True)
    answer = worker.ask("first_step")
    by = watch.end().disturbed_by
    starved = worker.condition.device == "cpu" and watch.starved  # an accelerator may compute meanwhile
    if not (math.isfinite(answer["wall_s"]) and answer["wall_s"] > 0):
        raise worker.failed(f"reported impossible times: a first step of {answer['wall_s']!r} s")
    measurement.first_step_s = answer["wall_s"]
    measurement.first_step_disturbed_by = by or (NO_CPU if starved else "")
    measurement.settings = answer["settings"]


def memory(measurement: Measurement, worker: WorkerProcess) -> None:
    """Memory in MiB (2**20 bytes). Of the worker's process: ``after_import`` resident once the framework is imported;
    ``peak`` ever resident; ``steady`` resident after the last step; ``private`` of that what is not a mapped file.
    ``children``: resident in processes that it started (compilers). Of the device, from the framework's allocator:
    ``device_allocated`` now, ``device_peak``.
    """
    answer = worker.ask("memory")
    needed = {name: answer[name] for name in ("peak", "steady", "private")}
    measurement.memory = {**measurement.memory, **needed, **answer, "children": worker.children_mib()}


CLOCK_S = 0.01
"""A block cannot last longer than the parent waited for it, but for this; on a busy machine answers come later."""


def checked(block: Block, window_s: float, alone: bool) -> Block:
    """The block, if its times can be true; a worker that reports impossible ones has failed. ``window_s`` is how long
    the parent waited for it, by a clock of its own; for it ``alone``, so that it cannot be much shorter either.
    """
    wall_s, cpu_s, device_s, cores = block.wall_s, block.cpu_s, block.device_s, psutil.cpu_count()
    if not (math.isfinite(wall_s) and wall_s > 0 and math.isfinite(cpu_s) and cpu_s >= 0 and block.steps > 0):
        wrong = f"{wall_s!r} s wall, {cpu_s!r} s CPU, {block.steps!r} steps"
    elif wall_s > window_s + CLOCK_S or (alone and wall_s < window_s / 2 - 10 * CLOCK_S):
        wrong = f"a block of {wall_s:.3f} s in the {window_s:.3f} s that its answer took: its clock is wrong"
    elif device_s is not None and not 0 <= device_s <= wall_s + CLOCK_S:
        wrong = f"a block of {wall_s:.3f} s by the clock and {device_s!r} s by the device's events"
    elif cpu_s > cores * (wall_s + 10 * CLOCK_S):
        wrong = f"{cpu_s:.3f} s CPU in {wall_s:.3f} s on {cores} cores"
    else:
        return block
    raise WorkerFailed(f"reported impossible times: {wrong}")
