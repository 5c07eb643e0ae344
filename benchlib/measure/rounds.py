"""One repetition of a comparison: a fresh process for each condition and a second one for the baseline, measured
together in rounds. Processes may host the conditions of several comparisons, one comparison after the other.

A round is one block of every condition in random order. One worker is busy at a time; the others sleep. What CPU they
and all other processes of the machine use all the same is recorded with the block: a block that was disturbed, or that
is far from the others of its process, is taken again at once, and a worker that cannot sit still is stopped while it is
not its turn.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from benchlib import knobs, workloads
from benchlib.analysis.length import LEAST_ROUNDS, PILOT_ROUNDS
from benchlib.condition import Condition
from benchlib.measure import entries, record
from benchlib.measure.disturbance import NO_CPU, Pace, Watch, hold_still, mark_outliers, was_stopped
from benchlib.measure.entries import Entry, guarded
from benchlib.measure.jobs import Job
from benchlib.measure.processes import WorkerProcess
from benchlib.measure.record import AFTER_IMPORT
from benchlib.measure.sampler import Sampler
from benchlib.store import Block, Measurement
from benchlib.validation import Strict
from benchlib.worker.steady import WINDOW

WARM_UP_LIMIT_S = 20.0
"""Most time for the warm-up of one process; a slow condition still gets a first step and one more."""


TAKES = 3  # of a block that is disturbed, the first included

LATE = 1.5
"""So many times as long as planned may the rounds of a repetition take: one that is disturbed again and again ends
sooner, and leaves its time to the others.
"""


class Settings(Strict):
    """How a comparison is measured; a part of its key."""

    block_s: float  # about how long a block lasts; at least one step


@dataclass
class Part:
    """A comparison's share of a repetition: its empty measurements, one a job, in order: baseline, control, the other
    conditions.
    """

    measurements: list[Measurement]
    jobs: list[Job]
    settings: Settings
    rounds: int | None  # None: as many as take as long as the start, see ``length``
    places: list[int] | None = None  # of the processes that measure them; the others sleep. None: all, in order

    @property
    def placed(self) -> list[tuple[int, Measurement, Job]]:
        places = self.places or range(len(self.jobs))
        return list(zip(places, self.measurements, self.jobs, strict=True))


@dataclass
class _Entry(Entry):
    steps: int = 1  # of a block
    step_s: float = 0.0  # about
    warm_up: Pace | None = None


def stays_alone(condition: Condition) -> bool:
    """Is it measured in a process that measures nothing else?"""
    return condition.world_size > 1 or condition.framework not in workloads.load(condition.workload).hosted


def host(condition: Condition) -> str | None:
    """What a process has once: conditions for which it is the same can be measured in one process, one after the other.
    None for one that stays alone.
    """
    if stays_alone(condition):
        return None
    once = ("framework", "environment", "mode", "precision", "device", "lane", "threads", "communication", "without")
    chosen = {name: getattr(condition, name) for name in once}
    return json.dumps([chosen, knobs.of(condition)], sort_keys=True)


def measure_repetition(parts: list[Part], patience_s: float) -> Iterator[Part]:
    """Fill the measurements of each part, in order, and yield the part as soon as it is done.

    Processes are started once, one for each place in the parts (whose jobs there must be of one :func:`host`), and host
    part after part what has their place in it, and end after the last that has. A worker that fails gets its failure
    recorded and leaves the repetition, with what it would have hosted; the others go on. Workers end here, whatever
    happens.
    """
    chance = random.Random(parts[0].measurements[0].file)  # seeded by the key: the same order if it is done again
    began = time.monotonic()
    hosts: dict[int, _Entry] = {}  # by place: what the process measures now, or first
    for place, measurement, job in (placed for part in parts for placed in part.placed):
        hosts.setdefault(place, _Entry(measurement, job))
    try:
        # In random order too: of equal processes that start side by side the first was 0.8 % faster than the second.
        entries.start(chance.sample(list(hosts.values()), len(hosts)), patience_s)
        opening_s = time.monotonic() - began
        measured: Counter[int] = Counter()
        last = {place: part for part in parts for place, *_ in part.placed}
        for part in parts:
            for place, measurement, job in part.placed:
                if measured[place]:
                    hosts[place] = _hosted(hosts[place], measurement, job, measured[place])
                measured[place] += 1
            members = [hosts[place] for place, *_ in part.placed]
            _measure(part, members, list(hosts.values()), opening_s, len(parts), chance)
            entries.end(hosts.pop(place) for place, *_ in part.placed if last[place] is part)
            yield part
    finally:
        entries.end(hosts.values())


def _hosted(before: _Entry, measurement: Measurement, job: Job, number: int) -> _Entry:
    """The next condition of a process that has measured others before."""
    measurement.hosted_after = number
    if before.worker is not None:
        record.started(measurement, before.worker)
    measurement.seed = before.measurement.seed
    measurement.versions = before.measurement.versions
    measurement.memory = {name: value for name, value in before.measurement.memory.items() if name == AFTER_IMPORT}
    if before.measurement.failure is not None:
        failed = before.measurement
        own = f"its process had failed with {failed.condition}: {failed.failure}"
        measurement.failure, measurement.lost = failed.failure if failed.lost else own, True
    return _Entry(measurement, job, before.worker, before.worker and Sampler(before.worker), before.known)


def _measure(
    part: Part,
    members: list[_Entry],
    processes: list[_Entry],
    opening_s: float,
    shared_by: int,
    chance: random.Random,
) -> None:
    """Build, first steps, warm-ups and rounds of one part, while the other ``processes`` should sleep."""
    began = time.monotonic()
    entries.build(chance.sample(members, len(members)))
    built_s, ends = opening_s / shared_by + time.monotonic() - began, [time.monotonic()]
    for entry in chance.sample(members, len(members)):
        others = _others(entry, processes)
        guarded(entry, lambda e, o=others: _prepare(e, part.settings, o))
        ends.append(time.monotonic())
    # What one of them compiles for long makes the others no more worth measuring: so many times the usual.
    start_s = built_s + len(members) * statistics.median(b - a for a, b in itertools.pairwise(ends))
    round_s = sum(entry.steps * entry.step_s for entry in members if entry.measurement.failure is None)
    most_s = LATE * max(start_s, part.rounds * round_s) if part.rounds else start_s
    rounds_began = time.monotonic()
    for number in range(part.rounds or PILOT_ROUNDS):
        if number >= LEAST_ROUNDS and time.monotonic() - rounds_began >= most_s:
            break
        for position, entry in enumerate(chance.sample(members, len(members))):
            others = _others(entry, processes)
            guarded(entry, lambda e, p=position, o=others, n=number: _blocks(e, n, p, o))
    rounds_s = time.monotonic() - rounds_began
    for entry in members:
        guarded(entry, lambda e: record.memory(e.measurement, e.worker))
        entries.require_hashed(entry, "rounds")
    repetition_s = opening_s / shared_by + time.monotonic() - began
    for measurement in part.measurements:
        measurement.opening_s, measurement.shared_by = opening_s, shared_by
        measurement.repetition_s, measurement.rounds_s = repetition_s, rounds_s


def _others(entry: _Entry, processes: list[_Entry]) -> list[WorkerProcess]:
    """The workers that should sleep while it is this one's turn."""
    return [other.worker for other in processes if other is not entry and other.worker is not None]


