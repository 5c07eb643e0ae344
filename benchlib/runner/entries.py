"""Processes that are measured together, in rounds or one after the other: they start side by side, as the import of a
framework takes longer than many a measurement, and one that fails leaves the others alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from benchlib.provenance import fingerprint
from benchlib.runner import recording
from benchlib.runner.jobs import Job
from benchlib.runner.processes import OtherCode, WorkerFailed, WorkerProcess
from benchlib.runner.sampling import Sampler
from benchlib.store import Measurement


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
        guarded(entry, lambda e: recording.build(e.worker, e.job))
    for entry in entries:
        guarded(entry, lambda e: recording.built(e.measurement, e.worker, e.job))


def guarded(entry: Entry, action: Callable[[Entry], None]) -> None:
    """Do something with a worker that has not failed yet; if it fails now, record it, and end it. Whatever else goes
    wrong is no worker's fault, and raises.
    """
    if entry.measurement.failure is not None:
        return
    try:
        action(entry)
    except WorkerFailed as failure:
        entry.measurement.failure, entry.measurement.refused = str(failure), failure.failure.is_refusal
        if entry.worker is not None:
            entry.worker.end()


def require_hashed(entry: Entry, procedure: str) -> None:
    """What a process has run has to be what was hashed, as the module ``procedure`` says: else that is recorded, and
    nothing of what it gave is kept, for it is of other code.
    """
    guarded(entry, lambda e: _require_hashed(e, fingerprint.files(e.job.condition, procedure)))


def _require_hashed(entry: Entry, known: dict[str, Path]) -> None:
    try:
        recording.require_hashed(entry.worker, known)
    except OtherCode:
        entry.measurement.blocks, entry.measurement.epochs, entry.measurement.trace = [], [], []
        raise


def end(entries: Iterable[Entry]) -> None:
    """End the processes that were started."""
    for entry in entries:
        if entry.worker is not None:
            entry.worker.end()


def _start(entry: Entry, patience_s: float) -> None:
    entry.worker = WorkerProcess(entry.job.condition, entry.measurement.seed, patience_s)
    recording.started(entry.measurement, entry.worker)
    entry.sampler = Sampler(entry.worker)
