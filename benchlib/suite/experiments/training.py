"""What training runs show, relative to those of the first subject: rows of the frame, columns of tables, findings."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from benchlib import metrics, tables, workloads
from benchlib.stats import derived_ratios
from benchlib.stats.comparison import DISTURBED, verdict_on
from benchlib.stats.intervals import Interval
from benchlib.stats.training_runs import TrainingRuns
from benchlib.suite.experiments import metric
from benchlib.suite.experiments.result import Result
from benchlib.tables import interval_text, left_out, reached


def relative_to_first(runs: TrainingRuns) -> list[dict[str, Any]]:
    """How each subject's training compares with the first's."""
    first, *others = runs.conditions
    ratios = ("epoch_ratio", "threshold_ratio")
    rows = [derived_ratios.as_fast(runs, ratio, one, first) for one in others for ratio in ratios]
    return [*rows, *(derived_ratios.metric_difference(runs, one, first) for one in others)]


def baseline(row: pd.Series) -> str:
    """The first subject, with which that of a row is compared."""
    return row["subject"] if pd.isna(other := row.get("epoch_ratio_baseline_subject")) else other


def threshold(row: pd.Series) -> str:
    """In the readable unit."""
    if pd.isna(row["threshold"]):
        return tables.MISSING
    return metric.value_text(workloads.load(row["workload"]), row["threshold"])


def shown_threshold(rows: pd.DataFrame) -> float | None:
    """As it is drawn."""
    first = rows.iloc[0]
    if pd.isna(first["threshold"]):
        return None
    return first["threshold"] * metrics.readable(workloads.load(first["workload"]).metric)[0]


def metric_label(row: pd.Series) -> str:
    """Of the metric of a row's workload, with its unit."""
    return metric.label(workloads.load(row["workload"]))


def agreement(row: pd.Series) -> str:
    """What the metric's difference from the first shows."""
    if pd.isna(row.get("metric_difference")):  # no column at all where there is no other subject
        return tables.MISSING
    verdict = row["metric_difference_verdict"]
    return "no interval: too few seeds" if pd.isna(verdict) else verdict


def _by_task(result: Result, quantity: str) -> Iterator[tuple[str, pd.DataFrame]]:
    yield from result.rows(quantity).groupby("task", sort=False)


def learned(result: Result) -> Iterator[str]:
    """How soon each task was learned."""
    for task, rows in _by_task(result, "epochs_to_threshold"):
        each = "; ".join(f"{row['subject']} {_learned_text(row)}" for _, row in rows.iterrows())
        yield f"{task}, to {threshold(rows.iloc[0])}: {each}."


def _learned_text(row: pd.Series) -> str:
    lost = f"; times left out: {lost}" if (lost := left_out(row)) else ""
    if row["failed"]:
        return f"{row['failed']} runs failed, {reached(row)} reached it"
    if pd.isna(row["estimate"]):
        best = metric.value_text(workloads.load(row["workload"]), row["best_metric"])
        return f"reached by {reached(row)}, so there is no median; best {best}"
    if pd.isna(row["seconds_to_threshold"]):
        return f"{row['estimate']:g} epochs (median; {reached(row)} runs{lost})"
    seconds = tables.number(row["seconds_to_threshold"])
    return f"{row['estimate']:g} epochs, {seconds} s (medians, without compilation; {reached(row)} runs{lost})"


def whole_epochs(result: Result) -> Iterator[str]:
    """The throughput of whole epochs."""
    for _, row in result.rows("epoch_ratio").iterrows():
        if pd.isna(row["estimate"]) and row["why"] != DISTURBED:
            continue
        start = f"{row['task']}, throughput of whole epochs of training: {row['subject']} relative to"
        yield f"{start} {row['baseline_subject']} {_epochs_text(row)}."


def _epochs_text(row: pd.Series) -> str:
    """With the verdict, if there is an interval: one seed shows nothing of others."""
    if row["why"] == DISTURBED:
        return "no ratio: the training was disturbed"
    interval = Interval(row["estimate"], row["low"], row["high"], row["processes"])
    verdict = f", {verdict_on(interval, row['margin'])}" if math.isfinite(interval.low) else ""
    return f"{interval_text(row, of_ratio=True)}{verdict}"


def failed(result: Result) -> Iterator[str]:
    """How many runs of each task failed."""
    for task, rows in _by_task(result, "best_metric"):
        if failed := rows["failed"].sum():
            yield f"{task}: {failed} of {rows['runs'].sum()} training runs failed."


def first_epochs(result: Result) -> Iterator[str]:
    """The first epoch over the others."""
    for task, rows in _by_task(result, "first_epoch_ratio"):
        each = "; ".join(f"{row['subject']} {_first_text(row)}" for _, row in rows.iterrows())
        yield f"{task}, first epoch over the others: {each}."


def _first_text(row: pd.Series) -> str:
    if row["why"] == DISTURBED:
        return DISTURBED
    alone = interval_text(row, "first_epoch_alone_ratio", of_ratio=True)
    return f"{interval_text(row, of_ratio=True)} with compilation, {alone} without"


def final_metrics(result: Result) -> Iterator[str]:
    """What was learned, against the first."""
    for task, rows in _by_task(result, "final_metric"):
        first, *others = (row for _, row in rows.iterrows())
        unit = "percentage points" if first["unit"] == "%" else metric_label(first)
        for row in others:
            yield (
                f"{task}, {metric_label(row)} after {row['epochs']} epochs: {row['subject']} {interval_text(row)}, "
                f"{first['subject']} {interval_text(first)}, difference within seeds "
                f"{interval_text(row, 'metric_difference')} {unit}: {agreement(row)}."
            )


def agreements(result: Result) -> Iterator[str]:
    """In how many tasks the metric, and the time to the threshold, are shown to differ from the first's."""
    rows = result.rows("final_metric")
    if "metric_difference" in rows and len(others := rows[rows["metric_difference_processes"].notna()]):
        count = pd.Series([agreement(row) for _, row in others.iterrows()]).value_counts()
        counted = ", ".join(f"{verdict} in {number} of {len(others)}" for verdict, number in count.items())
        yield f"What is learned from the same seeds, by its metric: {counted}."
    rows = result.rows("threshold_ratio")
    known = rows.dropna(subset="estimate") if len(rows) else rows
    if len(known):
        most = known.loc[known["estimate"].map(lambda value: abs(math.log(value))).idxmax()]
        # People think of the time that it takes, of whoever is slower and of whoever is not.
        longer = tables.ratio(1 / most["estimate"], 1 / most["high"], 1 / most["low"])
        yield (
            f"The threshold was reached in every run of both in {len(known)} of {len(rows)} tasks; most apart in "
            f"{most['task']}: {most['subject']} takes {longer} times as long to it as {most['baseline_subject']}."
        )


FINDINGS = (learned, whole_epochs, failed, first_epochs, final_metrics)
