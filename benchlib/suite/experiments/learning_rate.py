"""The experiment ``learning_rate``: the metric after some epochs, and time to the threshold, by learning rate."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any, Self

import pandas as pd
from pydantic import model_validator

from benchlib import tensorboard, workloads
from benchlib.condition import Condition, DeviceName, WorkloadName
from benchlib.lab import Lab
from benchlib.plotting import Curves, Picture, Points, figures
from benchlib.stats import derived_ratios
from benchlib.stats.training_runs import TrainingRuns, left_out
from benchlib.study import data_note, data_warning
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments import subjects, training_times
from benchlib.suite.experiments.metric import Metric
from benchlib.suite.experiments.result import Declaration, Part, Result, different_models
from benchlib.tables import Runs

LABEL = 15
"""Letters in a line of a label that stands beside a panel, which is no higher."""


class Subject(p.Subject):
    """What is trained, and with which learning rates."""

    learning_rates: p.Grid[p.Rate]


class Parameters(p.Parameters):
    """Training runs of each subject with each of its learning rates from each seed."""

    workload: WorkloadName
    data: str
    device: DeviceName
    batch_size: p.BatchSize
    hyperparameters: dict[str, Any]
    train_samples: p.Samples | None  # None: all
    subjects: p.Subjects[Subject]
    seeds: p.Grid[p.Seed]
    epochs: p.Epochs  # after which the metric is compared
    most_epochs: p.Epochs  # a run that has not reached the threshold by then ends
    threshold: float

    @model_validator(mode="after")
    def _fits(self) -> Self:
        p.check_count("subjects", sum(len(subject.learning_rates) for subject in self.subjects))
        p.check_metric(self.workload, self.threshold)
        if self.most_epochs < self.epochs:
            raise ValueError(
                f"most_epochs: {self.most_epochs}: is less than epochs ({self.epochs}); give at least that"
            )
        conditions(self)
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be measured."""
    return [
        condition
        for number, subject in enumerate(parameters.subjects)
        for rate in subject.learning_rates
        for condition in subjects.of_one(
            parameters,
            f"subjects.{number}",
            subject,
            train_samples=("train_samples", parameters.train_samples),
            learning_rate=(f"subjects.{number}.learning_rates", rate),
        )
    ]


def measure(parameters: Parameters, lab: Lab) -> Result:
    """Train, or take from disk what was trained before."""
    trained = conditions(parameters)
    limits = {name: getattr(parameters, name) for name in ("seeds", "epochs", "threshold", "most_epochs")}
    runs = tensorboard.train(lab, trained, **limits)
    note, name = data_note(trained[0], lab.inputs), workloads.load(parameters.workload).metric
    metric = Metric(name, parameters.data, "learning_rate", parameters.epochs, data_warning(trained[0], lab.inputs))
    absent = subjects.left_out(parameters.subjects, [parameters.workload], [parameters.device])
    parts, notes = [Part(runs, beside=_epoch_ratios(runs))], [note, *absent]
    return Result(_declaration(metric, parameters.threshold), lab.folder, parts, notes)


def _epoch_ratios(runs: TrainingRuns) -> Iterator[dict[str, Any]]:
    """How many times as fast as with a subject's lowest learning rate an epoch is trained with its others."""
    by_subject: dict[str, list[Condition]] = {}
    for condition in sorted(runs.conditions, key=lambda condition: condition.learning_rate):
        by_subject.setdefault(condition.subject, []).append(condition)
    for lowest, *others in by_subject.values():
        for condition in others:
            yield derived_ratios.as_fast(runs, "epoch_ratio", condition, lowest)


def _rate(row: pd.Series) -> str:
    return f"learning rate {row['learning_rate']:g}"


def _looks(epochs: pd.DataFrame) -> dict[str, figures.Look]:
    return figures.ordered_looks(epochs.sort_values("learning_rate")["hue"])


def _declaration(metric: Metric, threshold: float) -> Declaration:
    to = metric.say_threshold(threshold)

    def points(y: str, ylabel: str, **more: Any) -> Points:
        return Points(y=y, x="learning_rate", ylabel=textwrap.fill(ylabel, LABEL), **more)

    def points_caption(rows: pd.DataFrame) -> str:
        lost = left_out(rows.drop_duplicates(["label", "seed"]))  # each run is in every panel
        caption = f"Training by learning rate: a point for each seed, lines through the medians. {metric.warning}"
        caption = caption.strip()
        return f"{caption} Times left out: {lost}." if lost else caption

    return Declaration(
        notebook="learning_rate",
        title="Learning rate",
        question="Which accuracy, and which time to a threshold, does each learning rate give?",
        answers=[metric.findings, training_times.epoch_findings],
        in_report=("thresholds", "metric"),
        tables={
            "thresholds": training_times.thresholds(to),
            "metric": metric.table,
            "runs": Runs(),
        },
        figures={
            "rates": Picture(
                caption=points_caption,
                panels=[
                    points("metric", f"{metric.label} after {metric.epochs} epochs", from_zero=False),
                    points("epochs_watched", f"epochs to {to}", censored="censored"),
                    points("seconds_watched", f"training time to {to} (s)", censored="censored", log_y=True),
                    points("epoch_s", "time of an epoch (s)"),
                ],
                columns=2,
                height=1.35,  # two rows and their caption fit into what a question leaves of a page
            ),
            "curves": Picture(
                caption="Training loss and metric by epoch: lines are means over seeds, bands go from the lowest to "
                f"the highest seed. The threshold is {to}. {metric.warning}".strip(),
                panels=[
                    Curves(hue=_rate, y="loss", ylabel="training loss"),
                    Curves(
                        hue=_rate, y="metric", ylabel=metric.label, threshold=lambda rows: threshold * metric.factor
                    ),
                ],
                each="subject",
                height=2.1,
                looks=_looks,
            ),
        },
        findings=[
            metric.findings,
            lambda result: training_times.threshold_findings(result, to),
            training_times.epoch_findings,
            lambda result: different_models(result.runs),
        ],
    )
