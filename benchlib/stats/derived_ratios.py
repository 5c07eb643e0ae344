"""Rows of the tidy frame that relate any two conditions of one comparison, or of the same training runs. The frame of a
comparison has the ratios to its baseline.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchlib import frameworks, metrics, workloads
from benchlib.condition import Condition
from benchlib.data.prepare import prepare
from benchlib.stats import frame as tidy
from benchlib.stats.amortisation import PAYS, amortisation
from benchlib.stats.comparison import DISTURBED, NO_DIFFERENCE, NO_RATIO, NOT_MEASURED, Comparison, verdict_on
from benchlib.stats.intervals import geometric_interval, mean_interval
from benchlib.stats.training_runs import TrainingRuns
from benchlib.worker.batches import Batches

HIGHER, LOWER = "higher", "lower"  # verdicts on a difference; the third is ``comparison.NO_DIFFERENCE``


def pair_rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """The rows of ``pair_ratio``: throughput relative to each condition of a comparison but its baseline. Readers of
    the report choose the condition to compare with.

    A ratio is made from the processes of its two conditions, never from two other ratios. Seen from the other side, the
    logarithms that it is the mean of change their signs, and the ends of its interval their places.
    """
    for one, other in itertools.combinations(comparison.conditions, 2):
        ratio, verdict = comparison.verdict(one, other)
        files = " ".join(comparison.files(one, other))
        if one != comparison.baseline:
            yield tidy.row("pair_ratio", other, ratio, one, **tidy.verdict_columns(verdict), files=files)
        if verdict not in NO_RATIO:
            ratio = ratio.map(lambda value: 1 / value)
            verdict = verdict_on(ratio, comparison.margin)
        yield tidy.row("pair_ratio", one, ratio, other, **tidy.verdict_columns(verdict), files=files)


def ratio_row(
    comparison: Comparison,
    quantity: str,
    condition: Condition,
    baseline: Condition,
    change: Callable[[float], float] | None = None,
) -> dict[str, Any]:
    """The row of a quantity computed from the ratio of throughput to a baseline. It is the ratio itself, with its
    verdict, or the result of a monotonic ``change`` of it.
    """
    ratio, verdict = comparison.verdict(baseline, condition)
    columns = {**tidy.verdict_columns(verdict), "files": " ".join(comparison.files(condition, baseline))}
    if change:
        columns["verdict"] = None  # it is on the ratio
        ratio = ratio.map(change)
    return tidy.row(quantity, condition, ratio, baseline, **columns)


def within_frameworks(comparison: Comparison, inputs: Path) -> Iterator[dict[str, Any]]:
    """The ratio of each two comparable conditions that differ in mode or precision only, and when graph
    mode has paid for its compilation. ``inputs`` is where prepared data are.
    """
    there = comparison.conditions
    graphs = [(one.but(mode="eager"), one) for one in there if one.mode != "eager" in frameworks.modes(one.framework)]
    mixed = [(one.but(precision="fp32"), one) for one in there if one.precision != "fp32"]
    for one, other in [*graphs, *mixed]:
        if one in there:
            row = ratio_row(comparison, "within_ratio", other, one)
            yield from [row] if row["why"] in {None, DISTURBED} else []
    base, steps = comparison.baseline, None
    workload = workloads.load(base.workload)
    if workload.kind == "training":
        steps = Batches(prepare(base, 0, inputs), base.batch_size, None, workload.fields).steps_per_epoch
    for eager, graph in graphs:
        if eager in there:
            yield from _amortisation_rows(comparison, eager, graph, steps)


def _amortisation_rows(
    comparison: Comparison, eager: Condition, graph: Condition, steps_of_epoch: float | None
) -> Iterator[dict[str, Any]]:
    """The rows on when graph mode has paid for its compilation (see ``amortisation``). A workload that has epochs of
    such steps has them in epochs, too; two conditions that cannot be compared have none.
    """
    if comparison.verdict(eager, graph)[1] in NO_RATIO:
        return
    verdict, quantities = amortisation(comparison, eager, graph)
    if steps_of_epoch:
        quantities["pays_after_epochs"] = quantities["pays_after_steps"].map(lambda steps: steps / steps_of_epoch)
    files = " ".join(comparison.files(eager, graph))
    for quantity, interval in quantities.items():
        why = None if math.isfinite(interval.estimate) else verdict if verdict != PAYS else NOT_MEASURED
        said = {"verdict": PAYS if quantity.startswith("pays") and verdict == PAYS else None, "why": why}
        yield tidy.row(quantity, graph, interval, eager, files=files, **said)


def of_groups(comparison: Comparison, subjects: Sequence[Sequence[Condition]]) -> Iterator[dict[str, Any]]:
    """The ratios of processes that train together, and the cost of the exchange of gradients. Ratios are to one process
    (the first condition of each subject), to one with as many threads in all, and to the first subject.
    """
    there = [own for own in subjects if own]
    for own in there:
        base, of_first = own[0], {} if own is there[0] else tidy.NO_CONTROL
        for its, condition in zip(there[0], own, strict=True):
            if not condition.communication:
                continue
            if condition != base:
                yield {**ratio_row(comparison, "within_ratio", condition, base), **of_first}
            if its != condition:
                yield ratio_row(comparison, "subject_ratio", condition, its)
            if (count := condition.world_size) == 1:
                continue
            yield ratio_row(comparison, "efficiency_percent", condition, base, lambda ratio, n=count: 100 * ratio / n)
            threads, alone = base.but(threads=count * base.threads), condition.but(communication=False)
            if threads in own:
                yield {**ratio_row(comparison, "same_threads_ratio", condition, threads), **of_first}
            if alone in own:
                yield ratio_row(comparison, "communication_percent", condition, alone, lambda ratio: 100 * (1 - ratio))


def speed_ratio_row(runs: TrainingRuns, quantity: str, condition: Condition, baseline: Condition) -> dict[str, Any]:
    """The row of an ``epoch_ratio`` or a ``threshold_ratio`` (see ``TrainingRuns.times_as_fast``)."""
    seconds = {"epoch_ratio": "epoch_s", "threshold_ratio": "seconds_to_threshold"}[quantity]
    ratio, why = runs.times_as_fast(condition, baseline, seconds)
    return tidy.row(quantity, condition, ratio, baseline, why=why, files=" ".join(runs.files(baseline, condition)))


def to_lowest_rate(runs: TrainingRuns) -> list[dict[str, Any]]:
    """The speed of an epoch with each other learning rate of a subject, relative to that with its lowest."""
    by_subject: dict[str, list[Condition]] = {}
    for condition in sorted(runs.conditions, key=lambda condition: condition.learning_rate or 0.0):
        by_subject.setdefault(condition.subject, []).append(condition)
    pairs = [(one, lowest) for lowest, *others in by_subject.values() for one in others]
    return [speed_ratio_row(runs, "epoch_ratio", one, lowest) for one, lowest in pairs]


def relative_to_first(runs: TrainingRuns) -> list[dict[str, Any]]:
    """The training of each condition relative to that of the first."""
    first, *others = runs.conditions
    rows = [speed_ratio_row(runs, ratio, one, first) for one in others for ratio in ("epoch_ratio", "threshold_ratio")]
    return [*rows, *(metric_difference(runs, one, first) for one in others)]


def metric_difference(runs: TrainingRuns, condition: Condition, baseline: Condition) -> dict[str, Any]:
    """The row of the metric's difference from a baseline, within the seeds that both have, in the readable unit."""
    workload = workloads.load(condition.workload)
    factor, _ = metrics.readable_unit(workload.metric)
    least, greatest = (factor * end for end in metrics.limits(workload))
    mine, theirs = (factor * _by_seed(runs, one, "metric") for one in (condition, baseline))
    interval = mean_interval((mine - theirs).dropna().to_list(), least - greatest, greatest - least)
    columns = {"why": None if interval.processes else NOT_MEASURED, "files": " ".join(runs.files(baseline, condition))}
    if math.isfinite(interval.low):
        sign = HIGHER if interval.estimate > 0 else LOWER
        columns["verdict"] = sign if interval.excludes(0) else NO_DIFFERENCE
    return tidy.row("metric_difference", condition, interval, baseline, **columns)


