"""The experiment ``frameworks``: each workload in each framework, how fast its steps are and how soon it learns."""

from __future__ import annotations

import textwrap
from typing import Annotated, Self

import pandas as pd
from pydantic import Field, model_validator

from benchlib import findings, tensorboard
from benchlib.condition import Condition, DeviceName
from benchlib.lab import Lab
from benchlib.plotting import Bars, Curves, Picture, Survival, relative_to
from benchlib.stats.training_runs import left_out as runs_left_out
from benchlib.study import data_note
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments import subjects, tasks, training
from benchlib.suite.experiments.findings import other_models, throughputs
from benchlib.suite.experiments.result import Declaration, Part, Result
from benchlib.tables import (
    ENDED,
    INDICATORS,
    OF_PROCESSES,
    OF_TASK,
    PROCESSES,
    RATIO,
    Column,
    Table,
    disturbed,
    left_out,
    reached,
)

TITLE = 44  # characters of a line that fit above one of two panels


class Task(tasks.Task):
    """A workload, and how it is trained."""

    learning_rate: p.Rate
    epochs: p.Epochs  # of every run
    most_epochs: p.Epochs  # a run that has not reached the threshold by then ends
    threshold: float | None  # of the metric; None: there is none to reach


class Parameters(p.Compared):
    """Each task in each subject: a comparison of steps, and training runs from each seed."""

    tasks: p.Grid[Task]
    device: DeviceName
    subjects: Annotated[p.Subjects[p.Subject], Field(min_length=2)]  # the first is the baseline
    seeds: p.Grid[p.Seed]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        p.check_count("tasks, subjects", len(self.tasks) * len(self.subjects))
        for number, task in enumerate(self.tasks):
            try:
                p.check_metric(task.workload, task.threshold)
            except ValueError as error:
                raise ValueError(f"tasks.{number}.{error}") from None
            if task.most_epochs < task.epochs:
                raise ValueError(f"tasks.{number}.most_epochs: {task.most_epochs}: is less than epochs ({task.epochs})")
        comparisons(self)
        tasks.check(self.tasks)
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be measured."""
    return [condition for group in comparisons(parameters) for condition in group]


def comparisons(parameters: Parameters) -> list[list[Condition]]:
    """A group of conditions for each task, baseline first."""
    return [tasks.conditions(parameters, number) for number in range(len(parameters.tasks))]


def measure(parameters: Parameters, lab: Lab) -> Result:
    """Compare and train, or take from disk what was measured before."""
    groups, parts = comparisons(parameters), []
    compared = lab.compare_each(groups, **parameters.settings)
    names = tasks.names(parameters.tasks)
    for name, task, group, comparison in zip(names, parameters.tasks, groups, compared, strict=True):
        limits = {"epochs": task.epochs, "threshold": task.threshold, "most_epochs": task.most_epochs}
        runs = tensorboard.train(lab, group, seeds=parameters.seeds, **limits)
        parts += [Part(comparison, name), Part(runs, name, training.relative_to_first(runs))]
    absent = subjects.left_out(parameters.subjects, tasks.workloads_of(parameters.tasks), [parameters.device])
    return Result(DECLARATION, lab.folder, parts, [*(data_note(group[0], lab.inputs) for group in groups), *absent])


def _metric_label(rows: pd.DataFrame) -> str:
    return training.metric_label(rows.iloc[0])


def _survival_caption(runs: pd.DataFrame) -> str:
    lost = runs_left_out(runs)
    return (
        "The share of training runs that have not reached the threshold yet, by training time (Kaplan and Meier "
        "1958); a run that ended before it counts as long as it was watched (a cross). The first step, which "
        f"includes the compilation, is left out.{f' Left out: {lost}.' if lost else ''}"
    )


DECLARATION = Declaration(
    notebook="frameworks",
    title="Frameworks",
    question="How fast are the steps of each workload in each framework, and how soon does it learn?",
    answers=[findings.effects(lambda row: row["task"]), training.agreements],
    in_report=("ratios", "learned", "first_epochs", "metrics"),
    tables={
        "ratios": Table(
            "Throughput relative to the first framework.",
            "throughput_ratio",
            (*OF_TASK, *RATIO, *ENDED, "task"),
        ),
        "learned": Table(
            "Training: medians over seeds, with runs that did not reach the threshold as the longest; times leave "
            "out evaluation, the first step, which includes the compilation, and runs that were disturbed. Times "
            "as soon at the threshold (where every run reached it) and throughput of whole epochs: relative to the "
            "first framework within seeds, with 95 % intervals over seeds.",
            "best_metric",
            (
                *("task", "subject", Column("baseline", training.baseline), Column("threshold", training.threshold)),
                *(Column("reached", reached), "epochs_to_threshold", "seconds_to_threshold", "threshold_ratio"),
                *("best_metric", "epoch_s", "epoch_ratio", Column("peak_memory_mib", "memory_mib", ends=False)),
                *("failed", Column("times_left_out", left_out), Column("why", disturbed("epoch_ratio_why"))),
            ),
        ),
        "first_epochs": Table(
            "The first step of a process, with compilation, and the time of the first epoch over the geometric "
            "mean of the others', with that compilation and without; 95 % intervals over seeds.",
            "first_epoch_ratio",
            (
                *("task", "subject", "first_step_s", Column("first_epoch", "first_epoch_ratio")),
                *(Column("first_epoch_alone", "first_epoch_alone_ratio"), Column("first_why", disturbed())),
            ),
        ),
        "metrics": Table(
            "What was learned after the epochs that every run has, with dropout at work: means over seeds, of the "
            "metric on the test data and of the last epoch's training loss, and the difference of the metric from "
            "the first framework within seeds, which share initial weights and order of the data, with 95 % "
            "intervals over seeds.",
            "final_metric",
            (
                *("task", "subject", Column("epochs_trained", "epochs"), Column("metric_of", training.metric_label)),
                *(Column("runs", "processes"), "final_metric", "final_loss"),
                *(Column("difference", "metric_difference"), Column("verdict", training.agreement)),
            ),
        ),
        "indicators": Table(
            "Each framework: means over processes, with 95 % intervals.",
            "samples_per_second",
            (*OF_TASK, *INDICATORS, "task"),
        ),
        "processes": PROCESSES.but(columns=(*OF_TASK, *OF_PROCESSES, "task")),
    },
    figures={
        "ratios": Picture(
            caption=lambda rows: (
                f"Throughput of each workload relative to {rows['baseline_subject'].iloc[0]}, with 95 % intervals; "
                "above 1 is faster."
            ),
            panels=[Bars(quantity="throughput_ratio", xlabel=relative_to, labels="subject")],
            each="task",
            title=lambda rows: textwrap.fill(rows["task"].iloc[0], TITLE),
            columns=2,
        ),
        "curves": Picture(
            caption="Training loss and metric by epoch: lines are means over seeds, bands go from the lowest to the "
            "highest, as far as all seeds went.",
            panels=[
                Curves(y="loss", ylabel="training loss"),
                Curves(y="metric", ylabel=_metric_label, threshold=training.shown_threshold),
            ],
            each="task",
        ),
        "survival": Picture(
            caption=_survival_caption,
            panels=[Survival(where=lambda runs: runs["threshold"].notna())],
            each="task",
            title=lambda runs: textwrap.fill(f"{runs['task'].iloc[0]}: {training.threshold(runs.iloc[0])}", TITLE),
            columns=2,
            height=2.0,
        ),
    },
    findings=[throughputs, *training.FINDINGS, other_models],
)
