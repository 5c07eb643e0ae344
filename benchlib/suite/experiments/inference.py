"""The experiment ``inference``: how many images a second a trained network answers for, against the batch size."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.lab import Lab
from benchlib.study import data_note
from benchlib.suite.experiments import by_batch, subjects
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.by_batch import comparisons
from benchlib.suite.experiments.result import Declaration, Result


class Parameters(by_batch.Parameters):
    """A comparison of the subjects at each batch size, of a workload that does not train."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        p.check_count("subjects, batch_sizes", len(self.subjects) * len(self.batch_sizes))
        if not workloads.load(self.workload).evaluates:
            others = " or ".join(name for name in workloads.names() if workloads.load(name).evaluates)
            raise ValueError(f"workload: {self.workload!r}: its steps are not those of inference; choose {others}")
        conditions(self)
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be measured."""
    return [one for group in comparisons(parameters) for one in group]


def measure(parameters: Parameters, lab: Lab) -> Result:
    """Measure, or take from disk what was measured before."""
    compared = lab.compare_each(comparisons(parameters), **parameters.settings)
    absent = subjects.left_out(parameters.subjects, [parameters.workload], [parameters.device])
    return by_batch.result(DECLARATION, lab, compared, notes=[data_note(compared[0].baseline, lab.inputs), *absent])


DECLARATION = Declaration(
    notebook="inference",
    title="Inference",
    question="How many images a second does ResNet-50 answer for, by batch size?",
    answers=[by_batch.EFFECTS, by_batch.growth],
    in_report=("ratios",),
    tables=by_batch.TABLES,
    figures=by_batch.FIGURES,
    findings=[by_batch.compared_findings],
)
