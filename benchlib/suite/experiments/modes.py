"""The experiment ``modes``: what graph mode and mixed precision give, and after how long graph mode has paid for its
compilation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

import pandas as pd
from pydantic import Field, model_validator

from benchlib import frameworks, workloads
from benchlib.analysis import frame as tidy
from benchlib.analysis import relative
from benchlib.analysis.amortisation import AT_ONCE, NEVER, NOT_MEASURED, NOT_SHOWN, PAYS
from benchlib.analysis.comparison import DISTURBED, Comparison
from benchlib.analysis.training import TrainingRuns
from benchlib.condition import Condition, DeviceName, PrecisionName, implementation
from benchlib.data.prepare import prepare
from benchlib.lab import Lab
from benchlib.measure import machine
from benchlib.suite import tables
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments import tasks
from benchlib.suite.experiments.findings import absent, other_models, throughputs, unrounded
from benchlib.suite.experiments.result import Declaration, Part, Result, data_note
from benchlib.suite.experiments.tried import Tried, failures_of, missing
from benchlib.suite.panels import Bars, Costs, Curves, Picture, relative_to
from benchlib.suite.selections import OF_PROCESSES, OF_TASK, PROCESSES, RATIO, STUDENT, Column, Table, verdict
from benchlib.suite.sentences import NO_RATIO, interval_text
from benchlib.worker.batches import Batches


class Subject(p.Subject):
    """What is compared: a framework of an environment, in a mode, a precision and a lane."""

    precision: PrecisionName

    @property
    def choices(self) -> dict[str, str]:
        """As a condition's choices."""
        return {**super().choices, "precision": self.precision}


class Task(tasks.Task):
    """A workload, and for how long it is trained to see its losses."""

    epochs: p.Epochs | None  # None: of a workload that does not train


class Parameters(p.Compared):
    """Each task on each device in each subject: a comparison of steps, and a training run from each seed."""

    tasks: p.Grid[Task]
    devices: p.Grid[DeviceName] | None  # None: all that this machine has
    subjects: Annotated[p.Grid[Subject], Field(min_length=2)]  # the first is the baseline
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
        beside = [*_within(comparison, _steps_of_epoch(group[0], lab)), *lost]
        parts.append(Part(comparison, name, beside, order=group))
        trained = possible if parameters.trained == "all" else _with_mixed(possible)
        if task.epochs and trained:
            runs = lab.train(trained, seeds=parameters.seeds, epochs=task.epochs)
            parts.append(Part(runs, name, _losses(runs)))
    notes = [data_note(group[0], lab.inputs) for *_, group in groups]
    return Result(DECLARATION, lab.folder, parts, notes, failures_of(failed, lab))


def _within(comparison: Comparison, steps_of_epoch: float | None) -> Iterator[dict[str, Any]]:
    """Of each two conditions that differ in mode or precision only, the ratio, if they can be compared, or could be if
    they had not been disturbed; and when graph mode has paid for its compilation.
    """
    there = comparison.conditions
    graphs = [(one, two) for one in there for two in there if one.mode == "eager" and two == one.but(mode="graph")]
    exact = [(one.but(precision="fp32"), one) for one in there if one.precision != "fp32"]
    for one, other in [*graphs, *(pair for pair in exact if pair[0] in there)]:
        row = relative.throughput(comparison, "within_ratio", other, one)
        if row["why"] in {None, DISTURBED}:
            yield row
    for eager, graph in graphs:
        yield from relative.amortised(comparison, eager, graph, steps_of_epoch)


def _losses(runs: TrainingRuns) -> list[dict[str, Any]]:
    pairs = [(one, one.but(precision="fp32")) for one in runs.conditions if one.precision != "fp32"]
    return [relative.loss_ratio(runs, one, exact) for one, exact in pairs if exact in runs.conditions]


NONE_DIVERGED = "none"


def _diverged(row: pd.Series) -> str:
    """How many of how many runs diverged, in words."""
    if row["diverged"] == 0:
        return NONE_DIVERGED
    first = f"first in epoch {row['diverged_lowest']:.0f}"
    return f"{row['diverged']:.0f} of {row['diverged_processes']} seeds ({first})"


def _implementation(row: pd.Series) -> str:
    return implementation(row["framework"], row["environment"])


def _kind(row: pd.Series) -> str:
    return f"{_implementation(row)} {row['mode']}"


def _without_mode(row: pd.Series) -> str:
    precision = [] if row["precision"] == "fp32" else [row["precision"]]
    return " ".join([_implementation(row), *precision, row["lane"]])


def _timed(row: pd.Series) -> bool:
    """Are these two modes that can be compared?"""
    return any(pd.notna(row.get(name)) for name in ("step_eager_ms", "step_eager_ms_why"))


def _ratios_caption(rows: pd.DataFrame) -> str:
    baselines = set(rows["baseline_subject"])
    baseline = baselines.pop() if len(baselines) == 1 else "the baseline that its axis names"
    return (
        f"Throughput relative to {baseline}, with 95 % intervals; above 1 is faster. The grey band is the A/A control, "
        "the baseline against itself."
    )


def _payback(result: Result) -> Iterator[str]:
    """What graph mode's compilation costs, and when it has paid for that."""
    for _, row in result.rows("pays_after_steps").iterrows():
        yield f"{row['task']}, {row['baseline_subject']} to graph: {_payback_text(row)}."


