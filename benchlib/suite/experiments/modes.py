"""The experiment ``modes``: what graph mode and mixed precision give, and after how long graph mode has paid for its
compilation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

import pandas as pd
from pydantic import Field, model_validator

from benchlib import findings, frameworks, tensorboard, workloads
from benchlib.condition import Condition, DeviceName, PrecisionName
from benchlib.lab import Lab
from benchlib.plotting import Bars, Picture, naming, relative_to
from benchlib.runner import availability
from benchlib.stats import derived_ratios
from benchlib.stats.comparison import DISTURBED, Comparison
from benchlib.study import data_note
from benchlib.suite.experiments import losses, payback, subjects, tasks
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.findings import absent, other_models, throughputs, unrounded
from benchlib.suite.experiments.result import Declaration, Part, Result
from benchlib.suite.experiments.tried import Tried, failures_of, missing
from benchlib.tables import OF_PROCESSES, OF_TASK, PROCESSES, RATIO, Column, Table, verdict


class Subject(p.Subject):
    """What is compared: a framework of an environment, in a mode, a precision and a lane."""

    precision: PrecisionName


class Task(tasks.Task):
    """A workload, and for how long it is trained to see its losses."""

    epochs: p.Epochs | None  # None: of a workload that does not train


class Parameters(p.Compared):
    """Each task on each device in each subject: a comparison of steps, and a training run from each seed."""

    tasks: p.Grid[Task]
    devices: p.Grid[DeviceName] | None  # None: all that this machine has
    subjects: Annotated[p.Subjects[Subject], Field(min_length=2)]  # the first is the baseline
    seeds: p.Grid[p.Seed]
    trained: Literal["all", "mixed"]  # mixed: only what is there in several precisions, whose losses can be compared

    @model_validator(mode="after")
    def _fits(self) -> Self:
        devices = self.devices or frameworks.every_device()
        p.check_count("tasks, devices, subjects", len(self.tasks) * len(devices) * len(self.subjects))
        first = self.subjects[0]
        if (first.mode, first.precision) != ("eager", "fp32"):
            raise ValueError(f"subjects.0: {first} {first.precision}: the baseline must be eager and fp32")
        for number, task in enumerate(self.tasks):
            trains = workloads.load(task.workload).kind == "training"
            if trains == (task.epochs is None):
                must = "give a number" if trains else "its steps train nothing: give null"
                raise ValueError(f"tasks.{number}.epochs: {task.epochs!r}: of {task.workload} {must}")
            for device in self.devices or ["cpu"]:
                tasks.conditions(self, number, device=("devices", device))
        tasks.check(self.tasks)
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be tried; on this machine, where the devices are not named."""
    return [one for group in comparisons(parameters) for one in group]


def comparisons(parameters: Parameters) -> list[list[Condition]]:
    """A group of conditions for each task and device. The gate may find fewer that can be run there."""
    return [[one for one in group if missing(one) is None] for *_, group in _groups(parameters)]


def measure(parameters: Parameters, lab: Lab) -> Result:
    """Compare and train what can be run here, or take from disk what was measured before."""
    parts, failed = [], []
    groups = _groups(parameters)
    for name, task, group in groups:
        tried = Tried.of(group, lab)
        failed += tried.failed
        possible = [one for one in group if one.key not in tried.whys]
        baseline = next((one for one in possible if (one.mode, one.precision) == ("eager", "fp32")), None)
        if baseline is None or len(possible) == 1:
            lost = [tried.absent(one, baseline or group[0]) for one in group if one != baseline]
            parts.append(Part(None, name, lost))
            continue
        possible.sort(key=lambda one: one != baseline)
        comparison = lab.compare(possible, **parameters.settings)
        lost = [tried.absent(one, baseline) for one in group if one.key in tried.whys]
        beside = [*_within(comparison), *payback.rows(comparison, lab), *lost]
        parts.append(Part(comparison, name, beside, order=group))
        trained = possible if parameters.trained == "all" else _with_mixed(possible)
        if task.epochs and trained:
            runs = tensorboard.train(lab, trained, seeds=parameters.seeds, epochs=task.epochs)
            parts.append(Part(runs, name, losses.rows(runs)))
    devices = dict.fromkeys(group[0].device for *_, group in groups)
    left_out = subjects.left_out(parameters.subjects, tasks.workloads_of(parameters.tasks), devices)
    notes = [*(data_note(group[0], lab.inputs) for *_, group in groups), *left_out]
    return Result(DECLARATION, lab.folder, parts, notes, failures_of(failed, lab))


