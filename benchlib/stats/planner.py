"""The numbers of blocks and processes, from the variances and costs that are seen, not as a fixed count. Source:
Kalibera and Jones, "Rigorous benchmarking in reasonable time" (ISMM 2013).

A rule that stops at the first narrow interval stops too early where the variance happens to look small. So the plan
stops only when a variance ``CAUTION`` times its standard error larger than seen would still give a narrow enough
interval. ``benchmarks/coverage.py`` shows the coverage.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchlib.errors import BenchlibError, quote
from benchlib.stats.intervals import half_width

LEAST_ROUNDS, MOST_ROUNDS = 4, 100
PILOT_ROUNDS = 16  # most rounds of a process in the pilot: more time does more where an interval is wide

PILOT = 5  # repetitions, unless said otherwise; Student's intervals of 4 are 1.3 times as wide, those of 3 twice
LEAST_PILOT, MOST_PILOT = 3, 1000

LEAST_PRECISION = 0.001
TOO_PRECISE = (
    "a half-width below 0.1 % cannot be resolved: a condition differs from itself by more, and it would take thousands "
    "of processes; give 0.001 or more, such as 0.03 for 3 %"
)

MOST_BUDGET_S = 366 * 24 * 3600
LONGEST_BLOCK_S = 300  # a worker is silent in a block, and counts as hung after three times as long

LEANING = 3.0  # rounds take at most so many starts, at least that part of one: few processes show variances badly
CAUTION = 1.0
MOST_PROCESSES = 1_000_000  # where the estimate of how many more processes it would take ends
LEAST_START_S = 0.5  # that a worker takes at least to start, import its framework and warm up

PRECISION, BUDGET, FAILED = "precision reached", "budget spent", "nothing to compare"  # why a comparison ended


@dataclass(frozen=True)
class Paired:
    """The results of one repetition: for each ratio the logarithms of its rounds, and the cost of the repetition."""

    logs: Mapping[str, Sequence[float]]
    start_s: float  # all but the rounds
    round_s: float  # of one round

    @functools.cached_property
    def means(self) -> dict[str, float]:
        """The mean of each ratio's logarithms; cached, for a simulation plans after every repetition."""
        return {name: float(np.mean(logs)) for name, logs in self.logs.items() if logs}

    @functools.cached_property
    def scatters(self) -> dict[str, float]:
        """The variance of the mean from the scatter of the rounds, for each ratio that has two rounds."""
        return {name: float(np.var(logs, ddof=1)) / len(logs) for name, logs in self.logs.items() if len(logs) > 1}


@dataclass(frozen=True)
class Plan:
    """The state of a comparison: the next repetition, or why it ends and the cost of reaching the precision."""

    ended: str | None  # None: another repetition; else why not
    rounds: int | None  # of the next repetition; None: as many as take as long as the start, see ``PILOT_ROUNDS``
    half_width: float  # of the widest ratio's interval, relative; nan before there is one
    spent_s: float
    more_processes: int  # estimated, of each condition, to the precision; 0 if it is reached
    more_s: float


def plan(
    done: Sequence[Paired], precision: float, budget_s: float, pilot: int = PILOT, disturbed: bool = False
) -> Plan:
    """The next action after ``done``, for intervals of ``precision`` (relative half-width) within ``budget_s`` seconds.
    While a ratio is ``disturbed`` its interval says nothing, however narrow it is: it goes on, and may become quieter.
    """
    spent = sum(_cost(paired, max(map(len, paired.logs.values()), default=0)) for paired in done)
    if len(done) < pilot:  # it is the least that says anything, so it is always finished
        more = pilot - len(done)
        return Plan(None, None, math.nan, spent, more, spent / len(done) * more if done else math.nan)
    rounds = best_rounds(done)
    lacking = [_missing_processes(own, precision) for own in means(done).values()]
    more = max([int(disturbed), *(lack for _, lack in lacking)])
    next_s = float(np.median([_cost(paired, rounds) for paired in done]))  # one that was disturbed took longer
    reached = PRECISION if lacking else FAILED
    ended = reached if more == 0 else BUDGET if spent + next_s > budget_s else None
    widest = max((half for half, _ in lacking), default=math.nan)
    return Plan(ended, rounds if lacking else None, widest, spent, more, more * next_s)


def is_settled(done: Sequence[Paired], precision: float) -> bool:
    """Would :func:`plan` end after ``done``, whatever the budget, with the precision reached or nothing to compare?"""
    return all(_is_narrow(own, precision, len(own)) for own in means(done).values())


def gain(done: Sequence[Paired]) -> float:
    """The expected narrowing of the widest interval by another repetition (relative half-widths)."""
    widths = [(width(own), width(own, len(own) + 1)) for own in means(done).values()]
    return max(now for now, _ in widths) - max(then for _, then in widths) if widths else 0.0


