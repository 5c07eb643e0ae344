"""The experiment ``scaling``: data-parallel training in several processes, on one machine: how much of their number is
gained, and what exchanging gradients takes.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from operator import mul
from typing import Any, Self

import pandas as pd
from pydantic import model_validator

from benchlib import frameworks, workloads
from benchlib.analysis import frame as tidy
from benchlib.analysis import relative
from benchlib.analysis.comparison import Comparison
from benchlib.analysis.frame import IMPOSSIBLE
from benchlib.condition import Condition, DeviceName, WorkloadName
from benchlib.lab import Lab
from benchlib.measure import machine
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.result import Declaration, Part, Result, data_note
from benchlib.suite.panels import Bars, Picture
from benchlib.suite.selections import (
    CONDITION,
    HYPERPARAMETERS,
    OF_PROCESSES,
    PROCESSES,
    RATIO,
    Column,
    Table,
    verdict,
)
from benchlib.suite.sentences import interval_text, ratio_text

STRONG, WEAK, ONE = "strong", "weak", "one process"
"""The batch is shared; each process has a batch of its own; the same batch without processes."""

BASELINE = "baseline"
"""The verdict on what the others are compared with."""


class Parameters(p.Compared):
    """For each subject one process against several, with the same batch (strong) and the same batch each (weak)."""

    workload: WorkloadName
    data: str
    hyperparameters: dict[str, Any]
    device: DeviceName
    subjects: p.Grid[p.Subject]
    world_sizes: p.Grid[p.Count]  # numbers of processes, beside 1, which is the baseline
    batch_size: p.BatchSize  # of one process, and of all together in strong scaling

    @model_validator(mode="after")
    def _fits(self) -> Self:
        p.check_count("subjects, world_sizes", len(self.subjects) * (1 + 4 * len(self.world_sizes)))
        if 1 in self.world_sizes:
            raise ValueError("world_sizes: 1 is the baseline anyway; leave it out")
        if workloads.load(self.workload).kind != "training":
            raise ValueError(f"workload: {self.workload!r}: it trains nothing")
        for number in range(len(self.subjects)):
            _of_subject(self, number, self.world_sizes)
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be measured: on the CPU as many processes as there are cores for; of the subjects those
    that can use the device, or all, where none can: asking for a device that is not there is refused.
    """
    possible = [one for one in _subjects(parameters) if one.why is None] or _subjects(parameters)
    return [condition for one in possible for condition in one.conditions]


def comparisons(parameters: Parameters) -> list[list[Condition]]:
    """All of them in one, so that it has one baseline."""
    return [conditions(parameters)]


def measure(parameters: Parameters, lab: Lab) -> Result:
    """Measure, or take from disk what was measured before."""
    comparison = lab.compare(conditions(parameters), **parameters.settings)
    notes = [data_note(comparison.baseline, lab.inputs)]
    left_out = [count for count in parameters.world_sizes if count not in _counts(parameters)]
    if left_out:
        places, kind = _places(parameters.device), "core" if parameters.device == "cpu" else "device"
        there = f"there is 1 {kind}" if places == 1 else f"there are {places} {kind}s"
        notes.append(f"Not measured: {', '.join(map(str, left_out))} processes, because {there} here.")
    every = _subjects(parameters)
    beside = [row for one in every for row in _rows(comparison, one, every)]
    order = [condition for one in every for condition in one.conditions]
    return Result(DECLARATION, lab.folder, [Part(comparison, beside=beside, order=order)], notes)


@dataclass(frozen=True)
class _Subject:
    """A subject's conditions, its baseline first, in the same order for every subject."""

    conditions: list[Condition]
    why: str | None  # it cannot be run here