def relative_to_fp32(runs: TrainingRuns) -> list[dict[str, Any]]:
    """The last loss of each condition in mixed precision relative to that of the same in fp32."""
    pairs = [(one, one.but(precision="fp32")) for one in runs.conditions if one.precision != "fp32"]
    return [loss_ratio(runs, one, exact) for one, exact in pairs if exact in runs.conditions]


def loss_ratio(runs: TrainingRuns, condition: Condition, baseline: Condition) -> dict[str, Any]:
    """The row of the last epoch's loss over a baseline's, within the seeds of which neither diverged."""
    mine, theirs = (
        _by_seed(runs, one, "loss").drop(tidy.first_diverged(runs, one), errors="ignore")
        for one in (condition, baseline)
    )
    ratios = (mine / theirs).dropna()
    ratio = geometric_interval([math.log(value) if value > 0 else math.nan for value in ratios])
    why = None if math.isfinite(ratio.estimate) else NOT_MEASURED
    return tidy.row("loss_ratio", condition, ratio, baseline, why=why, files=" ".join(runs.files(condition, baseline)))


def _by_seed(runs: TrainingRuns, condition: Condition, column: str) -> pd.Series:
    """A column of ``TrainingRuns.runs``, of the runs of a condition that have it."""
    every = runs.runs()
    return every[every["label"] == str(condition)].set_index("seed")[column].dropna()
