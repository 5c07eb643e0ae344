"""The repetitions of a comparison: those that are there, and those that are due."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchlib.cache import Measurement, Store
from benchlib.provenance.fingerprint import Unchanged
from benchlib.runner import recording, rounds
from benchlib.runner.jobs import Job, key
from benchlib.stats.comparison import Comparison


@dataclass(eq=False)
class Asked:
    """A requested comparison: its measurements so far, and the repetitions that may follow."""

    comparison: Comparison
    group: str  # its key
    members: list[tuple[str, Job]]  # of a repetition, by role
    settings: rounds.RoundSettings
    code: Unchanged  # of the comparison and of its certificates
    repetitions: int = 0  # that are there, whatever came of them

    @classmethod
    def create(cls, comparison: Comparison, jobs: list[Job], settings: rounds.RoundSettings, code: Unchanged) -> Asked:
        """Create it with its jobs: the baseline's, the control's, the other conditions'; or none."""
        roles = ["baseline", "control", *["condition"] * (len(jobs) - 2)][: len(jobs)]
        members = [job.depends_on("rounds") for job in jobs]
        group = key(kind="comparison", settings=settings.model_dump(), members=members)
        return cls(comparison, group, list(zip(roles, jobs, strict=True)), settings, code)

    def read(self, store: Store) -> None:
        """Read all repetitions that are on disk."""
        while (measured := store.load_or_set_aside(self.file)) is not None:
            self._add(measured)

    def repeat(self, store: Store, patience_s: float, keep: Callable[[list[Measurement]], None]) -> list[Measurement]:
        """Measure the next repetition, which goes to ``keep``, unless another process has meanwhile."""
        measured = store.load_or_set_aside(self.file)
        if measured is None:
            self.code.require()
            place = {"kind": "comparison", "group": self.group, "file": self.file, "repetition": self.repetitions}
            place["seed"] = self.repetitions
            measured = [recording.begin("rounds", job, role=role, **place) for role, job in self.members]
            jobs = [job for _, job in self.members]
            rounds.measure_repetition(measured, jobs, self.settings, self.comparison.plan.rounds, patience_s)
            self.code.require()
            keep(measured)
        self._add(measured)
        return measured

    @property
    def file(self) -> str:
        """Key of the next repetition's file."""
        return key(group=self.group, repetition=self.repetitions)

    @property
    def repetitions_left(self) -> int:
        """About how many repetitions are still to come."""
        return max(1, self.comparison.plan.more_processes)

    def _add(self, measured: list[Measurement]) -> None:
        self.comparison.measurements.extend(measured)
        self.repetitions += 1


def line(measured: list[Measurement]) -> str:
    """A repetition in a line: each condition's mean step, or that it failed."""
    parts = []
    for m in measured:
        name = "A/A" if m.role == "control" else m.condition.subject
        seconds, steps = (sum(getattr(block, of) for block in m.blocks) for of in ("wall_s", "steps"))
        parts.append(f"{name} {1000 * seconds / steps:.3g} ms" if m.ok else f"{name} failed")
    return ", ".join(parts)
