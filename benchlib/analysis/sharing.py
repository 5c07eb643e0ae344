"""One clock for several comparisons: where its next seconds narrow the widest intervals most, and what they should
bring.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from benchlib.analysis.comparison import Comparison
from benchlib.progress import duration


@dataclass(frozen=True)
class Worth:
    """What another repetition of a comparison should bring (``planner.gain``), and the seconds that it should take:
    until its processes have opened, which comparisons can share, and all that comes after.
    """

    gain: float
    opening_s: float
    own_s: float


@dataclass(frozen=True)
class Choice:
    """Comparisons to repeat in the same processes, by their places in what was chosen from; none: it was empty."""

    members: list[int]
    gain: float  # of all together
    cost_s: float

    @property
    def gain_per_s(self) -> float:
        return self.gain / self.cost_s if self.members else -math.inf


NOTHING = Choice([], 0.0, 0.0)


def best_together(worth: Sequence[Worth], left_s: float = math.inf) -> Choice:
    """Of comparisons that can be repeated in the same processes within the time that is left those for which it is
    worth most by the second.
    """
    by_worth = sorted(range(len(worth)), key=lambda place: worth[place].gain / worth[place].own_s, reverse=True)
    choices = []
    for number in range(1, len(worth) + 1):
        chosen = [worth[place] for place in by_worth[:number]]
        cost_s = max(one.opening_s for one in chosen) + sum(one.own_s for one in chosen)
        if cost_s <= left_s:
            choices.append(Choice(by_worth[:number], sum(one.gain for one in chosen), cost_s))
    return max(choices, key=lambda choice: choice.gain_per_s, default=NOTHING)


def best(comparisons: Sequence[Comparison], left_s: float) -> Choice:
    """As :func:`best_together`, of comparisons: not of those that have what was asked for, or nothing to plan with."""
    due = [place for place, one in enumerate(comparisons) if one.measurements and not one.settled]
    choice = best_together([Worth(comparisons[place].gain, *comparisons[place].costs) for place in due], left_s)
    return Choice([due[place] for place in choice.members], choice.gain, choice.cost_s)


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
    """The widest half-width (relative) after so many seconds, if intervals narrow with the root of the processes, and
    no comparison shares its processes with others.
    """
    widths = [one.widest[0] for one in comparisons]
    processes = [len({m.repetition for m in one.measurements}) for one in comparisons]
    costs = [sum(one.costs) for one in comparisons]
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