def _rows(comparison: Comparison, one: _Subject, every: list[_Subject]) -> Iterator[dict[str, Any]]:
    """Of what communicates the ratio to one process of the subject, and of a group what else there is to compare it
    with; relative to the first subject; and what cannot be run here.
    """
    base, first = one.conditions[0], next(other for other in every if other.why is None)
    of_first = {} if one is first else tidy.NO_CONTROL
    for its, condition in zip(first.conditions, one.conditions, strict=True):
        if not condition.communication:
            continue
        if one.why is not None:
            yield tidy.absent("samples_per_second", condition, base, why=IMPOSSIBLE, reason=one.why)
            continue
        if condition != base:
            yield {**relative.throughput(comparison, "within_ratio", condition, base), **of_first}
        if one is not first:
            yield relative.throughput(comparison, "subject_ratio", condition, its)
        if (count := condition.world_size) == 1:
            continue
        yield relative.throughput(comparison, "efficiency_percent", condition, base, partial(mul, 100 / count))
        threads, alone = base.but(threads=count * base.threads), condition.but(communication=False)
        if threads in comparison.conditions:
            yield {**relative.throughput(comparison, "same_threads_ratio", condition, threads), **of_first}
        if alone in comparison.conditions:
            yield relative.throughput(
                comparison, "communication_percent", condition, alone, lambda ratio: 100 * (1 - ratio)
            )


def _of_base(row: pd.Series, name: str) -> int:
    """Of the one process that a row's subject is compared with."""
    said = (row.get(f"within_ratio_baseline_{name}"), row[f"baseline_{name}"], row[name])
    return next(value for value in said if pd.notna(value))


def _scaling(row: pd.Series) -> str:
    """What a row is about."""
    if row["world_size"] > 1:
        return STRONG if row["batch_size"] == _of_base(row, "batch_size") else WEAK
    return ONE if row["threads"] == _of_base(row, "threads") else f"{ONE}{_with_threads(row['threads'])}"


def _way(row: pd.Series) -> str:
    return _scaling(row) if row["world_size"] == 1 else f"{_scaling(row)}, {row['world_size']} processes"


def _with_threads(count: int) -> str:
    return f" with {count:g} thread{'s' * (count > 1)}"


def _verdict(row: pd.Series) -> str:
    if pd.notna(row["reason"]):
        return row["why"]
    return BASELINE if _scaling(row) == ONE else row["within_ratio_verdict"] or row["within_ratio_why"]


def _processes(row: pd.Series) -> int:
    compared = pd.isna(row["reason"]) and _scaling(row) != ONE
    return row["within_ratio_processes"] if compared else row["processes"]


def _shown(rows: pd.DataFrame) -> pd.Series:
    """What communicates, if there is a place for groups."""
    return rows["communication"] & (rows["world_size"].max() > 1)


def _ratios(result: Result) -> Iterator[str]:
    """For each subject and way of scaling the ratio, what was asked first; then what one process does."""
    rows = result.rows("within_ratio").sort_values("world_size", ascending=False, kind="stable")
    for _, row in rows.iterrows():
        yield f"{row['subject']}, {_way(row)}: {_ratio_text(row)}."
    every = result.rows("samples_per_second")
    for _, row in every[_shown(every) & every["reason"].isna()].iterrows():
        if _scaling(row) == ONE:
            lost = "no throughput: it failed, keeps getting slower, or was disturbed"
            speed = lost if pd.isna(row["estimate"]) else f"{interval_text(row)} samples/s"
            yield f"{row['subject']}, {_way(row)}{_with_threads(row['threads'])}: {speed}."


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
        same = f"{interval_text(row, 'same_threads_ratio', ratio=True)}, {row['same_threads_ratio_verdict']}"
        text += f"; relative to one process{_with_threads(row['world_size'] * threads)}: {same}"
    if _scaling(row) == WEAK:
        return text
    if pd.isna(row.get("communication_percent")):
        lost = "the same processes without it failed, slow down, or were disturbed"
        return f"{text}; what communication takes is not known: {lost}"
    return f"{text}; communication takes {interval_text(row, 'communication_percent')} % of a step"


def _subjects_text(result: Result) -> Iterator[str]:
    """How each subject compares with the first; and what cannot be run here."""
    for _, row in result.rows("subject_ratio").iterrows():
        yield f"{_way(row)}, {row['subject']} relative to {row['baseline_subject']}: {ratio_text(row)}."
    lost = result.frame[result.frame["reason"].notna()].drop_duplicates("subject")
    yield from (f"{row['subject']} is {row['why']}: {row['reason']}." for _, row in lost.iterrows())


_NAMED = ("subject", Column("scaling", _scaling), "world_size", "threads", "batch_size")
_CONTROL = [column for column in RATIO if isinstance(column, Column) and column.name.startswith("control")]