def _payback_text(row: pd.Series) -> str:
    if not _timed(row):
        return f"{NO_RATIO[row['why']]}, so it is not said when it pays"
    if verdict(row) == DISTURBED:
        return (
            "the first step of more than half of the processes was disturbed, so it is not said when it pays (see that "
            "the machine is quiet, delete the measurements and run again)"
        )
    eager, graph = (tables.number(row[f"first_{mode}_s"]) for mode in ("eager", "graph"))
    steps = [round(value) if math.isfinite(value) else value for value in row[["estimate", "low", "high"]]]
    said = {
        PAYS: f"it has paid for that after {tables.interval(*steps)} steps, {interval_text(row, 'pays_after_s')} s",
        AT_ONCE: "it pays from the first step on",
        NEVER: "its steps are slower, so it never pays",
        NOT_SHOWN: "its steps are not shown to be faster, so it is not shown to pay",
        NOT_MEASURED: "too few processes to say when it pays",
    }
    return f"its first step takes {graph} s, {eager} s in eager mode; {said[verdict(row)]}"


def _losses_text(result: Result) -> Iterator[str]:
    """How mixed precision's losses differ from those of fp32, and what diverged."""
    ratios = result.rows("loss_ratio")
    for task, known in ratios[ratios["estimate"].notna()].groupby("task", sort=False):
        each = "; ".join(f"{row['subject']} {interval_text(row, ratio=True)}" for _, row in known.iterrows())
        epochs = known["epochs"].iloc[0]
        yield f"{task}, training loss after {epochs} epochs relative to fp32 from the same seeds: {each}."
    runs = result.rows("diverged")
    for _, row in runs[runs["estimate"] > 0].iterrows():
        yield f"{row['task']}: {row['subject']} diverged in {_diverged(row)}."


DECLARATION = Declaration(
    notebook="modes",
    title="Modes and precisions",
    in_report=("ratios", "within", "amortisation", "losses"),
    tables={
        "ratios": Table(
            "Throughput relative to the first subject in eager mode and fp32 that can be run here, and what cannot be "
            "run.",
            "throughput_ratio",
            ("task", "subject", Column("kind", _kind), *RATIO, STUDENT, Column("why", "reason")),
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
        "amortisation": Table(
            "Graph mode against eager mode of the same framework. Means over processes, with 95 % intervals. "
            "Steps: after so many both have taken equally long, the first step and its compilation included. "
            "Without processes whose first step was disturbed.",
            "pays_after_steps",
            ("task", Column("subject", _without_mode), Column("verdict", verdict), *tidy.OF_GRAPHS),
            where=lambda rows: rows.apply(_timed, axis=1),
        ),
        "losses": Table(
            "Training loss of the last epoch, its ratio to that of the same framework and mode in fp32 within "
            "seeds, and the first epoch's time over the geometric mean of the others', with the compilation: "
            "means over seeds, with 95 % intervals. A run diverged if the loss of an epoch is not finite: its "
            "losses are in none of the means.",
            "final_loss",
            (
                *("task", "subject", Column("epochs_trained", "epochs"), Column("loss", "final_loss")),
                *(Column("diverged", _diverged), Column("runs", "processes")),
                *(Column("first_epoch", "first_epoch_ratio"), "loss_ratio"),
            ),
        ),
        "processes": PROCESSES.but(columns=(*OF_TASK, *OF_PROCESSES, "task")),
    },
    figures={
        "ratios": Picture(
            caption=_ratios_caption,
            panels=[Bars(quantity="throughput_ratio", xlabel=relative_to, labels="subject", hue=_kind)],
            each="task",
            columns=2,
        ),
        "amortisation": Picture(
            caption="Time from the first step on against the number of steps, compilation included: means over "
            "processes. The grey band is the 95 % interval of the number of steps after which graph mode has paid for "
            "its compilation.",
            panels=[Costs(where=lambda rows: rows.apply(_timed, axis=1))],
            each=lambda row: f"{row['task']}\n{_without_mode(row)}",
            columns=3,
        ),
        "losses": Picture(
            caption="Training loss by epoch in each precision: lines are means over seeds, bands go from the lowest to "
            "the highest.",
            panels=[Curves(y="loss", ylabel="training loss", hue="precision")],
            each=lambda row: f"{row['task']}\n{_kind(row)} {row['lane']}",
            columns=3,
        ),
    },
    findings=[throughputs, _payback, _losses_text, unrounded, absent, other_models],
)


def _groups(parameters: Parameters) -> list[tuple[str, Task, list[Condition]]]:
    """Each task on each device: what it is called, and its conditions."""
    there = machine.devices(p.environments_of(parameters.subjects))
    devices = parameters.devices or there
    several = len(there) > 1 or devices != ["cpu"]
    names = tasks.names(parameters.tasks)
    return [
        (f"{name}, {device}" if several else name, task, tasks.conditions(parameters, at, device=("devices", device)))
        for at, (name, task) in enumerate(zip(names, parameters.tasks, strict=True))
        for device in devices
    ]


def _steps_of_epoch(condition: Condition, lab: Lab) -> float | None:
    """Training steps of a pass over the data; None of a workload that does not train."""
    workload = workloads.load(condition.workload)
    if workload.kind != "training":
        return None
    return Batches(prepare(condition, 0, lab.inputs), condition.batch_size, None, workload.fields).steps_per_epoch


def _with_mixed(group: list[Condition]) -> list[Condition]:
    """Those of a framework and mode that is there in more than one precision: whose losses can be compared."""
    kinds = Counter(one.but(precision="fp32") for one in group)
    return [one for one in group if kinds[one.but(precision="fp32")] > 1]
