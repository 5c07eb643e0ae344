"""One repetition of a comparison: a fresh process for each condition and a second one for the baseline, measured in
rounds. A round is one block of every condition in random order. One worker is busy at a time; the others sleep. A block
that was disturbed, or that is far from the others of its process, is taken again at once.
"""

from __future__ import annotations

import itertools
import math
import random
import statistics
import time

from benchlib.cache import Block, Measurement
from benchlib.runner import recording, worker_sessions
from benchlib.runner.interference import NO_CPU, Pace, Watch, hold_still, mark_outliers, was_stopped
from benchlib.runner.jobs import Job
from benchlib.runner.processes import WorkerProcess
from benchlib.runner.worker_sessions import Entry, run_guarded
from benchlib.stats.planner import LEAST_ROUNDS, PILOT_ROUNDS
from benchlib.validation import Strict
from benchlib.worker.warmup import WINDOW

WARM_UP_LIMIT_S = 20.0  # of one process; a slow condition still gets a first step and one more
TAKES = 3  # of a block that is disturbed, the first included
LATE = 1.5  # times as long as planned may the rounds of a repetition take


class RoundSettings(Strict):
    """The settings of a comparison's measurement; a part of its key."""

    block_s: float  # about how long a block lasts; at least one step


def measure_repetition(
    measurements: list[Measurement], jobs: list[Job], settings: RoundSettings, rounds: int | None, patience_s: float
) -> None:
    """Fill the empty ``measurements`` of a repetition, one a job: baseline, control, the other conditions. ``rounds``
    None: as many as take as long as the start, up to ``PILOT_ROUNDS``. A worker that fails leaves the repetition.
    """
    chance = random.Random(measurements[0].file)  # seeded by the key: the same order if it is done again
    began = time.monotonic()
    members = [Entry(measurement, job) for measurement, job in zip(measurements, jobs, strict=True)]
    try:
        # In random order too: of equal processes that start side by side the first was 0.8 % faster than the second.
        worker_sessions.start(chance.sample(members, len(members)), patience_s)
        worker_sessions.build(chance.sample(members, len(members)))
        built_s, ends = time.monotonic() - began, [time.monotonic()]
        for entry in chance.sample(members, len(members)):
            run_guarded(entry, _prepare, settings, _idle_workers(entry, members))
            ends.append(time.monotonic())
        # A long compilation of one of them makes the others no more worth measuring: so many times the usual.
        start_s = built_s + len(members) * statistics.median(b - a for a, b in itertools.pairwise(ends))
        round_s = sum(entry.steps * entry.step_s for entry in members if entry.measurement.failure is None)
        most_s = LATE * max(start_s, rounds * round_s) if rounds else start_s
        rounds_began = time.monotonic()
        for number in range(rounds or PILOT_ROUNDS):
            if number >= LEAST_ROUNDS and time.monotonic() - rounds_began >= most_s:
                break
            for position, entry in enumerate(chance.sample(members, len(members))):
                run_guarded(entry, _blocks, number, position, _idle_workers(entry, members))
        rounds_s = time.monotonic() - rounds_began
        for entry in members:
            run_guarded(entry, lambda e: recording.memory(e.measurement, e.worker))
            worker_sessions.require_hashed(entry, "rounds")
    finally:
        worker_sessions.end(members)
    repetition_s = time.monotonic() - began
    for measurement in measurements:
        measurement.repetition_s, measurement.rounds_s = repetition_s, rounds_s


def _idle_workers(entry: Entry, processes: list[Entry]) -> list[WorkerProcess]:
    """The workers that should sleep while it is this one's turn."""
    return [other.worker for other in processes if other is not entry and other.worker is not None]


def _prepare(entry: Entry, settings: RoundSettings, others: list[WorkerProcess]) -> None:
    """First step and warm-up; and from the last steps' times the number of steps in a block."""
    recording.first_step(entry.measurement, entry.worker, others)
    watch = Watch(entry.worker, others, compiles=True)
    warm = entry.worker.ask("warm_up", limit_s=WARM_UP_LIMIT_S)
    by = watch.end().disturbed_by
    stopped = entry.job.condition.device == "cpu" and was_stopped(warm["chunks"])
    entry.warm_up = Pace(statistics.median_low(warm["times"][-WINDOW:]), watch.own_s / warm["seconds"])
    entry.measurement.warm_up_disturbed_by = by or (NO_CPU if stopped else "")
    entry.measurement.warm_up_steps, entry.measurement.warm_up_s = warm["steps"], warm["seconds"]
    entry.measurement.steady = warm["verdict"]
    entry.step_s = min(warm["times"][-3:])
    entry.steps = max(1, math.ceil(settings.block_s / entry.step_s))


def _blocks(entry: Entry, number: int, position: int, others: list[WorkerProcess]) -> None:
    """A block of round ``number``, taken again until a take is undisturbed; all are kept: see ``cache.final_takes``."""
    takes: list[Block] = []
    while len(takes) < TAKES and all(block.disturbed for block in takes):
        takes.append(_block(entry, number, position, others))
        entry.measurement.blocks.append(takes[-1])
        mark_outliers(entry.measurement.blocks, entry.job.condition.device, entry.warm_up)


def _block(entry: Entry, number: int, position: int, others: list[WorkerProcess]) -> Block:
    hold_still(others)
    watch = Watch(entry.worker, others)
    entry.sampler.start()
    answer = entry.worker.ask("block", tick=entry.sampler.tick, steps=entry.steps)
    entry.sampler.tick()
    entry.measurement.trace = entry.sampler.trace
    block = Block(round=number, position=position, **vars(watch.end()), **answer)
    return recording.require_plausible(block, watch.window_s, alone=True)
