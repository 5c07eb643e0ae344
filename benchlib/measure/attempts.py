"""Attempts at a measurement: which of them are on disk, and which is still to come. What fails is tried once more."""

from __future__ import annotations

from dataclasses import dataclass, replace

from benchlib.measure.jobs import Job, key
from benchlib.store import ATTEMPTS, Measurement, Store

Members = list[tuple[str, Job]]
"""Processes that are measured together: by role and job."""


@dataclass(frozen=True)
class Attempt:
    """One try at measuring processes together."""

    group: str  # key of the comparison or of the training run
    repetition: int
    number: int  # 0; or 1, of those that failed
    members: Members

    @property
    def file(self) -> str:
        """Key of the file that their measurements go to."""
        members = [(role, job.condition.key) for role, job in self.members]
        return key(group=self.group, repetition=self.repetition, attempt=self.number, members=members)


def stored(store: Store, group: str, repetition: int, members: Members) -> tuple[list[Measurement], Attempt | None]:
    """What is on disk of a repetition, and the attempt that is missing (None: none is, or all have failed)."""
    measurements: list[Measurement] = []
    for number in range(ATTEMPTS):
        attempt = Attempt(group, repetition, number, members)
        of_attempt = store.usable(attempt.file)
        if of_attempt is None:
            # Of an attempt that failed the file may have been cleaned away, and the next one's be there.
            if number + 1 < ATTEMPTS and store.path(replace(attempt, number=number + 1).file).exists():
                continue
            return measurements, attempt
        measurements += of_attempt
        members = _to_try_again(members, of_attempt)
        if not members:
            break
    return measurements, None


def _to_try_again(members: Members, measured: list[Measurement]) -> Members:
    """Of ``members`` those whose measurement failed, and the baseline that they are compared with; all, if it is the
    baseline that failed.
    """
    if all(m.ok for m in measured):
        return []
    if any(m.role == "baseline" and not m.ok for m in measured):
        return members
    return [member for member, m in zip(members, measured, strict=True) if not m.ok or m.role == "baseline"]
