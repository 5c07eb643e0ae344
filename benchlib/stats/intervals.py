"""Ratios and intervals, over processes. The process is the unit of inference: steps and blocks of one process are not
independent samples.

A ratio is the exponential of a mean difference of logarithms, taken within rounds, averaged per process (pair), with
Student's interval over processes. Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013, say why
the highest level carries the inference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval over ``processes`` independent processes; nan where these are too few."""

    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan
    processes: int = 0

    def map(self, change: Callable[[float], float]) -> Interval:
        """The interval of the value after a monotonous ``change``."""
        low, high = sorted((change(self.low), change(self.high)))
        return Interval(change(self.estimate), low, high, self.processes)

    def excludes(self, value: float) -> bool:
        """Is ``value`` outside the interval? False where there is no interval: nothing has been shown."""
        return math.isfinite(self.low) and math.isfinite(self.high) and not self.low <= value <= self.high

    def __str__(self) -> str:
        estimate, low, high = (f"{one:#.3g}".rstrip(".") for one in (self.estimate, self.low, self.high))
        if not math.isfinite(self.low):
            return f"{estimate} (no interval: {self.processes} process{'es' * (self.processes != 1)})"
        return f"{estimate} [{low}, {high}]"


def geometric_interval(logs: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """exp of the mean of ``logs`` (one value a process), with Student's interval on the logarithm's scale."""
    values = np.asarray(logs, dtype=float)
    n = len(values)
    if n == 0:
        return Interval()
    mean = float(values.mean())
    half = half_width(float(values.std(ddof=1)), n, confidence) if n > 1 else math.nan
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half), n)


def mean_interval(values: Sequence[float], least: float = -math.inf, greatest: float = math.inf) -> Interval:
    """The mean of ``values`` (one a process), with Student's interval. This is cut at ``least`` and ``greatest``, as
    the mean cannot be beyond: it then holds the truth as often.
    """
    n = len(values)
    if n == 0:
        return Interval()
    mean = float(np.mean(values))
    half = half_width(float(np.std(values, ddof=1)), n) if n > 1 else math.nan
    return Interval(mean, float(np.maximum(mean - half, least)), float(np.minimum(mean + half, greatest)), n)


def ratio_of_means(above: Sequence[float], below: Sequence[float]) -> Interval:
    """Mean of ``above`` over mean of ``below``, pairs of one process each, with Fieller's 95 % interval ("Some problems
    in interval estimation", JRSS B 16, 1954). Both ends are nan where it has none, because the lower mean may be 0.
    """
    x, y = np.asarray(above, dtype=float), np.asarray(below, dtype=float)
    n = len(x)
    if n == 0 or y.mean() == 0:
        return Interval(processes=n)
    estimate = float(x.mean() / y.mean())
    if n == 1:
        return Interval(estimate, processes=1)
    # The ratios r for which the mean of x - r y is within Student's interval of 0: a r^2 - 2 b r + c <= 0.
    (xx, xy), (_, yy) = np.cov(x, y) * float(special.stdtrit(n - 1, (1 + CONFIDENCE) / 2)) ** 2 / n
    a, b, c = y.mean() ** 2 - yy, x.mean() * y.mean() - xy, x.mean() ** 2 - xx
    if a <= 0:
        return Interval(estimate, processes=n)
    root = math.sqrt(max(0.0, b**2 - a * c))
    return Interval(estimate, float((b - root) / a), float((b + root) / a), n)


def half_width(sd: float, n: int, confidence: float = CONFIDENCE) -> float:
    """The half-width of Student's interval for the mean of ``n`` values with standard deviation ``sd``."""
    return float(special.stdtrit(n - 1, (1 + confidence) / 2)) * sd / math.sqrt(n)


def log_ratios(baseline: dict[int, float], other: dict[int, float]) -> list[float]:
    """The logarithms of the other's throughput over the baseline's, one for each round that both have."""
    return [math.log(baseline[r]) - math.log(other[r]) for r in sorted(baseline.keys() & other.keys())]
