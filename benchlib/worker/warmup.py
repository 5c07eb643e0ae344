"""When is a process warm? Standard library only: workers use it.

The rule: after the first step, chunks of steps are timed. Each is one step, or about ``CHUNK_S`` seconds if that is
more: single steps of microseconds say more of the clock than of the step. The median of the last ``WINDOW`` chunks is
compared with the median of the ``WINDOW`` before, and so it was a chunk earlier. The process is steady after
``LEAST_S`` at least, when neither comparison finds it faster by more than ``TOLERANCE``, and not both find it slower.
It is slowing down when, for ``RISE_S``, all comparisons find it slower. If neither comes within the time allowed, the
verdict says so, or that there were too few steps to tell. The verdict travels with the measurement.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field

CHUNK_S = 0.02
LEAST_S = 0.3
WINDOW = 4
TOLERANCE = 0.05
RISE_S = 1.0
GROWTH = 1.05
"""A condition slows down if its blocks surely grow by more than this factor from the first third to the last. Causes
are heat, a leak, a growing queue. Surely is by the interval over processes. It has no throughput to average.
"""

SURELY = 0.99
"""The confidence of that interval: a report asks it of dozens of conditions, some of which are now slow, now fast."""

STEADY = "steady"
SLOWING = "slowing down"
NOT_STEADY = "not steady"
TOO_FEW = "too few steps to tell"


@dataclass
class WarmUpSteps:
    """The length of a process's warm-up, and how it ended."""

    times: list[float] = field(default_factory=list)  # seconds of a step, by chunk
    steps: int = 0
    seconds: float = 0.0
    verdict: str = NOT_STEADY


def is_steady(times: list[float]) -> bool:
    """Do step times (seconds, by chunk, in order) neither fall nor rise?"""
    return all(change >= 1 - TOLERANCE for change in _changes(times)) and not _rises(times)


def warm_up(timed_steps: Callable[[int], float], limit_s: float) -> WarmUpSteps:
    """Run steps until the rule is met or ``limit_s`` is spent; ``timed_steps(n)`` runs n and returns their seconds."""
    done, chunk, rising_s = WarmUpSteps(), 1, 0.0
    while done.seconds <= limit_s:
        seconds = timed_steps(chunk)
        if not seconds > 0:
            raise ValueError(f"{chunk} steps took {seconds!r} seconds: these times are impossible")
        done.steps += chunk
        done.seconds += seconds
        done.times.append(seconds / chunk)
        rising_s = rising_s + seconds if _rises(done.times) else 0.0
        if done.seconds >= LEAST_S and is_steady(done.times):
            done.verdict = STEADY
            break
        if rising_s >= RISE_S:
            done.verdict = SLOWING
            break
        chunk = max(1, round(CHUNK_S * chunk / seconds))
    else:
        done.verdict = NOT_STEADY if len(done.times) > 2 * WINDOW else TOO_FEW
    return done


def growth(logs: list[float]) -> float | None:
    """The logarithm of the growth in time from the first third of a process's blocks to the last. ``logs`` are the
    logarithms of its times, block after block. None for fewer than 6: single blocks say more of noise than of growth.
    """
    third = len(logs) // 3
    return statistics.mean(logs[-third:]) - statistics.mean(logs[:third]) if third >= 2 else None


def _rises(times: list[float]) -> bool:
    return all(change > 1 / (1 - TOLERANCE) for change in _changes(times))


def _changes(times: list[float]) -> tuple[float, float]:
    """The last two factors by which a window is slower than the one before; NaN where there are too few times."""
    return _change(times[:-1]), _change(times)


def _change(times: list[float]) -> float:
    if len(times) < 2 * WINDOW:
        return math.nan
    return statistics.median(times[-WINDOW:]) / statistics.median(times[-2 * WINDOW : -WINDOW])
