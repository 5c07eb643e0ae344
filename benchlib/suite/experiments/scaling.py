"""The experiment ``scaling``: data-parallel training in several processes, on one machine: how much of their number is
gained, and what exchanging gradients takes.
"""

from __future__ import annotations

import math
import os
from typing import Any, Self

from pydantic import model_validator

from benchlib import frameworks, workloads
from benchlib.condition import Condition, DeviceName, WorkloadName
from benchlib.lab import Lab
from benchlib.plotting import Bars, Picture
from benchlib.provenance import npu_smi, nvml
from benchlib.runner import availability
from benchlib.study import data_note
from benchlib.suite.experiments import groups, subjects
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.groups import Subject
from benchlib.suite.experiments.result import Declaration, Part, Result
from benchlib.tables import (
    CONDITION,
    HYPERPARAMETERS,
    OF_PROCESSES,
    PROCESSES,
    RATIO,
    Column,
    Table,
    verdict,
)


class Parameters(p.Compared):
    """For each subject one process against several, with the same batch (strong) and the same batch each (weak)."""

    workload: WorkloadName
    data: str
    hyperparameters: dict[str, Any]
    device: DeviceName
    subjects: p.Subjects[p.Subject]
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
    notes += subjects.left_out(parameters.subjects, [parameters.workload], [parameters.device])
    every = _subjects(parameters)
    beside = [row for one in every for row in groups.rows(comparison, one, every)]
    order = [condition for one in every for condition in one.conditions]
    return Result(DECLARATION, lab.folder, [Part(comparison, beside=beside, order=order)], notes)


_NAMED = ("subject", Column("scaling", groups.scaling), "world_size", "threads", "batch_size")
_CONTROL = [column for column in RATIO if isinstance(column, Column) and column.name.startswith("control")]

DECLARATION = Declaration(
    notebook="scaling",
    title="Scaling",
    question="How much faster do several processes train together, and what does the exchange of gradients take?",
    answers=[groups.gains],
    in_report=("scaling", "subjects"),
    tables={
        "scaling": Table(
            "Throughput, and its ratio to one process of the same subject, which has as many threads as each of "
            "several has. Efficiency: the share of the number of processes that is gained. Relative to one process "
            "that has the same threads in all, and the batch of the baseline. Communication: the share of a step that "
            "is gone when gradients are not exchanged. The A/A control is of one process of the first subject. 95 % "
            "intervals over processes or groups of them.",
            "samples_per_second",
            (
                *(*_NAMED, "samples_per_second", Column("ratio", "within_ratio"), Column("verdict", groups.verdict)),
                *("efficiency_percent", "same_threads_ratio", "communication_percent", *_CONTROL),
                *(Column("processes", groups.processes), Column("why", "reason")),
            ),
            where=groups.shown,
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
            caption="Throughput relative to one process of the same subject, which has as many threads as each of "
            "several has, with 95 % intervals. The dark stroke is the ideal, as many times as there are processes; the "
            "grey band is the A/A control, which is of one process of the first subject.",
            panels=[
                Bars(
                    quantity="within_ratio",
                    xlabel="throughput relative to one process",
                    labels=groups.way,
                    target=lambda row: row["world_size"] if row["world_size"] > 1 else math.nan,
                )
            ],
            each="subject",
            columns=2,
        )
    },
    findings=[groups.ratios, groups.subjects],
)


def _subjects(parameters: Parameters) -> list[Subject]:
    """With their conditions for the numbers of processes that this machine has a place for; without those that are left
    out.
    """
    counts = _counts(parameters)
    every = [(one, _of_subject(parameters, at, counts)) for at, one in enumerate(parameters.subjects)]
    return [Subject(conditions, _missing(parameters, subject)) for subject, conditions in every if conditions]


def _missing(parameters: Parameters, subject: p.Subject) -> str | None:
    """Why a subject's framework cannot do it here; None: it can."""
    if _counts(parameters) and not frameworks.launcher(subject.framework):
        return f"{subject.framework} has no path to data-parallel training"
    return availability.available(subject.framework, parameters.device, subject.environment)


def _counts(parameters: Parameters) -> list[int]:
    return sorted(count for count in parameters.world_sizes if count <= _places(parameters.device))


def _places(device: str) -> int:
    if device == "cpu":
        return len(os.sched_getaffinity(0))
    return len(nvml.gpus() if device == "cuda" else npu_smi.npus())


def _of_subject(parameters: Parameters, number: int, counts: list[int]) -> list[Condition]:
    """One process; then for each of ``counts``: on the CPU one process with the threads of so many, so many with the
    same batch, the same without communication, and so many with the same batch each.
    """
    most = max([1, *_counts(parameters)])
    threads = max(1, _places("cpu") // most)  # beside a device, too: torchrun would give each process one
    size = parameters.batch_size

    def of(threads: int, **choices: Any) -> list[Condition]:
        given = {"threads": threads, **choices}
        asked = {name: ("batch_size" if name == "batch_size" else "world_sizes", one) for name, one in given.items()}
        return subjects.of_one(parameters, f"subjects.{number}", parameters.subjects[number], **asked)

    group = of(threads)
    for count in counts:
        group += of(threads * count) if parameters.device == "cpu" else []
        group += of(threads, world_size=count)
        group += of(threads, world_size=count, communication=False)
        group += of(threads, world_size=count, batch_size=count * size)
    return group