DECLARATION = Declaration(
    notebook="scaling",
    title="Scaling",
    in_report=("scaling", "subjects"),
    tables={
        "scaling": Table(
            "Throughput, and its ratio to one process of the same subject with the same threads. Efficiency: the "
            "share of the number of processes that is gained. Relative to one process that has the same threads in "
            "all, and the batch of the baseline. Communication: the share of a step that is gone when gradients are "
            "not exchanged. The A/A control is of one process of the first subject. 95 % intervals over processes or "
            "groups of them.",
            "samples_per_second",
            (
                *(*_NAMED, "samples_per_second", Column("ratio", "within_ratio"), Column("verdict", _verdict)),
                *("efficiency_percent", "same_threads_ratio", "communication_percent", *_CONTROL),
                *(Column("processes", _processes), Column("why", "reason")),
            ),
            where=_shown,
        ),
        "processes": PROCESSES.but(
            columns=(*CONDITION, HYPERPARAMETERS, *OF_PROCESSES, "world_size", "communication"),
            where=lambda rows: rows["reason"].isna(),
        ),
        "subjects": Table(
            "Throughput relative to the first subject in the same way of scaling, with the same processes and threads. "
            "The A/A control is of one process of the first. 95 % intervals over what was measured together.",
            "subject_ratio",
            (
                *(*_NAMED, Column("baseline", "baseline_subject"), Column("ratio", "subject_ratio")),
                *(Column("verdict", verdict), *_CONTROL, "processes"),
            ),
        ),
    },
    figures={
        "scaling": Picture(
            caption="Throughput relative to one process of the same subject with the same threads, with 95 % "
            "intervals. The dark stroke is as many times as there are processes; the grey band is the A/A control, "
            "which is of one process of the first subject.",
            panels=[
                Bars(
                    quantity="within_ratio",
                    xlabel="throughput relative to one process",
                    labels=_way,
                    hue=lambda row: _scaling(row) if row["world_size"] > 1 else ONE,
                    target=lambda row: row["world_size"] if row["world_size"] > 1 else math.nan,
                )
            ],
            each="subject",
            columns=2,
        )
    },
    findings=[_ratios, _subjects_text],
)


def _subjects(parameters: Parameters) -> list[_Subject]:
    """With their conditions for the numbers of processes that this machine has a place for."""
    return [
        _Subject(_of_subject(parameters, number, _counts(parameters)), _missing(parameters, subject))
        for number, subject in enumerate(parameters.subjects)
    ]


def _missing(parameters: Parameters, subject: p.Subject) -> str | None:
    """Why a subject's framework cannot do it here; None: it can."""
    if _counts(parameters) and not frameworks.launcher(subject.framework):
        return f"{subject.framework} has no path to data-parallel training"
    return machine.available(subject.framework, parameters.device, subject.environment)


def _counts(parameters: Parameters) -> list[int]:
    return sorted(count for count in parameters.world_sizes if count <= _places(parameters.device))


def _places(device: str) -> int:
    if device == "cpu":
        return len(os.sched_getaffinity(0))
    return len(machine.gpus() if device == "cuda" else machine.npus())


def _of_subject(parameters: Parameters, number: int, counts: list[int]) -> list[Condition]:
    """One process; then for each of ``counts``: on the CPU one process with the threads of so many, so many with the
    same batch, the same without communication, and so many with the same batch each.
    """
    most = max([1, *_counts(parameters)])
    threads = max(1, _places("cpu") // most)  # beside a device, too: torchrun would give each process one
    size = parameters.batch_size

    def condition(threads: int, **choices: Any) -> Condition:
        given = {"threads": threads, **choices}
        asked = {name: ("batch_size" if name == "batch_size" else "world_sizes", one) for name, one in given.items()}
        return p.of_subject(parameters, f"subjects.{number}", parameters.subjects[number], **asked)

    group = [condition(threads)]
    for count in counts:
        group += [condition(threads * count)] if parameters.device == "cpu" else []
        group += [
            condition(threads, world_size=count),
            condition(threads, world_size=count, communication=False),
            condition(threads, world_size=count, batch_size=count * size),
        ]
    return group
