"""Rows of the tidy frame that relate two conditions of one comparison, or of the same training runs: any two, where the
frame of a comparison has the ratios to its baseline.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchlib import metrics, workloads
from benchlib.condition import Condition
from benchlib.data.prepare import prepare
from benchlib.stats import frame as tidy
from benchlib.stats.amortisation import PAYS, amortisation
from benchlib.stats.comparison import (
    DISTURBED,
    MODELS_DIFFER,
    MODELS_NOT_CHECKED,
    NO_DIFFERENCE,
    NOT_MEASURED,
    SLOWS_DOWN,
    Comparison,
    verdict_on,
)
from benchlib.stats.intervals import Interval, geometric_interval, mean_interval
from benchlib.stats.training_runs import TrainingRuns
from benchlib.stats.validity import DIFFERENT, NOT_CHECKED, SAME
from benchlib.worker.batches import Batches

HIGHER, LOWER = "higher", "lower"
"""Verdicts on a difference; the third is ``comparison.NO_DIFFERENCE``."""

NO_RATIO = {MODELS_DIFFER, MODELS_NOT_CHECKED, NOT_MEASURED, SLOWS_DOWN, DISTURBED}
"""Verdicts on what has no ratio."""


def between(comparison: Comparison, one: Condition, other: Condition) -> tuple[Interval, str]:
    """Throughput of ``other`` over that of ``one``, any two of a comparison, and the verdict, by the rules by which
    ``Comparison.ratios`` gives both relative to the baseline: nan where the verdict is one of :data:`NO_RATIO`.
    """
    ratio = comparison.between(one, other)
    certificates = [comparison.certificates.get(condition.key) for condition in (one, other)]
    proofs = {certificate.verdict if certificate else NOT_CHECKED for certificate in certificates}
    if proofs != {SAME}:
        verdict = MODELS_DIFFER if DIFFERENT in proofs else MODELS_NOT_CHECKED
    elif ratio.processes == 0:
        verdict = NOT_MEASURED
    elif comparison.disturbed(one, other):
        verdict = DISTURBED
    elif comparison.slows_down(one) or comparison.slows_down(other):
        verdict = SLOWS_DOWN
    else:
        verdict = verdict_on(ratio, comparison.margin)
    if verdict in NO_RATIO:
        ratio = Interval(math.nan, math.nan, math.nan, ratio.processes)
    return ratio, verdict


def pairs(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """The rows of ``pair_ratio``: throughput relative to each condition of a comparison but its baseline, by the rules
    of :func:`between`, so that whoever reads them can choose what to compare with.

    A ratio is made from the processes of its two conditions, never from two other ratios. Seen from the other side, the
    logarithms that it is the mean of change their signs, and the ends of its interval their places.
    """
    for one, other in itertools.combinations(comparison.conditions, 2):
        ratio, verdict = between(comparison, one, other)
        files = " ".join(comparison.files(one, other))
        if one != comparison.baseline:
            yield tidy.row("pair_ratio", other, ratio, one, **tidy.said(verdict), files=files)
        if verdict not in NO_RATIO:
            ratio = Interval(1 / ratio.estimate, 1 / ratio.high, 1 / ratio.low, ratio.processes)
            verdict = verdict_on(ratio, comparison.margin)
        yield tidy.row("pair_ratio", one, ratio, other, **tidy.said(verdict), files=files)


def throughput(
    comparison: Comparison,
    quantity: str,
    condition: Condition,
    baseline: Condition,
    change: Callable[[float], float] | None = None,
) -> dict[str, Any]:
    """The row of a quantity that follows from the ratio of throughput to a baseline: the ratio itself, with its
    verdict, or what a monotonous ``change`` makes of it.
    """
    ratio, verdict = between(comparison, baseline, condition)
    columns = {**tidy.said(verdict), "files": " ".join(comparison.files(condition, baseline))}
    if change:
        columns["verdict"] = None  # it is on the ratio
        ends = sorted((change(ratio.low), change(ratio.high)))
        ratio = Interval(change(ratio.estimate), *ends, ratio.processes)
    return tidy.row(quantity, condition, ratio, baseline, **columns)


def within_frameworks(comparison: Comparison, inputs: Path) -> Iterator[dict[str, Any]]:
    """Of each two conditions that differ in mode or precision only, and can be compared: their ratio, and when graph
    mode has paid for its compilation. ``inputs`` is where prepared data are.
    """
    there = comparison.conditions
    graphs = [(one.but(mode="eager"), one) for one in there if one.mode != "eager"]
    mixed = [(one.but(precision="fp32"), one) for one in there if one.precision != "fp32"]
    for one, other in [*graphs, *mixed]:
        if one in there:
            row = throughput(comparison, "within_ratio", other, one)
            yield from [row] if row["why"] in {None, DISTURBED} else []
    steps = _steps_of_epoch(comparison.baseline, inputs)
    for eager, graph in graphs:
        if eager in there:
            yield from _amortised(comparison, eager, graph, steps)


def _steps_of_epoch(condition: Condition, inputs: Path) -> float | None:
    """Training steps of a pass over the data; None of a workload that does not train."""
    workload = workloads.load(condition.workload)
    if workload.kind != "training":
        return None
    return Batches(prepare(condition, 0, inputs), condition.batch_size, None, workload.fields).steps_per_epoch


def _amortised(
    comparison: Comparison, eager: Condition, graph: Condition, steps_of_epoch: float | None
) -> list[dict[str, Any]]:
    """The rows on when graph mode has paid for its compilation (see ``amortisation``), in epochs, too, of a workload
    that has such steps; none of two that cannot be compared.
    """
    if between(comparison, eager, graph)[1] in NO_RATIO:
        return []
    paid = amortisation(comparison, eager, graph)
    why = None if paid.verdict == PAYS else paid.verdict
    quantities = {
        "first_eager_s": paid.first[0],
        "first_graph_s": paid.first[1],
        "step_eager_ms": _times(paid.step[0], 1000),
        "step_graph_ms": _times(paid.step[1], 1000),
        "pays_after_steps": paid.steps,
        "pays_after_s": paid.seconds,
    }
    if steps_of_epoch:
        quantities["pays_after_epochs"] = _times(paid.steps, 1 / steps_of_epoch)
    files = " ".join(comparison.files(eager, graph))
    rows = []
    for quantity, interval in quantities.items():
        said = {"verdict": PAYS if quantity.startswith("pays") and why is None else None}
        said["why"] = None if math.isfinite(interval.estimate) else why or tidy.NOT_MEASURED
        rows.append(tidy.row(quantity, graph, interval, eager, files=files, **said))
    return rows


def of_groups(comparison: Comparison, subjects: Sequence[Sequence[Condition]]) -> Iterator[dict[str, Any]]:
    """Of processes that train together, the ratio to one process, which is the first condition of each subject; to one
    that has as many threads in all; what the exchange of gradients takes; and the ratio to the first subject.
    """
    there = [own for own in subjects if own]
    for own in there:
        base, of_first = own[0], {} if own is there[0] else tidy.NO_CONTROL
        for its, condition in zip(there[0], own, strict=True):
            if not condition.communication:
                continue
            if condition != base:
                yield {**throughput(comparison, "within_ratio", condition, base), **of_first}
            if its != condition:
                yield throughput(comparison, "subject_ratio", condition, its)
            if (count := condition.world_size) == 1:
                continue
            yield throughput(comparison, "efficiency_percent", condition, base, lambda ratio, n=count: 100 * ratio / n)
            threads, alone = base.but(threads=count * base.threads), condition.but(communication=False)
            if threads in own:
                yield {**throughput(comparison, "same_threads_ratio", condition, threads), **of_first}
            if alone in own:
                yield throughput(comparison, "communication_percent", condition, alone, lambda ratio: 100 * (1 - ratio))


def as_fast(runs: TrainingRuns, quantity: str, condition: Condition, baseline: Condition) -> dict[str, Any]:
    """The row of an ``epoch_ratio`` or a ``threshold_ratio`` (see ``TrainingRuns.times_as_fast``)."""
    seconds = {"epoch_ratio": "epoch_s", "threshold_ratio": "seconds_to_threshold"}[quantity]
    ratio, why = runs.times_as_fast(condition, baseline, seconds)
    return tidy.row(quantity, condition, ratio, baseline, why=why, files=" ".join(runs.files(baseline, condition)))


def to_lowest_rate(runs: TrainingRuns) -> list[dict[str, Any]]:
    """How many times as fast as with a subject's lowest learning rate an epoch is trained with its others."""
    by_subject: dict[str, list[Condition]] = {}
    for condition in sorted(runs.conditions, key=lambda condition: condition.learning_rate):
        by_subject.setdefault(condition.subject, []).append(condition)
    pairs = [(one, lowest) for lowest, *others in by_subject.values() for one in others]
    return [as_fast(runs, "epoch_ratio", one, lowest) for one, lowest in pairs]


