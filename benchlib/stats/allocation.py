"""One clock for several comparisons: where its next seconds narrow the widest intervals most."""

from __future__ import annotations

from collections.abc import Sequence

from benchlib.progress import duration
from benchlib.stats.comparison import Comparison


def best(comparisons: Sequence[Comparison], left_s: float) -> int | None:
    """The place of the comparison that narrows most by the second, if its next repetition fits into the time left."""
    gains = {
        place: one.gain / one.cost_s
        for place, one in enumerate(comparisons)
        if one.measurements and not one.settled and one.cost_s <= left_s
    }
    return max(gains, key=gains.__getitem__, default=None)


def standing(comparisons: Sequence[Comparison], left_s: float) -> str:
    """In a sentence the widest interval, and which ratio has it."""
    known = [one.widest for one in comparisons if one.widest[0] > 0]
    if not known:
        return "no ratio has an interval yet"
    width, whose = max(known)
    return f"widest half-width {100 * width:.2g} % ({whose}); {duration(left_s)} left"
