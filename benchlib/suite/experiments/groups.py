"""What processes that train together give over one: rows of the frame, words for them, and findings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from operator import mul
from typing import Any

import pandas as pd

from benchlib.condition import Condition
from benchlib.stats import derived_ratios
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import Comparison
from benchlib.stats.frame import IMPOSSIBLE
from benchlib.suite.experiments.result import Result
from benchlib.tables import interval_text, ratio_text

STRONG, WEAK, ONE = "strong", "weak", "one process"
"""The batch is shared; each process has a batch of its own; the same batch without processes."""

BASELINE = "baseline"
"""The verdict on what the others are compared with."""


@dataclass(frozen=True)
class Subject:
    """A subject's conditions, its baseline first, in the same order for every subject."""

    conditions: list[Condition]
    why: str | None  # it cannot be run here


def rows(comparison: Comparison, one: Subject, every: list[Subject]) -> Iterator[dict[str, Any]]:
    """Of what communicates the ratio to one process of the subject, and of a group what else there is to compare it
    with; relative to the first subject; and what cannot be run here.
    """
    base, first = one.conditions[0], next((other for other in every if other.why is None), one)
    of_first = {} if one is first else tidy.NO_CONTROL
    for its, condition in zip(first.conditions, one.conditions, strict=True):
        if not condition.communication:
            continue
        if one.why is not None:
            yield tidy.absent("samples_per_second", condition, base, why=IMPOSSIBLE, reason=one.why)
            continue
        if condition != base:
            yield {**derived_ratios.throughput(comparison, "within_ratio", condition, base), **of_first}
        if one is not first:
            yield derived_ratios.throughput(comparison, "subject_ratio", condition, its)
        if (count := condition.world_size) == 1:
            continue
        yield derived_ratios.throughput(comparison, "efficiency_percent", condition, base, partial(mul, 100 / count))
        threads, alone = base.but(threads=count * base.threads), condition.but(communication=False)
        if threads in comparison.conditions:
            yield {**derived_ratios.throughput(comparison, "same_threads_ratio", condition, threads), **of_first}
        if alone in comparison.conditions:
            yield derived_ratios.throughput(
                comparison, "communication_percent", condition, alone, lambda ratio: 100 * (1 - ratio)
            )


def _of_base(row: pd.Series, name: str) -> int:
    """Of the one process that a row's subject is compared with."""
    said = (row.get(f"within_ratio_baseline_{name}"), row[f"baseline_{name}"], row[name])
    return next(value for value in said if pd.notna(value))


def scaling(row: pd.Series) -> str:
    """What a row is about."""
    if row["world_size"] > 1:
        return STRONG if row["batch_size"] == _of_base(row, "batch_size") else WEAK
    return ONE if row["threads"] == _of_base(row, "threads") else f"{ONE}{_with_threads(row['threads'])}"


def way(row: pd.Series) -> str:
    """As :func:`scaling`, with the number of processes."""
    return scaling(row) if row["world_size"] == 1 else f"{scaling(row)}, {row['world_size']} processes"


def _with_threads(count: int) -> str:
    return f" with {count:g} thread{'s' * (count > 1)}"


def verdict(row: pd.Series) -> str:
    """On the ratio to one process."""
    if pd.notna(row["reason"]):
        return row["why"]
    if scaling(row) == ONE:
        return BASELINE
    return row["within_ratio_why"] if pd.isna(row["within_ratio_verdict"]) else row["within_ratio_verdict"]


def processes(row: pd.Series) -> int:
    """Of which the ratio to one process is made."""
    compared = pd.isna(row["reason"]) and scaling(row) != ONE
    return row["within_ratio_processes"] if compared else row["processes"]


def shown(rows: pd.DataFrame) -> pd.Series:
    """What communicates, if there is a place for groups."""
    return rows["communication"] & (rows["world_size"].max() > 1)


def ratios(result: Result) -> Iterator[str]:
    """For each subject and way of scaling the ratio, what was asked first; then what one process does."""
    rows = result.rows("within_ratio").sort_values("world_size", ascending=False, kind="stable")
    for _, row in rows.iterrows():
        yield f"{row['subject']}, {way(row)}: {_ratio_text(row)}."
    every = result.rows("samples_per_second")
    for _, row in every[shown(every) & every["reason"].isna()].iterrows():
        if scaling(row) == ONE:
            lost = "no throughput: it failed, keeps getting slower, or was disturbed"
            speed = lost if pd.isna(row["estimate"]) else f"{interval_text(row)} samples/s"
            yield f"{row['subject']}, {way(row)}{_with_threads(row['threads'])}: {speed}."


def _ratio_text(row: pd.Series) -> str:
    """To one process, and what a group's is made of."""
    if pd.isna(row["verdict"]):
        return ratio_text(row)
    threads = _of_base(row, "threads")
    text = f"throughput ratio {ratio_text(row)}, relative to one process{_with_threads(threads)}"
    if row["world_size"] == 1:
        return text
    text += f"; efficiency {interval_text(row, 'efficiency_percent')} %"
    if pd.notna(row.get("same_threads_ratio")):
        text += f"; relative to one process{_with_threads(row['world_size'] * threads)}: {_same_threads(row)}"
    if scaling(row) == WEAK:
        return text
    if pd.isna(row.get("communication_percent")):
        lost = "the same processes without it failed, slow down, or were disturbed"
        return f"{text}; what communication takes is not known: {lost}"
    return f"{text}; communication takes {interval_text(row, 'communication_percent')} % of a step"


def _same_threads(row: pd.Series) -> str:
    return f"{interval_text(row, 'same_threads_ratio', of_ratio=True)}, {row['same_threads_ratio_verdict']}"


def subjects(result: Result) -> Iterator[str]:
    """How each subject compares with the first; and what cannot be run here."""
    for _, row in result.rows("subject_ratio").iterrows():
        yield f"{way(row)}, {row['subject']} relative to {row['baseline_subject']}: {ratio_text(row)}."
    lost = result.frame[result.frame["reason"].notna()].drop_duplicates("subject")
    yield from (f"{row['subject']} is {row['why']}: {row['reason']}." for _, row in lost.iterrows())


def gains(result: Result) -> Iterator[str]:
    """For each subject, how much of the number of processes is gained, in a sentence."""
    for who, rows in result.rows("efficiency_percent").groupby("subject", sort=False):
        known = rows.dropna(subset="estimate")
        each = [f"{interval_text(row)} % ({way(row)})" for _, row in known.iterrows()]
        if each:
            yield f"{who}: of the throughput of as many single processes, together they reach {', '.join(each)}."
        for _, row in rows[rows["same_threads_ratio"].notna()].iterrows() if "same_threads_ratio" in rows else ():
            yield f"Beside one process with as many threads: {_same_threads(row)} ({way(row)})."
        taken = result.rows("communication_percent")
        taken = taken[(taken["subject"] == who) & taken["estimate"].notna()]
        for _, row in taken.iterrows():
            yield f"The exchange of gradients takes {interval_text(row)} % of a step ({way(row)})."