def relative_to_first(runs: TrainingRuns) -> list[dict[str, Any]]:
    """How the training of each condition compares with that of the first."""
    first, *others = runs.conditions
    rows = [as_fast(runs, ratio, one, first) for one in others for ratio in ("epoch_ratio", "threshold_ratio")]
    return [*rows, *(metric_difference(runs, one, first) for one in others)]


def metric_difference(runs: TrainingRuns, condition: Condition, baseline: Condition) -> dict[str, Any]:
    """The row of the metric's difference from a baseline, within the seeds that both have, in the readable unit."""
    workload = workloads.load(condition.workload)
    factor, _ = metrics.readable(workload.metric)
    least, greatest = (factor * end for end in metrics.limits(workload))
    every = runs.runs()
    mine, theirs = (
        every[every["label"] == str(one)].set_index("seed")["metric"].dropna() * factor for one in (condition, baseline)
    )
    interval = mean_interval((mine - theirs).dropna().to_list(), least - greatest, greatest - least)
    columns = {"why": None if interval.processes else NOT_MEASURED, "files": " ".join(runs.files(baseline, condition))}
    if math.isfinite(interval.low):
        sign = HIGHER if interval.estimate > 0 else LOWER
        columns["verdict"] = sign if interval.excludes(0) else NO_DIFFERENCE
    return tidy.row("metric_difference", condition, interval, baseline, **columns)


