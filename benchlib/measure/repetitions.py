"""Comparisons that have been asked for: which of their repetitions are there, and which are due."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

from benchlib.analysis.comparison import Comparison
from benchlib.measure import record, rounds
from benchlib.measure.attempts import Attempt, Members, stored
from benchlib.measure.jobs import Job, key
from benchlib.measure.own_code import Unchanged
from benchlib.store import Measurement, Store


@dataclass(eq=False)
class Asked:
    """A comparison that has been asked for: what is there of it, and what may come."""

    comparison: Comparison
    group: str  # its key
    members: Members
    settings: rounds.Settings
    code: Unchanged  # of the comparison and of its certificates
    repetitions: int = 0  # that are there, whatever came of them
    again: list[Attempt] = field(default_factory=list)  # of what has failed once

    @classmethod
    def of(cls, comparison: Comparison, jobs: list[Job], settings: rounds.Settings, code: Unchanged) -> Asked:
        """With its jobs: of the baseline, the control, the other conditions; or none."""
        roles = ["baseline", "control", *["condition"] * (len(jobs) - 2)][: len(jobs)]
        members = [job.depends_on("rounds") for job in jobs]
        group = key(kind="comparison", settings=settings.model_dump(), members=members)
        return cls(comparison, group, list(zip(roles, jobs, strict=True)), settings, code)

    def read(self, store: Store) -> None:
        """Take in all that is on disk of it."""
        for repetition in itertools.count():
            measurements, attempt = stored(store, self.group, repetition, self.members)
            self.comparison.measurements.extend(measurements)
            if attempt is None:
                continue
            if not attempt.number:
                self.repetitions = repetition
                break
            self.again.append(attempt)

    def repeat(self, store: Store, patience_s: float, keep: Callable[[list[Measurement]], None]) -> list[Measurement]:
        """Measure the next repetition, which goes to ``keep``; what failed before comes first. What another process has
        measured meanwhile is read from ``store``.
        """
        attempt = self.again.pop(0) if self.again else Attempt(self.group, self.repetitions, 0, self.members)
        measured = store.usable(attempt.file)
        if measured is None:
            self.code.require()
            measured = [
                record.begin("comparison", "rounds", attempt, role, job, attempt.repetition)
                for role, job in attempt.members
            ]
            jobs = [job for _, job in attempt.members]
            rounds.measure_repetition(measured, jobs, self.settings, self.comparison.plan.rounds, patience_s)
            self.code.require()
            keep(measured)
        self.comparison.measurements.extend(measured)
        self.repetitions = max(self.repetitions, attempt.repetition + 1)
        return measured

    @property
    def file(self) -> str:
        """Key of the next repetition's file."""
        return Attempt(self.group, self.repetitions, 0, self.members).file

    @property
    def left(self) -> int:
        """About how many repetitions are still to come."""
        return len(self.again) + max(1, self.comparison.plan.more_processes)


def line(measured: list[Measurement]) -> str:
    """A repetition in a line: each condition's shortest step, or that it failed."""
    parts = []
    for m in measured:
        name = "A/A" if m.role == "control" else m.condition.subject
        steps_s = [block.wall_s / block.steps for block in m.blocks]
        parts.append(f"{name} {1000 * min(steps_s):.3g} ms" if m.ok else f"{name} failed")
    return ", ".join(parts)
