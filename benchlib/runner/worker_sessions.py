"""Processes that are measured together: they start side by side, and one that fails leaves the others alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import psutil

from benchlib.cache import Measurement, Sample
from benchlib.provenance import accelerators, fingerprint
from benchlib.runner import recording
from benchlib.runner.interference import Pace
from benchlib.runner.jobs import Job
from benchlib.runner.processes import WorkerFailed, WorkerProcess

LEAST_S = 0.01  # between two samples: clocks of CPU time tick a hundred times a second


class Sampler:
    """Reads CPU, memory and the accelerator of one worker while the parent waits for it: see :attr:`trace`."""

    def __init__(self, worker: WorkerProcess) -> None:
        self.trace: list[Sample] = []
        self._process, self._worker = worker, worker.cpu
        self._accelerator = accelerators.reader(worker.condition.device, worker.pids, worker.condition.world_size)
        self._last = (0.0, 0.0)  # when, and the CPU seconds of the worker then

    def start(self) -> None:
        """Forget the time since the last sample: the worker was not at work."""
        try:
            self._last = self._read()
        except psutil.Error as error:  # of a group's process, which its launcher has already reaped
            raise self._process.give_up(f"died: {error}") from error
        psutil.cpu_percent()  # its next value is since now

    def tick(self) -> None:
        """Take a sample of the time since the last one."""
        try:
            now, cpu = self._read()
            rss = self._worker.memory_info().rss / 2**20
        except psutil.Error:
            return  # the worker is gone; the parent finds out when it waits for the answer
        if (passed := now - self._last[0]) < LEAST_S:
            return
        reading = asdict(self._accelerator()) if self._accelerator else {}
        accelerator = {f"accelerator_{name}": value for name, value in reading.items()}
        used = {"machine_cpu_percent": psutil.cpu_percent(), "worker_cores": (cpu - self._last[1]) / passed}
        self.trace.append(Sample(at_s=now, rss_mib=rss, **used, **accelerator))
        self._last = (now, cpu)

    def _read(self) -> tuple[float, float]:
        times = self._worker.cpu_times()
        return time.perf_counter(), times.user + times.system


@dataclass
class Entry:
    """One process while it is measured."""

    measurement: Measurement
    job: Job
    worker: WorkerProcess | None = None
    sampler: Sampler | None = None
    steps: int = 1  # of a block in a comparison
    step_s: float = 0.0  # about
    warm_up: Pace | None = None


def start(entries: list[Entry], patience_s: float) -> None:
    """Start a fresh process for each, and wait until it has imported its framework; failures are recorded."""
    for entry in entries:
        run_guarded(entry, _start, patience_s)
    for entry in entries:
        run_guarded(entry, lambda e: recording.record_import(e.measurement, e.worker))


def build(entries: list[Entry]) -> None:
    """Have each process build its job; failures are recorded."""
    for entry in entries:  # all at once: PyTorch's first optimizer imports for a second
        run_guarded(entry, lambda e: e.worker.begin("build", **e.job.document()))
    for entry in entries:
        run_guarded(entry, lambda e: recording.record_build(e.measurement, e.worker, e.job))


def run_guarded(entry: Entry, action: Callable[..., None], *details: Any) -> None:
    """Do something with a worker that has not failed yet; if it fails now, record it, and end it."""
    if entry.measurement.failure is not None:
        return
    try:
        action(entry, *details)
    except WorkerFailed as failure:
        entry.measurement.failure, entry.measurement.refused = str(failure), failure.failure.is_refusal
        if entry.worker is not None:
            entry.worker.end()


def require_hashed(entry: Entry, procedure: str) -> None:
    """Require that a process has run the hashed code; else record a failure, and drop its results."""
    measurement = entry.measurement
    if measurement.failure is None:
        known = fingerprint.files(entry.job.condition, procedure)
        run_guarded(entry, lambda e: recording.require_hashed(e.worker, known))
        if measurement.failure is not None:
            measurement.blocks, measurement.epochs, measurement.trace = [], [], []


def end(entries: list[Entry]) -> None:
    """End the processes that were started."""
    for entry in entries:
        if entry.worker is not None:
            entry.worker.end()


def _start(entry: Entry, patience_s: float) -> None:
    entry.worker = WorkerProcess(entry.job.condition, entry.measurement.seed, patience_s)
    for name, value in asdict(entry.worker.surroundings).items():
        setattr(entry.measurement, name, value)
    entry.sampler = Sampler(entry.worker)
