"""One clock for several comparisons: where its next seconds narrow the widest intervals most, and what they should
bring.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from benchlib.progress import duration
from benchlib.stats.comparison import Comparison


def best(comparisons: Sequence[Comparison], left_s: float) -> int | None:
    """The place of the comparison that narrows most by the second, of those whose next repetition fits into the time
    that is left; None: there is none.
    """
    gains = {
        place: one.gain / one.cost_s
        for place, one in enumerate(comparisons)
        if one.measurements and not one.settled and one.cost_s <= left_s
    }
    return max(gains, key=gains.__getitem__, default=None)


def standing(comparisons: Sequence[Comparison], left_s: float) -> str:
    """In a sentence the widest interval, which ratio has it, and what the time left should bring."""
    known = [one for one in comparisons if one.widest[0] > 0]
    if not known:
        return "no ratio has an interval yet"
    width, whose = max(comparison.widest for comparison in known)
    return (
        f"widest half-width {100 * width:.2g} % ({whose}); the {duration(left_s)} left should make that "
        f"{100 * projected(known, left_s):.2g} %"
    )


def projected(comparisons: Sequence[Comparison], left_s: float) -> float:
    """The widest half-width (relative) after so many seconds, if intervals narrow with the root of the processes."""
    widths = [one.widest[0] for one in comparisons]
    processes = [len({m.repetition for m in one.measurements}) for one in comparisons]
    costs = [one.cost_s for one in comparisons]
    while True:
        gains = [
            width * (1 - math.sqrt(n / (n + 1))) / cost if cost <= left_s and width > one.precision else 0.0
            for one, width, n, cost in zip(comparisons, widths, processes, costs, strict=True)
        ]
        place = max(range(len(gains)), key=gains.__getitem__)
        if not gains[place]:
            return max(widths)
        widths[place] *= math.sqrt(processes[place] / (processes[place] + 1))
        processes[place] += 1
        left_s -= costs[place]
