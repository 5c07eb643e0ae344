"""Warnings: the reasons why numbers are less sure than they look, a sentence each."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd

from benchlib import progress
from benchlib.runner.interference import THROTTLED
from benchlib.stats.comparison import DISTURBED, Comparison
from benchlib.stats.measured import Measured
from benchlib.stats.planner import PRECISION
from benchlib.tables import ends_text, span_text, spelled, wide

SHARE_DISTURBED = 0.2  # of the blocks that count: more is a warning
RESTLESS = 0.1  # cores that workers use who should sleep: more is a warning; of those that do sleep 0.04 are seen
ABOVE = "Shares of the machine's peak above 100 %, by another algorithm (Winograd), a peak seen too low, or less work"
AGAIN = " See that the machine is quiet (on a shared node: that you have it alone), delete the measurements, run again."


def early_ends(comparisons: list[Comparison]) -> list[str]:
    """The number of comparisons that ended before they reached their precision, and the cost of reaching it."""
    ended = [one for one in comparisons if one.plan.ended != PRECISION and math.isfinite(one.plan.half_width)]
    ended = [one for one in ended if DISTURBED not in set(one.ratios()["verdict"])]  # whose width shows nothing
    if not ended:
        return []
    plans = [one.plan for one in ended]
    processes = ends_text([f"{more:,}" for more in sorted(plan.more_processes for plan in plans)])
    duration = ends_text([progress.duration(more_s) for more_s in sorted(plan.more_s for plan in plans)])
    return [
        f"{len(ended)} of {len(comparisons)} comparisons ended before they reached the {100 * ended[0].precision:g} % "
        f"that was asked for: their half-widths are {span_text([100 * plan.half_width for plan in plans], 2)} %. "
        f"About {processes} more processes of each condition would reach it, in {duration}."
    ]


def of_rows(frame: pd.DataFrame) -> list[str]:
    """Warnings about unsteady, disturbed or throttled measurements: a sentence for each kind of trouble."""
    columns = ["steady", "disturbed", "slows_down", "idle_cores", "accelerator_throttled", "peak_share_percent"]
    steps = wide(frame, "steady").set_index("label").reindex(columns=columns)
    runs = wide(frame, "epoch_s").set_index("label")
    disturbed = steps["disturbed"].where(steps["disturbed"] > SHARE_DISTURBED)
    restless = steps["idle_cores"].where(steps["idle_cores"] > RESTLESS)
    kinds = [
        ("Processes were not steady after their warm-up, so throughput may be too low", 1 - steps["steady"], ""),
        ("Blocks were disturbed in every take", disturbed, AGAIN),
        ("Steps keep getting slower, so throughput is no constant", steps["slows_down"], ""),
        ("Workers that should sleep used so much of a core", restless, ""),
        (ABOVE, steps["peak_share_percent"].where(lambda share: share > 100) / 100, ""),
        ("The accelerator's clocks were held down by heat or power", steps["accelerator_throttled"], ""),
        ("Training runs were disturbed, so their times count nowhere", runs["left_out"] / runs["runs"], AGAIN),
    ]
    return [
        f"{kind}: {'; '.join(f'{spelled(label)} ({100 * share:.0f} %)' for label, share in affected.items())}.{again}"
        for kind, shares, again in kinds
        if len(affected := shares[shares > 0])
    ]


def throttled_blocks(measured: Iterable[Measured]) -> list[str]:
    """The number of blocks that a CPU quota held back."""
    every = [(m.machine, block) for one in measured for m in one.measurements for block in m.blocks]
    held = [machine["cpu_quota"] for machine, block in every if THROTTLED in block.disturbed_by]
    if not held:
        return []
    cores = [quota for quota in held if quota is not None]  # of one that came or went meanwhile nothing is known
    of = f" of {min(cores):g} cores" if cores else ""
    return [
        f"{len(held)} of {len(every)} blocks were held back by a CPU quota{of} (a container's or a "
        "batch system's): ask for a larger one, or give the conditions no more `threads` than it allows."
    ]
