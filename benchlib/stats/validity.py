"""What makes a ratio none: rounds that were disturbed, and processes that get slower while they are measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from benchlib.cache import Measurement, counted, seconds_by_round
from benchlib.condition import Condition
from benchlib.stats.intervals import geometric_interval
from benchlib.worker import steady
from benchlib.worker.steady import SLOWING

SAME, DIFFERENT, NOT_CHECKED = "same", "different", "not checked"  # verdicts of certificates

MOST = 0.5
"""Of the rounds that a ratio is made of: if more are disturbed, there is no ratio."""

LOST = 0.1
"""Of the seconds of training that a number is made of: if blocks that were disturbed took longer than they would have
by more than this share, the number does not count.
"""


def mostly(disturbed: Iterable[bool]) -> bool:
    """Are so many of the rounds ``disturbed`` (``MOST``) that they make no ratio?"""
    flags = list(disturbed)
    return sum(flags) > MOST * len(flags)


def disturbed_rounds(one: Measurement, other: Measurement) -> list[bool]:
    """Of each round that both have: was it disturbed, for the one or for the other?"""
    ones, others = ({block.round: block.disturbed for block in counted(m.blocks)} for m in (one, other))
    return [ones[number] or others[number] for number in ones.keys() & others.keys()]


class Growth(NamedTuple):
    """Of a process that may get slower: was it slowing down when its warm-up ended; and by how much its blocks grow
    (see ``steady.growth``), as they are and relative to the other conditions in the same rounds.
    """

    slowing: bool
    alone: float | None
    beside: float | None


def growths(condition: Condition, together: Sequence[Measurement]) -> list[Growth]:
    """Of the processes of a condition, among those that were measured ``together`` and went well."""
    others = [m for m in together if m.condition != condition]
    return [
        Growth(m.steady == SLOWING, steady.growth(_relative(m, [])), steady.growth(_relative(m, others)))
        for m in together
        if m.condition == condition
    ]


def slow_down(processes: Sequence[Growth]) -> bool:
    """Does a condition with these processes get slower: were most of them slowing down when their warm-up ended, or do
    their blocks grow (``steady.GROWTH``), both as they are and, so that a drift of the machine does not count, relative
    to the other conditions in the same rounds?
    """
    if sum(one.slowing for one in processes) > len(processes) / 2:
        return True
    return all(
        geometric_interval([value for value in values if value is not None], steady.SURELY).low > steady.GROWTH
        for values in ([one.alone for one in processes], [one.beside for one in processes])
    )


def _relative(m: Measurement, others: list[Measurement]) -> list[float]:
    """The logarithms of a process's seconds per sample by round, less the mean of those of ``others``, each around its
    own mean, so that a round which one of them lacks is no step.
    """
    mine, theirs = _logs_by_round(m), [_logs_by_round(one) for one in others]
    middles = [sum(logs.values()) / len(logs) if logs else 0.0 for logs in theirs]
    relative = []
    for number in sorted(mine):
        there = [logs[number] - middle for logs, middle in zip(theirs, middles, strict=True) if number in logs]
        relative.append(mine[number] - (sum(there) / len(there) if there else 0.0))
    return relative


def _logs_by_round(m: Measurement) -> dict[int, float]:
    return {number: math.log(seconds) for number, seconds in seconds_by_round(m).items()}
