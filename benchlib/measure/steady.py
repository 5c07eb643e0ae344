"""When is a process warm? A rule, so that nobody's eye decides. Standard library only: workers use it.

The rule: the steps after the first are timed one by one. The process is steady when the median of the last ``WINDOW``
steps is no more than ``TOLERANCE`` faster than the median of the ``WINDOW`` steps before: it has stopped getting
faster. If that has not come within the time allowed, the verdict says so and travels with the measurement.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

WINDOW = 4
TOLERANCE = 0.05
STEADY = "steady"
NOT_STEADY = "not steady"


def is_steady(times: list[float]) -> bool:
    """Have step times (seconds, in order) stopped falling?"""
    if len(times) < 2 * WINDOW:
        return False
    before = statistics.median(times[-2 * WINDOW : -WINDOW])
    return statistics.median(times[-WINDOW:]) >= (1 - TOLERANCE) * before


def warm_up(timed_step: Callable[[], float], limit_s: float) -> tuple[list[float], str]:
    """Run steps until the rule is met or ``limit_s`` is spent; return their times in seconds and the verdict."""
    times: list[float] = []
    while not is_steady(times):
        if sum(times) > limit_s:
            return times, NOT_STEADY
        times.append(timed_step())
    return times, STEADY
