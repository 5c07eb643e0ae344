"""Comparisons that have been asked for: which of their repetitions are there, which are due, and how several are
measured in the same processes.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
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

    def add(self, measurements: list[Measurement], attempt: Attempt) -> None:
        self.comparison.measurements.extend(measurements)
        self.repetitions = max(self.repetitions, attempt.repetition + 1)

    @property
    def left(self) -> int:
        """About how many repetitions are still to come."""
        return len(self.again) + max(1, self.comparison.plan.more_processes)

    @property
    def came_first(self) -> int:
        """In so many repetitions its conditions were the first of their processes."""
        every = {m.file for m in self.comparison.measurements}
        return len(every - {m.file for m in self.comparison.measurements if m.hosted_after})

    @property
    def hosts(self) -> tuple[str | None, ...]:
        """What the processes of its conditions have once, in order; None for one that stays alone."""
        return tuple(rounds.host(job.condition) for _, job in self.members)


def hosted_together(asked: Iterable[Asked]) -> list[list[Asked]]:
    """Comparisons of which processes can host each other's conditions, in order; beside them such that stay alone."""
    together: dict[tuple[str | None, ...] | str, list[Asked]] = {}
    for one in asked:
        together.setdefault(one.hosts if any(one.hosts) else one.group, []).append(one)
    return list(together.values())


def in_shares(asked: Iterable[Asked]) -> Iterator[list[Asked]]:
    """Those that are measured in the same processes: no more than each can come first once in the pilot."""
    for together in hosted_together(asked):
        parts = math.ceil(len(together) / min(one.comparison.pilot for one in together))
        for part in range(parts):
            yield together[part * len(together) // parts : (part + 1) * len(together) // parts]


def repeated(
    due: list[Asked], store: Store, patience_s: float, keep: Callable[[list[Measurement]], None]
) -> Iterator[tuple[Asked, list[Measurement]]]:
    """Measure a repetition of each comparison in the same processes; what has failed before, in processes of its own.
    Each goes to ``keep`` as soon as it is done; what another lab has measured meanwhile is read from ``store``.
    """
    failed = [one for one in due if one.again]
    for one in failed:
        yield from _batch([(one, one.again.pop(0))], store, patience_s, keep)
    fresh = [(one, Attempt(one.group, one.repetitions, 0, one.members)) for one in due if one not in failed]
    if fresh:
        # Whose turn it is to come first in the processes; the others in an order that is drawn for these files, so
        # that it is the same if it is done again.
        random.Random(min(attempt.file for _, attempt in fresh)).shuffle(fresh)
        first = min(fresh, key=lambda pair: pair[0].came_first)
        yield from _batch([first, *(pair for pair in fresh if pair is not first)], store, patience_s, keep)


def line(measured: list[Measurement]) -> str:
    """A repetition in a line: each condition's shortest step, or that it failed."""
    parts = []
    for m in measured:
        name = "A/A" if m.role == "control" else m.condition.subject
        steps_s = [block.wall_s / block.steps for block in m.blocks]
        parts.append(f"{name} {1000 * min(steps_s):.3g} ms" if m.ok else f"{name} failed")
    return ", ".join(parts)


def _batch(
    batch: list[tuple[Asked, Attempt]], store: Store, patience_s: float, keep: Callable[[list[Measurement]], None]
) -> Iterator[tuple[Asked, list[Measurement]]]:
    parts: dict[str, tuple[Asked, Attempt, rounds.Part]] = {}
    for one, attempt in batch:
        if of_another := store.usable(attempt.file):
            one.add(of_another, attempt)
            yield one, of_another
            continue
        one.code.require()
        empty = [
            record.begin("comparison", "rounds", attempt, role, job, attempt.repetition)
            for role, job in attempt.members
        ]
        jobs = [job for _, job in attempt.members]
        places = _places(jobs, before=[part for *_, part in parts.values()])
        part = rounds.Part(empty, jobs, one.settings, one.comparison.plan.rounds, places)
        parts[attempt.file] = one, attempt, part
    if not parts:
        return
    with closing(rounds.measure_repetition([part for *_, part in parts.values()], patience_s)) as measured:
        for part in measured:
            one, attempt, _ = parts[part.measurements[0].file]
            one.code.require()
            keep(part.measurements)
            one.add(part.measurements, attempt)
            yield one, part.measurements


def _places(jobs: list[Job], before: list[rounds.Part]) -> list[int]:
    """The processes that measure ``jobs`` after comparisons of the same hosts: theirs, but for what stays alone."""
    taken = {place for part in before for place, *_ in part.placed}
    unused = itertools.count(len(taken))
    alone = [rounds.stays_alone(job.condition) for job in jobs]
    return [next(unused) if taken and alone[place] else place for place in range(len(jobs))]
