"""The experiment ``versions``: one framework in several environments, against the batch size: what do its versions, or
its builds, make of the same model?
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from benchlib.condition import Condition, DeviceName, EnvironmentName, FrameworkName, LaneName, ModeName, WorkloadName
from benchlib.lab import Lab
from benchlib.runner import availability
from benchlib.study import data_note
from benchlib.suite.experiments import by_batch
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.result import Declaration, Result


class Parameters(p.Compared):
    """A comparison of the environments that are there at each batch size."""

    workload: WorkloadName
    data: str
    device: DeviceName
    hyperparameters: dict[str, Any]
    framework: FrameworkName
    mode: ModeName
    lane: LaneName
    environments: Annotated[p.Grid[EnvironmentName], Field(min_length=2)]  # the first that is there is the baseline
    batch_sizes: p.Grid[p.BatchSize]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        p.check_count("environments, batch_sizes", len(self.environments) * len(self.batch_sizes))
        _groups(self, self.environments)
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be measured."""
    return [condition for group in comparisons(parameters) for condition in group]


def comparisons(parameters: Parameters) -> list[list[Condition]]:
    """A group of conditions for each batch size, of the environments that are there and have the framework; none where
    only one does.
    """
    there = [name for name in parameters.environments if _missing(parameters, name) is None]
    return _groups(parameters, there) if len(there) > 1 else []


def measure(parameters: Parameters, lab: Lab) -> Result:
    """Measure, or take from disk what was measured before."""
    groups, absent = comparisons(parameters), _absent(parameters)
    if not groups:
        return Result(replace(DECLARATION, findings=[lambda result: absent]), lab.folder, [])
    compared = lab.compare_each(groups, **parameters.settings)
    return by_batch.result(DECLARATION, lab, compared, notes=[data_note(compared[0].baseline, lab.inputs), *absent])


DECLARATION = Declaration(
    notebook="versions",
    title="Versions",
    question="What do two versions of a framework make of the same model?",
    answers=[by_batch.EFFECTS, by_batch.growth],
    in_report=("ratios",),
    tables=by_batch.TABLES,
    figures=by_batch.FIGURES,
    findings=[by_batch.compared_findings],
)


def _absent(parameters: Parameters) -> list[str]:
    """What is missing of each environment that nothing can be measured in, a sentence each."""
    absent = dict.fromkeys(_missing(parameters, name) for name in parameters.environments)
    return [f"Not measured: {why}; run again after that." for why in absent if why]


def _missing(parameters: Parameters, environment: str) -> str | None:
    return availability.available(parameters.framework, parameters.device, environment)


def _groups(parameters: Parameters, there: list[str]) -> list[list[Condition]]:
    """A condition of each environment, for each batch size."""
    choices = {name: getattr(parameters, name) for name in ("workload", "framework", "mode", "lane", "data", "device")}
    choices |= {"hyperparameters": parameters.hyperparameters}
    keys = {"environment": "environments", "batch_size": "batch_sizes"}
    return [
        [p.condition(keys, **choices, environment=name, batch_size=size) for name in there]
        for size in parameters.batch_sizes
    ]
