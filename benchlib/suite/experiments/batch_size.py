"""The experiment ``batch_size``: throughput, step time, CPU, memory and accuracy against the batch size."""

from __future__ import annotations

from typing import Self

import pandas as pd
from matplotlib.figure import Figure
from pydantic import model_validator

from benchlib import workloads
from benchlib.analysis.comparison import Comparison
from benchlib.analysis.training import TrainingRuns
from benchlib.condition import Condition
from benchlib.lab import Lab
from benchlib.suite import figures, showing
from benchlib.suite.experiments import by_batch
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.by_batch import ByBatch, comparisons
from benchlib.suite.experiments.metric import Metric
from benchlib.suite.experiments.result import data_note, different_models


class Parameters(by_batch.Parameters):
    """A comparison of the subjects at each batch size, and training runs of some of them for the accuracy."""

    accuracy_subjects: p.Grid[p.Subject]
    accuracy_batch_sizes: p.Grid[p.BatchSize]
    learning_rate: p.Rate
    train_samples: p.Samples | None  # None: all
    epochs: p.Epochs
    seeds: p.Grid[p.Seed]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        p.check_count("subjects, batch_sizes", len(self.subjects) * len(self.batch_sizes))
        trained = len(self.accuracy_subjects) * len(self.accuracy_batch_sizes)
        p.check_count("accuracy_subjects, accuracy_batch_sizes", trained)
        p.check_metric(self.workload)
        conditions(self)
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be measured."""
    return [one for group in comparisons(parameters) for one in group] + _training(parameters)


def measure(parameters: Parameters, lab: Lab) -> BatchSize:
    """Measure, or take from disk what was measured before."""
    compared = by_batch.compare(parameters, lab)
    training = _training(parameters)
    runs = lab.train(training, seeds=parameters.seeds, epochs=parameters.epochs)
    return BatchSize(parameters, lab, compared, runs, data_note(training[0], lab.inputs))


class BatchSize(ByBatch):
    """Indicators and ratios by batch size, and the metric after some epochs by batch size."""

    notebook = "batch_size"
    in_report = ("ratios", "processes", "metric")
    title = "Batch size"

    def __init__(
        self, parameters: Parameters, lab: Lab, comparisons: list[Comparison], runs: TrainingRuns, note: str
    ) -> None:
        super().__init__(parameters, lab, comparisons, [runs], note)
        self.runs = runs
        metric = workloads.load(parameters.workload).metric
        self.metric = Metric(metric, parameters.data, "batch_size", parameters.epochs, note)

    def findings(self) -> list[str]:
        """How the subjects compare, how throughput grows with the batch, and where the metric is best."""
        return [*super().findings(), *self.metric.findings(self.frame), *different_models(self.runs)]

    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """``indicators``, ``processes``, ``ratios``, ``metric`` and ``runs``."""
        return {
            **super().tables(),
            "metric": (self.metric.caption, self.metric.table(self.frame)),
            "runs": ("The training runs.", showing.with_subject(self.runs.runs())),
        }

    @figures.styled
    def draw(self) -> dict[str, tuple[str, Figure]]:
        """``ratios``, ``indicators`` and ``metric``."""
        return {**super().draw(), "metric": self.metric.draw(self.runs)}


def _training(parameters: Parameters) -> list[Condition]:
    """The conditions that are trained."""
    trained = {"learning_rate": parameters.learning_rate, "train_samples": parameters.train_samples}
    return [
        by_batch.condition(parameters, f"accuracy_subjects.{number}", subject, "accuracy_batch_sizes", size, **trained)
        for number, subject in enumerate(parameters.accuracy_subjects)
        for size in parameters.accuracy_batch_sizes
    ]
