"""Findings that several experiments have in common."""

from __future__ import annotations

from collections.abc import Iterator

from benchlib.plotting import naming
from benchlib.stats.comparison import Comparison
from benchlib.stats.frame import FAILED
from benchlib.suite.experiments.result import Result, different_models
from benchlib.tables import ratios_text


def throughputs(result: Result) -> Iterator[str]:
    """For each task the ratios of throughput that were measured."""
    rows = result.rows("throughput_ratio")
    for (task, baseline), measured in rows[rows["reason"].isna()].groupby(["task", "baseline_subject"], sort=False):
        yield f"{task}, throughput relative to {baseline}: {ratios_text(measured)}."


def absent(result: Result) -> Iterator[str]:
    """What could not be measured, and why."""
    rows = result.rows("throughput_ratio")
    for _, row in rows[rows["reason"].notna()].iterrows():
        yield f"{row['task']}: {row['subject']} {'' if row['why'] == FAILED else 'is '}{row['why']}: {row['reason']}"


def unrounded(result: Result) -> Iterator[str]:
    """Which precisions change nothing."""
    for part in result.parts:
        compared = part.measured.conditions if isinstance(part.measured, Comparison) else ()
        for one, name in naming.subjects(compared).items():
            if part.measured.certificates[one.key].unrounded:
                yield (
                    f"{part.task}: {name} computes as exactly as fp32: this precision changes nothing of this "
                    "model here, so its ratio shows nothing of the precision."
                )


def other_models(result: Result) -> Iterator[str]:
    """Whose training runs are not to be compared, by task."""
    for task, runs in result.runs.groupby("task", sort=False) if len(result.runs) else ():
        yield from (f"{task}: {warning}" for warning in different_models(runs))
