"""Processes that are measured together, in rounds or one after the other: they start side by side, as the import of a
framework takes longer than many a measurement, and one that fails leaves the others alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

import psutil

from benchlib.cache import Measurement, Sample
from benchlib.provenance import accelerators, fingerprint
from benchlib.runner import recording
from benchlib.runner.jobs import Job
from benchlib.runner.processes import WorkerFailed, WorkerProcess


class Sampler:
    """Reads CPU, memory and the accelerator of one worker while the parent waits for it: see :attr:`trace`."""

    def __init__(self, worker: WorkerProcess) -> None:
        self.trace: list[Sample] = []
        self._process, self._worker = worker, worker.cpu
        self._accelerator = accelerators.reader(worker.condition.device, worker.pids, worker.condition.world_size)
        self._last: tuple[float, float, Any] | None = None

    def start(self) -> None:
        """Forget the time since the last sample: the worker was not at work."""
        try:
            self._last = self._read()
        except psutil.Error as error:  # of a group's process, which its launcher has already reaped
            raise self._process.failed(f"died: {error}") from error

    def tick(self) -> None:
        """Take a sample of the time since the last one."""
        try:
            now, cpu, machine_times = self._read()
            rss = self._worker.memory_info().rss / 2**20
        except psutil.Error:
            return  # the worker is gone; whoever waits for its answer finds out
        then, cpu_then, machine_then = self._last
        idle = (machine_times.idle + machine_times.iowait) - (machine_then.idle + machine_then.iowait)
        total = sum(machine_times[:8]) - sum(machine_then[:8])
        if total <= 0 or now <= then:
            return
        reading = asdict(self._accelerator()) if self._accelerator else {}
        self.trace.append(
            Sample(
                at_s=now,
                machine_cpu_percent=100 * (1 - idle / total),
                worker_cores=(cpu - cpu_then) / (now - then),
                rss_mib=rss,
                **{f"accelerator_{name}": value for name, value in reading.items()},
            )
        )
        self._last = (now, cpu, machine_times)

    def _read(self) -> tuple[float, float, Any]:
        times = self._worker.cpu_times()
        return time.perf_counter(), times.user + times.system, psutil.cpu_times()


@dataclass
class Entry:
    """One process while it is measured."""

    measurement: Measurement
    job: Job
    worker: WorkerProcess | None = None
    sampler: Sampler | None = None


def start(entries: Iterable[Entry], patience_s: float) -> None:
    """Start a fresh process for each, and wait until it has imported its framework; what fails in that is recorded."""
    entries = list(entries)
    for entry in entries:
        guarded(entry, lambda e: _start(e, patience_s))
    for entry in entries:
        guarded(entry, lambda e: recording.opened(e.measurement, e.worker))


def build(entries: Iterable[Entry]) -> None:
    """Have each process build its job; what fails in that is recorded."""
    entries = list(entries)
    for entry in entries:  # all at once: PyTorch's first optimizer imports for a second
        guarded(entry, lambda e: e.worker.begin("build", **e.job.document()))
    for entry in entries:
        guarded(entry, lambda e: recording.built(e.measurement, e.worker, e.job))


def guarded(entry: Entry, action: Callable[[Entry], None]) -> None:
    """Do something with a worker that has not failed yet; if it fails now, record it, and end it."""
    if entry.measurement.failure is not None:
        return
    try:
        action(entry)
    except WorkerFailed as failure:
        entry.measurement.failure, entry.measurement.refused = str(failure), failure.failure.is_refusal
        if entry.worker is not None:
            entry.worker.end()


def require_hashed(entry: Entry, procedure: str) -> None:
    """What a process has run has to be what was hashed: else that is recorded, and nothing of what it gave is kept."""
    measurement = entry.measurement
    if measurement.failure is None:
        known = fingerprint.files(entry.job.condition, procedure)
        guarded(entry, lambda e: recording.require_hashed(e.worker, known))
        if measurement.failure is not None:
            measurement.blocks, measurement.epochs, measurement.trace = [], [], []


def end(entries: Iterable[Entry]) -> None:
    """End the processes that were started."""
    for entry in entries:
        if entry.worker is not None:
            entry.worker.end()


def _start(entry: Entry, patience_s: float) -> None:
    entry.worker = WorkerProcess(entry.job.condition, entry.measurement.seed, patience_s)
    for name, value in asdict(entry.worker.surroundings).items():
        setattr(entry.measurement, name, value)
    entry.sampler = Sampler(entry.worker)