def _prepare(entry: _Entry, settings: Settings, others: list[WorkerProcess]) -> None:
    """First step and warm-up; and from the last steps' times the number of steps in a block."""
    record.first_step(entry.measurement, entry.worker, others)
    watch = Watch(entry.worker, others, compiles=True)
    warm = entry.worker.ask("warm_up", limit_s=WARM_UP_LIMIT_S)
    by = watch.end().disturbed_by
    stopped = entry.job.condition.device == "cpu" and was_stopped(warm["chunks"])
    entry.warm_up = Pace(statistics.median_low(warm["times"][-WINDOW:]), watch.own_s / warm["seconds"])
    entry.measurement.warm_up_disturbed_by = by or (NO_CPU if stopped else "")
    entry.measurement.warm_up_steps = warm["steps"]
    entry.measurement.warm_up_s = warm["seconds"]
    entry.measurement.steady = warm["verdict"]
    entry.step_s = min(warm["times"][-3:])
    entry.steps = max(1, math.ceil(settings.block_s / entry.step_s))


def _blocks(entry: _Entry, number: int, position: int, others: list[WorkerProcess]) -> None:
    """A block of round ``number``, taken again until a take is not disturbed; the last of those counts (see
    ``store.counted``), all are kept.
    """
    takes: list[Block] = []
    while len(takes) < TAKES and all(block.disturbed for block in takes):
        takes.append(_block(entry, number, position, others))
        entry.measurement.blocks.append(takes[-1])
        mark_outliers(entry.measurement.blocks, entry.job.condition.device, entry.warm_up)


def _block(entry: _Entry, number: int, position: int, others: list[WorkerProcess]) -> Block:
    hold_still(others)
    watch = Watch(entry.worker, others)
    entry.sampler.start()
    answer = entry.worker.ask("block", tick=entry.sampler.tick, steps=entry.steps)
    entry.sampler.tick()
    entry.measurement.trace = entry.sampler.trace
    seen = watch.end()
    return record.checked(Block(round=number, position=position, **asdict(seen), **answer), watch.window_s, alone=True)
