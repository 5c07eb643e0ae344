"""How many blocks and how many processes: from the variances and costs that a pilot shows, not a fixed count.

After Kalibera and Jones, "Rigorous benchmarking in reasonable time" (ISMM 2013): the best number of blocks in a process
balances what a process costs before its first block (start, import, compilation, warm-up) against what blocks cost, by
the variances within and between processes. The number of processes follows from the half-width asked for. The plan is
a function of what has been measured and of nothing else, so a comparison that was stopped goes on as it would have.

Looking at the interval after every process and stopping at the first that is narrow enough stops too early where the
variance happens to look small, and such intervals hold the truth less often than they say. So the plan stops only when
the interval would be narrow enough with a variance ``CAUTION`` times its standard error larger than seen;
``benchmarks/coverage.py`` shows what that gives.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from benchlib.errors import BenchlibError, shown
from benchlib.measure.statistics import half_width

PILOT = 5
"""Repetitions of the pilot, unless it is said otherwise; ``LEAST_PILOT`` at least. Fewer give wider intervals, for
Student's distribution asks more of few processes: with 4 by 1.3, with 3 by 2.
"""

LEAST_PILOT = 3
MOST_PILOT = 1000

LEAST_PRECISION = 0.001
TOO_PRECISE = (
    "a half-width below 0.1 % cannot be resolved: a condition differs from itself by more, and it would take thousands "
    "of processes; give 0.001 or more, such as 0.03 for 3 %"
)

MOST_BUDGET_S = 366 * 24 * 3600
LONGEST_BLOCK_S = 300  # a worker is silent in a block, and counts as hung after three times as long
USUAL_BLOCK_S = 0.25

PILOT_ROUNDS = 6
MOST_ROUNDS = 40

CAUTION = 1.0

MOST_PROCESSES = 1_000_000
"""Where the estimate of how many more processes it would take ends."""

LEAST_START_S = 0.5
"""Seconds that a worker takes at least to start, import its framework and warm up."""

PRECISION, BUDGET, FAILED = "precision reached", "budget spent", "nothing to compare"
"""Why a comparison ended."""


@dataclass(frozen=True)
class Paired:
    """What one repetition gave: for each ratio the logarithms of its rounds, and what the repetition cost."""

    logs: Mapping[str, Sequence[float]]
    start_s: float  # all but the rounds
    round_s: float  # of one round

    @cached_property
    def means(self) -> dict[str, float]:
        """Of each ratio the mean of its logarithms; once, for a simulation plans after every repetition."""
        return {name: float(np.mean(logs)) for name, logs in self.logs.items() if logs}


@dataclass(frozen=True)
class Plan:
    """Where a comparison stands: what is next, or why it ends and what more the precision would have taken."""

    ended: str | None  # None: another repetition; else why not
    rounds: int  # of the next repetition
    half_width: float  # of the widest ratio's interval, relative; nan before there is one
    spent_s: float
    more_processes: int  # estimated, of each condition, to the precision; 0 if it is reached
    more_s: float


def plan(
    done: Sequence[Paired], precision: float, budget_s: float, pilot: int = PILOT, disturbed: bool = False
) -> Plan:
    """What to do after ``done``, for intervals of ``precision`` (relative half-width) within ``budget_s`` seconds.
    While a ratio is ``disturbed`` its interval says nothing, however narrow it is: it goes on, and may become quieter.
    """
    spent = sum(_cost(paired, _rounds_of(paired)) for paired in done)
    if len(done) < pilot:  # it is the least that says anything, so it is always finished
        more = pilot - len(done)
        return Plan(None, PILOT_ROUNDS, math.nan, spent, more, spent / len(done) * more if done else math.nan)
    if not _names(done):
        more_s = float(np.mean([_cost(paired, PILOT_ROUNDS) for paired in done])) if disturbed else 0.0
        ended = FAILED if not disturbed else BUDGET if spent + more_s > budget_s else None
        return Plan(ended, PILOT_ROUNDS, math.nan, spent, int(disturbed), more_s)
    half, lacking = zip(*(_lacking(values, precision) for values in _means(done).values()), strict=True)
    rounds = best_rounds(done[:pilot])
    more = max(*lacking, 1 if disturbed else 0)
    next_s = float(np.mean([_cost(paired, rounds) for paired in done]))
    ended = PRECISION if more == 0 else BUDGET if spent + next_s > budget_s else None
    return Plan(ended, rounds, max(half), spent, more, more * next_s)


def require(precision: float, budget_s: float, block_s: float, pilot: int, processes: int) -> None:
    """Refuse what no plan can meet: a BenchlibError says what is wrong, and the least budget that can do.

    ``processes`` are those of one repetition. What a process costs before its first block is not known before one has
    run; the least that any has taken is assumed. A pilot that then takes longer than the budget is finished all the
    same.
    """
    if not (math.isfinite(precision) and 0 < precision < 1):
        raise BenchlibError(f"precision {precision!r}: give the half-width as a share of the ratio, 0.03 for 3 %")
    if precision < LEAST_PRECISION:
        raise BenchlibError(f"precision {precision!r}: {TOO_PRECISE}")
    if not 0 < block_s <= LONGEST_BLOCK_S:
        raise BenchlibError(
            f"block_s {block_s!r}: give the seconds of a block, such as {USUAL_BLOCK_S:g}, {LONGEST_BLOCK_S} at most"
        )
    if not LEAST_PILOT <= pilot <= MOST_PILOT:
        raise BenchlibError(
            f"pilot {shown(pilot)}: give {LEAST_PILOT} processes of each condition or more, up to {MOST_PILOT}: fewer "
            "show no variance"
        )
    if not budget_s <= MOST_BUDGET_S:
        raise BenchlibError(f"budget_s {budget_s!r}: give the seconds of a comparison, {MOST_BUDGET_S} at most")
    least = _least_s(pilot, processes, block_s)
    if budget_s < least:
        budget, block = f"budget_s {budget_s!r}", f"block_s {block_s!r}"
        long = block_s > USUAL_BLOCK_S and budget_s >= _least_s(pilot, processes, USUAL_BLOCK_S)
        first, other = (block, budget) if long else (budget, block)
        raise BenchlibError(
            f"{first}: the pilot takes {pilot} times {processes} processes of {PILOT_ROUNDS} blocks of {block_s:g} s, "
            f"{math.ceil(least)} s at the very least ({other}): give a budget_s of that or more, or shorter blocks"
        )


def _least_s(pilot: int, processes: int, block_s: float) -> float:
    """Of a pilot with so many processes in a repetition."""
    return pilot * processes * (LEAST_START_S + PILOT_ROUNDS * block_s)


def best_rounds(pilot: Sequence[Paired]) -> int:
    """Rounds of a process that give the narrowest interval for the time: the square root of (cost of a process over
    cost of a round) times (variance within over variance between processes), for the ratio whose processes vary most.
    """
    logs = [[paired.logs[name] for paired in pilot if paired.logs.get(name)] for name in _names(pilot)]
    variances = [_variances(of_ratio) for of_ratio in logs if any(len(rounds) > 1 for rounds in of_ratio)]
    if not variances:  # so far all has failed, or was disturbed
        return PILOT_ROUNDS
    within, between = max(variances, key=lambda pair: pair[1] + pair[0] / PILOT_ROUNDS)
    costs = np.mean([paired.start_s for paired in pilot]) / np.mean([paired.round_s for paired in pilot])
    if between <= 0 or within / between * costs > MOST_ROUNDS**2:
        return MOST_ROUNDS
    return max(2, round(math.sqrt(costs * within / between)))


def _lacking(means: Sequence[float], precision: float) -> tuple[float, int]:
    """Half-width of a ratio's interval now, and how many more processes it would take to make it ``precision``."""
    n, sd = len(means), float(np.std(means, ddof=1))
    cautious = sd * math.sqrt(1 + CAUTION * math.sqrt(2 / (n - 1)))
    needed = n
    while needed < MOST_PROCESSES and math.expm1(half_width(cautious, needed)) > precision:
        needed += max(1, needed // 50)
    return math.expm1(half_width(sd, n)), needed - n


def _variances(logs: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Variances within and between processes, of the logarithms of rounds by process."""
    within = float(np.mean([np.var(values, ddof=1) for values in logs if len(values) > 1]))
    means = [np.mean(values) for values in logs]
    rounds = np.mean([len(values) for values in logs])
    return within, float(np.var(means, ddof=1) - within / rounds)


def _means(done: Sequence[Paired]) -> dict[str, list[float]]:
    return {name: [paired.means[name] for paired in done if name in paired.means] for name in _names(done)}


def _names(done: Sequence[Paired]) -> list[str]:
    """The ratios that two repetitions at least have: one that always fails does not keep the others waiting."""
    every = dict.fromkeys(name for paired in done for name in paired.logs)
    return [name for name in every if sum(bool(paired.logs.get(name)) for paired in done) >= 2]


def _rounds_of(paired: Paired) -> int:
    return max((len(values) for values in paired.logs.values()), default=0)


def _cost(paired: Paired, rounds: int) -> float:
    return paired.start_s + rounds * paired.round_s
