"""The experiment ``batch_size``: throughput, step time, CPU, memory and accuracy against the batch size."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from benchlib import tensorboard, workloads
from benchlib.condition import Condition
from benchlib.lab import Lab
from benchlib.study import data_note, data_warning
from benchlib.suite.experiments import by_batch, subjects
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.by_batch import comparisons
from benchlib.suite.experiments.metric import Metric
from benchlib.suite.experiments.result import Declaration, Result, different_models
from benchlib.tables import Runs


class Parameters(by_batch.Parameters):
    """A comparison of the subjects at each batch size, and training runs of some of them for the accuracy."""

    accuracy_subjects: p.Subjects[p.Subject]
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


def measure(parameters: Parameters, lab: Lab) -> Result:
    """Measure, or take from disk what was measured before."""
    compared = lab.compare_each(comparisons(parameters), **parameters.settings)
    training = _training(parameters)
    runs = tensorboard.train(lab, training, seeds=parameters.seeds, epochs=parameters.epochs)
    note, warning = (of_data(training[0], lab.inputs) for of_data in (data_note, data_warning))
    name = workloads.load(parameters.workload).metric
    declared = _declaration(Metric(name, parameters.data, "batch_size", parameters.epochs, warning))
    every = [*parameters.subjects, *parameters.accuracy_subjects]
    absent = subjects.left_out(every, [parameters.workload], [parameters.device])
    return by_batch.result(declared, lab, compared, runs, notes=[note, *absent])


def _declaration(metric: Metric) -> Declaration:
    return Declaration(
        notebook="batch_size",
        title="Batch size",
        question="How do throughput, CPU, memory and accuracy change with the batch size?",
        answers=[by_batch.EFFECTS, by_batch.growth, metric.findings],
        in_report=("ratios", "processes", "metric"),
        tables={**by_batch.TABLES, "metric": metric.table, "runs": Runs()},
        figures={**by_batch.FIGURES, "metric": metric.picture},
        findings=[by_batch.compared_findings, metric.findings, lambda result: different_models(result.runs)],
    )


def _training(parameters: Parameters) -> list[Condition]:
    """The conditions that are trained."""
    trained = {name: (name, getattr(parameters, name)) for name in ("learning_rate", "train_samples")}
    by_size = [
        subjects.conditions(parameters, "accuracy_subjects", batch_size=("accuracy_batch_sizes", size), **trained)
        for size in parameters.accuracy_batch_sizes
    ]
    return [condition for of_subject in zip(*by_size, strict=True) for condition in of_subject]
