"""After how many steps graph mode has paid for its compilation.

``n`` steps take the first one's time, compilation included, and ``n - 1`` steady ones. Both modes have taken equally
long after ``1 + (first of graph - first of eager) / (step of eager - step of graph)`` steps. Steps are means over
processes; Fieller's interval is over the pairs of processes that were measured together. A pair of which a first step
was disturbed is left out; where that is more than half of them, there is no number.
"""

from __future__ import annotations

import math

import numpy as np

from benchlib.cache import Block, Measurement, final_takes
from benchlib.condition import Condition
from benchlib.stats.comparison import DISTURBED, NOT_MEASURED, Comparison
from benchlib.stats.intervals import Interval, mean_interval, ratio_of_means
from benchlib.stats.validity import MOST

PAYS, AT_ONCE, NEVER, NOT_SHOWN = "pays", "pays at once", "never pays", "not shown to pay"


def amortisation(comparison: Comparison, eager: Condition, graph: Condition) -> tuple[str, dict[str, Interval]]:
    """The verdict on two conditions of a comparison that differ in the mode, and their ``frame.OF_GRAPHS`` quantities.
    Those that begin with ``pays`` are nan unless it pays.
    """
    every = [pair for pair in comparison.pairs(eager, graph) if all(map(_undisturbed_blocks, pair))]
    quiet = [pair for pair in every if not any(m.first_step_disturbed_by for m in pair)]
    disturbed = len(every) - len(quiet) > MOST * len(every)
    pairs = every if disturbed else quiet
    modes = [[pair[place] for pair in pairs] for place in (0, 1)]
    first, step = ([np.array([read(m) for m in of]) for of in modes] for read in (lambda m: m.first_step_s, _step_s))
    cost, gain = first[1] - first[0], step[0] - step[1]
    steps = seconds = none = Interval(processes=len(pairs))
    verdict = DISTURBED if disturbed else _verdict(mean_interval(cost.tolist()), mean_interval(gain.tolist()))
    if verdict == PAYS:
        steps = ratio_of_means(cost, gain).map(lambda ratio: 1 + max(0.0, ratio))
        seconds = steps.map(lambda count: float(first[0].mean() + (count - 1) * step[0].mean()))
    first_eager, first_graph = (none if disturbed else mean_interval(times.tolist(), least=0) for times in first)
    step_eager, step_graph = (mean_interval((1000 * times).tolist(), least=0) for times in step)
    return verdict, {
        **{"first_eager_s": first_eager, "first_graph_s": first_graph},
        **{"step_eager_ms": step_eager, "step_graph_ms": step_graph},
        **{"pays_after_steps": steps, "pays_after_s": seconds},
    }


def _verdict(cost: Interval, gain: Interval) -> str:
    if not math.isfinite(gain.low):
        return NOT_MEASURED
    if not gain.excludes(0):
        return NOT_SHOWN
    if gain.estimate < 0:
        return NEVER
    return AT_ONCE if cost.high <= 0 else PAYS


def _step_s(m: Measurement) -> float:
    """Mean seconds of a step, over the rounds that were not disturbed in every take."""
    blocks = _undisturbed_blocks(m)
    return sum(block.wall_s for block in blocks) / sum(block.steps for block in blocks)


def _undisturbed_blocks(m: Measurement) -> list[Block]:
    return [block for block in final_takes(m.blocks) if not block.disturbed]