def relative_to_fp32(runs: TrainingRuns) -> list[dict[str, Any]]:
    """How the last loss of each condition in mixed precision compares with that of the same in fp32."""
    pairs = [(one, one.but(precision="fp32")) for one in runs.conditions if one.precision != "fp32"]
    return [loss_ratio(runs, one, exact) for one, exact in pairs if exact in runs.conditions]


def loss_ratio(runs: TrainingRuns, condition: Condition, baseline: Condition) -> dict[str, Any]:
    """The row of the last epoch's loss over a baseline's, within the seeds of which neither diverged."""
    every = runs.runs()
    mine, theirs = (
        every[(every["label"] == str(one)) & ~every["seed"].isin(tidy.first_diverged(runs, one))]
        .set_index("seed")["loss"]
        .dropna()
        for one in (condition, baseline)
    )
    ratios = (mine / theirs).dropna()
    ratio = geometric_interval([math.log(value) if value > 0 else math.nan for value in ratios])
    why = None if math.isfinite(ratio.estimate) else NOT_MEASURED
    return tidy.row("loss_ratio", condition, ratio, baseline, why=why, files=" ".join(runs.files(condition, baseline)))


def _times(interval: Interval, factor: float) -> Interval:
    return Interval(interval.estimate * factor, interval.low * factor, interval.high * factor, interval.processes)
