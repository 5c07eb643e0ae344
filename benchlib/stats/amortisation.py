"""After how many steps graph mode has paid for its compilation.

``n`` steps take the first one's time, compilation included, and ``n - 1`` steady ones. Both modes have taken equally
long after ``1 + (first of graph - first of eager) / (step of eager - step of graph)`` steps, with means over processes,
and Fieller's interval over the pairs of processes that were measured together. A pair of which a first step was
disturbed is left out; where that is more than half of them, there is no number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from benchlib.cache import Block, Measurement, counted
from benchlib.condition import Condition
from benchlib.stats.comparison import DISTURBED, Comparison
from benchlib.stats.intervals import Interval, mean_interval, ratio_of_means
from benchlib.stats.validity import MOST

PAYS, AT_ONCE, NEVER, NOT_SHOWN, NOT_MEASURED = "pays", "pays at once", "never pays", "not shown to pay", "not measured"


@dataclass(frozen=True)
class Amortisation:
    """Of graph mode against eager mode of the same framework; times in seconds."""

    verdict: str  # DISTURBED: most pairs' first steps were
    steps: Interval  # until both have taken equally long; nan unless it pays
    seconds: Interval  # that these steps take
    first: tuple[Interval, Interval]  # time of the first step, eager and graph; nan if disturbed
    step: tuple[Interval, Interval]  # of a steady step


def amortisation(comparison: Comparison, eager: Condition, graph: Condition) -> Amortisation:
    """Of two conditions of a comparison, which differ in the mode."""
    of_eager, of_graph = (_by_file(comparison, one) for one in (eager, graph))
    both = sorted(of_eager.keys() & of_graph.keys())
    every = [file for file in both if _quiet(of_eager[file]) and _quiet(of_graph[file])]
    quiet = [file for file in every if not any(of[file].first_step_disturbed_by for of in (of_eager, of_graph))]
    disturbed = len(every) - len(quiet) > MOST * len(every)
    files = every if disturbed else quiet
    first, step = (
        [np.array([read(of[file]) for file in files]) for of in (of_eager, of_graph)] for read in (_first_s, _step_s)
    )
    cost, gain = first[1] - first[0], step[0] - step[1]
    intervals = {"first": _intervals(first), "step": _intervals(step)}
    none = Interval(math.nan, math.nan, math.nan, len(files))
    if disturbed:
        return Amortisation(DISTURBED, none, none, first=(none, none), step=intervals["step"])
    verdict = _verdict(mean_interval(cost.tolist()), mean_interval(gain.tolist()))
    if verdict != PAYS:
        return Amortisation(verdict, none, none, **intervals)
    steps = _map(ratio_of_means(cost, gain), lambda ratio: 1 + max(0.0, ratio))
    seconds = _map(steps, lambda count: float(first[0].mean() + (count - 1) * step[0].mean()))
    return Amortisation(PAYS, steps, seconds, **intervals)


def _verdict(cost: Interval, gain: Interval) -> str:
    if not math.isfinite(gain.low):
        return NOT_MEASURED
    if not gain.excludes(0):
        return NOT_SHOWN
    if gain.estimate < 0:
        return NEVER
    return AT_ONCE if cost.high <= 0 else PAYS


def _by_file(comparison: Comparison, condition: Condition) -> dict[str, Measurement]:
    role = "baseline" if condition == comparison.baseline else "condition"
    mine = [m for m in comparison.measurements if m.role == role and m.condition == condition]
    return {m.file: m for m in mine if m.ok}


def _first_s(m: Measurement) -> float:
    return float(m.first_step_s)


def _step_s(m: Measurement) -> float:
    """Mean seconds of a step, over the rounds that were not disturbed in every take."""
    blocks = _quiet(m)
    return sum(block.wall_s for block in blocks) / sum(block.steps for block in blocks)


def _quiet(m: Measurement) -> list[Block]:
    return [block for block in counted(m.blocks) if not block.disturbed]


def _intervals(values: list[np.ndarray]) -> tuple[Interval, Interval]:
    eager, graph = (mean_interval(of.tolist(), least=0) for of in values)
    return eager, graph


def _map(interval: Interval, change) -> Interval:
    return Interval(*(change(value) for value in (interval.estimate, interval.low, interval.high)), interval.processes)