def require(precision: float, budget_s: float, block_s: float, pilot: int, margin: float) -> None:
    """Refuse values that no plan can meet with a BenchlibError. A pilot longer than the budget is finished."""
    least = f"{LEAST_PILOT} processes of each condition or more, up to {MOST_PILOT}: fewer show no variance"
    block = f"the seconds of a block, such as 0.25, {LONGEST_BLOCK_S} at most"
    rules = (
        ("precision", precision, 0 < precision < 1, "give the half-width as a share of the ratio, 0.03 for 3 %"),
        ("precision", precision, precision >= LEAST_PRECISION, TOO_PRECISE),
        ("block_s", block_s, 0 < block_s <= LONGEST_BLOCK_S, f"give {block}"),
        ("pilot", pilot, LEAST_PILOT <= pilot <= MOST_PILOT, f"give {least}"),
        ("budget_s", budget_s, 0 < budget_s <= MOST_BUDGET_S, f"give the seconds, {MOST_BUDGET_S} at most"),
        ("margin", margin, 0 < margin < 1, "give a share of the ratio, such as 0.05 for the same within 5 %"),
    )
    for name, value, fine, remedy in rules:
        if not fine:
            raise BenchlibError(f"{name} {quote(value)}: {remedy}")


def rounds_for(start_s: float, round_s: float) -> int:
    """Rounds that take about as long as the start of their processes did."""
    return int(min(max(LEAST_ROUNDS, round(start_s / max(round_s, 1e-9))), MOST_ROUNDS))


def least_s(pilot: int, block_s: float, processes: int) -> float:
    """Seconds that a pilot takes at the very least, with so many processes in a repetition."""
    return pilot * processes * (LEAST_START_S + LEAST_ROUNDS * block_s)


def best_rounds(done: Sequence[Paired]) -> int:
    """The rounds of a process that give the narrowest interval for the time, for the ratio whose processes vary most.
    They are sqrt((cost of a process / cost of a round) * (variance within / variance between processes)).
    """
    start_s, round_s = (float(np.median(costs)) for costs in zip(*((p.start_s, p.round_s) for p in done), strict=True))
    usual = rounds_for(start_s, round_s)
    variances = [_variances(done, name) for name in _names(done) if any(name in paired.scatters for paired in done)]
    if not variances:  # so far all has failed, or was disturbed
        return usual
    within, between = max(variances, key=lambda pair: pair[1] + pair[0] / usual)
    least, most = max(LEAST_ROUNDS, usual / LEANING), min(MOST_ROUNDS, usual * LEANING)
    best = math.sqrt(start_s / round_s * within / between) if between > 0 else most
    return round(min(max(least, best), most))


def width(own: Sequence[float], processes: int | None = None, caution: float = 1.0) -> float:
    """The relative half-width of a ratio's interval, from the means of its processes, or over more ``processes``."""
    sd = float(np.std(own, ddof=1)) * math.sqrt(caution)
    return math.expm1(half_width(sd, processes or len(own)))


def _missing_processes(own: Sequence[float], precision: float) -> tuple[float, int]:
    """Half-width of a ratio's interval now, and how many more processes it would take to make it ``precision``."""
    n = len(own)
    if _is_narrow(own, precision, n):
        return width(own), 0
    enough = functools.partial(_is_narrow, own, precision)
    return width(own), bisect.bisect_left(range(MOST_PROCESSES), True, lo=n, key=enough) - n


def _is_narrow(own: Sequence[float], precision: float, processes: int) -> bool:
    """Would the interval over so many processes be narrow enough, were the variance ``CAUTION`` times its standard
    error larger than seen?
    """
    return width(own, processes, 1 + CAUTION * math.sqrt(2 / (len(own) - 1))) <= precision


def _variances(done: Sequence[Paired], name: str) -> tuple[float, float]:
    """Variances within and between processes, of the logarithms of a ratio's rounds by process."""
    there = [paired for paired in done if name in paired.means]
    rounds = [len(paired.logs[name]) for paired in there]
    within = float(np.mean([one.scatters[name] * len(one.logs[name]) for one in there if name in one.scatters]))
    between = float(np.var([paired.means[name] for paired in there], ddof=1))
    return within, between - within / float(np.mean(rounds))


def means(done: Sequence[Paired]) -> dict[str, list[float]]:
    """The means of the processes of each ratio that two repetitions have, by its name."""
    return {name: [paired.means[name] for paired in done if name in paired.means] for name in _names(done)}


def _names(done: Sequence[Paired]) -> list[str]:
    """The ratios that two repetitions at least have: one that always fails does not keep the others waiting."""
    every = dict.fromkeys(name for paired in done for name in paired.logs)
    return [name for name in every if sum(bool(paired.logs.get(name)) for paired in done) >= 2]


def _cost(paired: Paired, rounds: int) -> float:
    return paired.start_s + rounds * paired.round_s