def _within(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Of each two conditions that differ in mode or precision only, the ratio, if they can be compared, or could be if
    they had not been disturbed.
    """
    there = comparison.conditions
    eager = [one for one in there if one.mode == "eager"]
    graphs = [(one, two) for one in eager for two in there if payback.is_graph_of(two, one)]
    exact = [(one.but(precision="fp32"), one) for one in there if one.precision != "fp32"]
    for one, other in [*graphs, *(pair for pair in exact if pair[0] in there)]:
        row = derived_ratios.throughput(comparison, "within_ratio", other, one)
        if row["why"] in {None, DISTURBED}:
            yield row


def _kind(row: pd.Series) -> str:
    return f"{naming.implementation_of(row)} {row['mode']}"


def _ratios_caption(rows: pd.DataFrame) -> str:
    baselines = set(rows["baseline_subject"])
    baseline = baselines.pop() if len(baselines) == 1 else "the baseline that its axis names"
    return (
        f"Throughput relative to {baseline}, with 95 % intervals; above 1 is faster. The grey band is the A/A control, "
        "the baseline against itself."
    )


DECLARATION = Declaration(
    notebook="modes",
    title="Modes and precisions",
    question="What do graph mode and mixed precision give, and when has compilation paid for itself?",
    answers=[findings.effects(lambda row: row["task"], "within_ratio"), payback.answer],
    in_report=("ratios", "within", "amortisation", "losses"),
    tables={
        "ratios": Table(
            "Throughput relative to the first subject in eager mode and fp32 that can be run here, and what cannot be "
            "run.",
            "throughput_ratio",
            ("task", "subject", Column("kind", _kind), *RATIO, Column("why", "reason")),
        ),
        "within": Table(
            "Within one framework: throughput of graph mode relative to eager mode, and of mixed precision relative to "
            "fp32, all else the same.",
            "within_ratio",
            (
                "task",
                "subject",
                Column("baseline", "baseline_subject"),
                Column("within_ratio", ("estimate", "low", "high")),
                "processes",
                Column("verdict", verdict),
            ),
        ),
        "amortisation": payback.TABLE,
        "losses": losses.TABLE,
        "processes": PROCESSES.but(columns=(*OF_TASK, *OF_PROCESSES, "task")),
    },
    figures={
        "ratios": Picture(
            caption=_ratios_caption,
            panels=[Bars(quantity="throughput_ratio", xlabel=relative_to, labels="subject")],
            each="task",
            columns=2,
        ),
        "amortisation": payback.PICTURE,
        "losses": losses.PICTURE,
    },
    findings=[throughputs, payback.findings, losses.findings, unrounded, absent, other_models],
)


def _groups(parameters: Parameters) -> list[tuple[str, Task, list[Condition]]]:
    """Each task on each device: what it is called, and its conditions."""
    there = availability.devices(p.environments_of(parameters.subjects))
    devices = parameters.devices or there
    several = len(there) > 1 or devices != ["cpu"]
    names = tasks.names(parameters.tasks)
    return [
        (f"{name}, {device}" if several else name, task, tasks.conditions(parameters, at, device=("devices", device)))
        for at, (name, task) in enumerate(zip(names, parameters.tasks, strict=True))
        for device in devices
    ]


def _with_mixed(group: list[Condition]) -> list[Condition]:
    """Those of a framework and mode that is there in more than one precision: whose losses can be compared."""
    kinds = Counter(one.but(precision="fp32") for one in group)
    return [one for one in group if kinds[one.but(precision="fp32")] > 1]
