"""What makes the numbers of a result less sure than they look, in words."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd

from benchlib import progress, tables
from benchlib.runner.interference import THROTTLED
from benchlib.stats.comparison import DISTURBED, Comparison
from benchlib.stats.measured import Measured
from benchlib.stats.planner import PRECISION
from benchlib.stats.training_runs import TrainingRuns, undisturbed
from benchlib.stats.validity import LOST, MOST
from benchlib.tables import ends_text, span_text


def unfinished(comparisons: list[Comparison]) -> list[str]:
    """A sentence on the comparisons that ended before their precision was reached: what more it would have taken."""
    ended = [one for one in comparisons if one.plan.ended != PRECISION and math.isfinite(one.plan.half_width)]
    ended = [one for one in ended if DISTURBED not in set(one.ratios()["verdict"])]  # whose width shows nothing
    if not ended:
        return []
    plans = sorted((one.plan for one in ended), key=lambda plan: plan.more_processes)
    shared = math.isinf(ended[0].budget_s)
    within = "the time that they share" if shared else f"their budget of {progress.duration(ended[0].budget_s)}"
    return [
        f"{len(ended)} of {len(comparisons)} comparisons did not reach the {100 * ended[0].precision:g} % that was "
        f"asked for in {within}: half-widths of {span_text([100 * plan.half_width for plan in plans], 2)} %. About "
        f"{ends_text([f'{plan.more_processes:,}' for plan in plans])} more processes of each condition would reach it, "
        f"in {ends_text([progress.duration(more_s) for more_s in sorted(plan.more_s for plan in plans)])}."
    ]


SHARE_DISTURBED = 0.2
"""Of the blocks that count: more is told."""

RESTLESS = 0.1
"""Cores that the other workers use meanwhile: more is told. CPU time is counted in hundredths of a second, so that some
0.04 are seen of workers that sleep."""


QUIET = "the machine is quiet (on a shared node: that it is alone, or has cores of its own)"


def throttled(measured: Iterable[Measured]) -> list[str]:
    """A sentence on the blocks that a CPU quota held back, if there are any."""
    every = [(m.machine, block) for one in measured for m in one.measurements for block in m.blocks]
    held = [machine["cpu_quota"] for machine, block in every if THROTTLED in block.disturbed_by]
    if not held:
        return []
    return [
        f"{len(held)} of {len(every)} blocks were held back by a CPU quota of {min(held):g} cores (a container's or a "
        "batch system's): ask for a larger one, or give the conditions no more `threads` than it allows."
    ]


def disturbances(rows: pd.DataFrame) -> list[str]:
    """A sentence for each condition that was compared (rows of ``selections.wide``) whose processes were not steady or
    not alone, and one on those whose others did not sleep.
    """
    if not len(rows):
        return []
    sentences = []
    for _, row in rows.iterrows():
        if row["steady"] < 1:
            sentences.append(
                f"{row['label']}: {row['steady']:.0%} of its processes were steady when their blocks began; of the "
                "others it could not be shown in the time for warm-up, so its throughput may be too low."
            )
        if row["disturbed"] > SHARE_DISTURBED:
            lost = "; it has no throughput" if row["disturbed"] > MOST else ""
            sentences.append(
                f"{row['label']}: {row['disturbed']:.0%} of its blocks were disturbed in every take{lost}: see that "
                f"{QUIET}, delete the measurement and run again."
            )
        if row.get("accelerator_throttled", 0) > 0:
            sentences.append(
                f"{row['label']}: the driver held the accelerator's clocks down for {row['accelerator_throttled']:.0%} "
                "of the time, because of heat or power."
            )
        if row["slows_down"] == 1:
            sentences.append(f"{row['label']}: it keeps getting slower: its throughput is no constant.")
    restless = rows[rows["idle_cores"] > RESTLESS]
    if len(restless):
        worst = restless.loc[restless["idle_cores"].idxmax()]
        sentences.append(
            f"Beside {len(restless)} of {len(rows)} conditions the other workers of the comparison, who should sleep, "
            f"used more than {RESTLESS:g} cores in a process; most, {tables.number(worst['idle_cores'], 2)}, beside "
            f"{worst['label']}."
        )
    return sentences


def disturbed_controls(comparisons: Iterable[Comparison]) -> list[str]:
    """A sentence for each comparison whose A/A control is disturbed."""
    return [
        f"{one.baseline}, A/A: no ratio: more than half of its rounds were disturbed in every take (see that the "
        "machine is quiet, delete the measurements and run again); what its comparison can resolve is not known."
        for one in comparisons
        if one.disturbed(one.baseline, one.baseline, "control")
    ]


def disturbed_runs(trained: Iterable[TrainingRuns]) -> list[str]:
    """A sentence for each condition with runs whose times do not count."""
    return [
        f"{label}: {len(rows) - len(undisturbed(rows))} of {len(rows)} training runs were disturbed for more than half "
        f"of their time, or lost more than {LOST:.0%} of the time to the threshold to it. Their times count nowhere: "
        f"see that {QUIET}, delete the measurements and run again."
        for runs in trained
        for label, rows in runs.runs().groupby("label", sort=False)
        if len(undisturbed(rows)) < len(rows)
    ]
