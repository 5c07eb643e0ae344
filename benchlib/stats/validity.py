"""The faults that invalidate a ratio: disturbed rounds, and processes that get slower while measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from benchlib.cache import Measurement, final_takes, seconds_by_round
from benchlib.condition import Condition
from benchlib.stats.intervals import geometric_interval
from benchlib.worker import warmup
from benchlib.worker.warmup import SLOWING

SAME, DIFFERENT, NOT_CHECKED = "same", "different", "not checked"  # verdicts of certificates

MOST = 0.5  # of the rounds that a ratio is made of: if a larger share is disturbed, there is no ratio
LOST = 0.1  # of the seconds of training behind a number: if disturbed blocks lost a larger share, it does not count


def disturbed_rounds(one: Measurement, other: Measurement) -> list[bool]:
    """For each round that both have: was it disturbed, for the one or for the other?"""
    ones, others = ({block.round: block.disturbed for block in final_takes(m.blocks)} for m in (one, other))
    return [ones[number] or others[number] for number in ones.keys() & others.keys()]


def slow_down(condition: Condition, repetitions: Iterable[Sequence[Measurement]]) -> bool:
    """Does a condition, of processes that went well in each of these repetitions, get slower? Either most of its own
    slow down when their warm-up ends, or their blocks grow (``warmup.GROWTH``). They must grow as they are and relative
    to the other conditions in the same rounds: a drift of the machine does not count.
    """
    own = [
        (m, [other for other in together if other.condition != condition])
        for together in repetitions
        for m in together
        if m.condition == condition
    ]
    if sum(m.steady == SLOWING for m, _ in own) > len(own) / 2:
        return True
    alone = [warmup.growth(_relative(m, [])) for m, _ in own]
    beside = [warmup.growth(_relative(m, others)) for m, others in own]
    return all(
        geometric_interval([value for value in values if value is not None], warmup.SURELY).low > warmup.GROWTH
        for values in (alone, beside)
    )


def _relative(m: Measurement, others: list[Measurement]) -> list[float]:
    """The logarithms of a process's seconds per sample by round, less the mean of those of ``others``. Each of these is
    around its own mean, so that a round which one of them lacks is no step.
    """
    every = [seconds_by_round(one) for one in (m, *others)]
    mine, *theirs = ({number: math.log(seconds) for number, seconds in of.items()} for of in every)
    middles = [sum(logs.values()) / len(logs) if logs else 0.0 for logs in theirs]
    relative = []
    for number in sorted(mine):
        there = [logs[number] - middle for logs, middle in zip(theirs, middles, strict=True) if number in logs]
        relative.append(mine[number] - (sum(there) / len(there) if there else 0.0))
    return relative
