"""The experiment ``operators``: throughput ratios of single operators against their size."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from pydantic import BaseModel, BeforeValidator, model_validator

from benchlib import workloads
from benchlib.analysis import frame as tidy
from benchlib.analysis.comparison import Comparison
from benchlib.condition import Condition, DeviceName, WorkloadName
from benchlib.lab import Lab
from benchlib.suite import figures, tables
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.result import (
    PROCESSES,
    Result,
    ceiling_text,
    counts_text,
    failures_beside,
    indicators,
    processes,
    ratio_text,
    ratios,
    throughputs,
)
from benchlib.validation import Strict


class Operator(BaseModel):
    """An operator at a base size, and what is varied from there, one thing at a time."""

    model_config = Strict.model_config

    workload: WorkloadName
    batch_size: p.BatchSize
    hyperparameters: dict[str, Any]
    # batch_size, or a hyperparameter, to its values beside the base's
    vary: Annotated[dict[str, p.Grid[p.Count]], BeforeValidator(p.not_empty)]


class Parameters(p.Compared):
    """A comparison of the subjects for each operator, size and kind of pass."""

    device: DeviceName
    operators: p.Grid[Operator]
    passes: p.Grid[str]
    subjects: p.Grid[p.Subject]  # the first is the baseline

    @model_validator(mode="after")
    def _fits(self) -> Self:
        sizes = sum(1 + sum(map(len, operator.vary.values())) for operator in self.operators)
        p.check_count("operators, passes, subjects", sizes * len(self.passes) * len(self.subjects))
        if len(self.subjects) < 2:
            raise ValueError("subjects: give two at least: the others are compared with the first")
        known = [name for name in workloads.names() if workloads.load(name).kind == "operator"]
        for number, operator in enumerate(self.operators):
            place = f"operators.{number}.workload: {operator.workload!r}"
            if operator.workload not in known:
                raise ValueError(f"{place}: is no operator; choose {', '.join(known)}")
            if not _counted(operator.workload):
                raise ValueError(
                    f"{place}: has no multiply-adds (``work`` in its workload.py) to be shown against; choose "
                    f"{', '.join(filter(_counted, known))}"
                )
            for part in ("hyperparameters", "vary"):
                if "passes" in getattr(operator, part):
                    raise ValueError(
                        f"operators.{number}.{part}.passes: every operator runs with every kind of pass: take it out, "
                        "and list the kinds under passes"
                    )
        conditions(self)
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be measured."""
    return [condition for group in comparisons(parameters) for condition in group]


def comparisons(parameters: Parameters) -> list[list[Condition]]:
    """A group of conditions for each operator, kind of pass and size, baseline first."""
    groups = []
    for number, operator in enumerate(parameters.operators):
        place = f"operators.{number}"
        for passes in parameters.passes:
            for key, size in _sizes(operator, place):
                values = {name: value for name, value in size.items() if name != "batch_size"}
                group = [
                    p.condition(
                        {
                            **dict.fromkeys(subject.choices, f"subjects.{index}"),
                            "batch_size": key,
                            "hyperparameters": key,
                        },
                        workload=operator.workload,
                        **subject.choices,
                        device=parameters.device,
                        batch_size=size["batch_size"],
                        hyperparameters={**values, "passes": passes},
                    )
                    for index, subject in enumerate(parameters.subjects)
                ]
                groups.append(group)
    return groups


def measure(parameters: Parameters, lab: Lab) -> Operators:
    """Measure, or take from disk what was measured before."""
    return Operators(parameters, lab, lab.compare_each(comparisons(parameters), **parameters.settings))


class Operators(Result):
    """Ratios of each operator at each size."""

    notebook = "operators"
    in_report = ("ratios",)
    title = "Operators"

    def __init__(self, parameters: Parameters, lab: Lab, comparisons: list[Comparison]) -> None:
        self.ceiling = lab.ceiling(parameters.device, within=p.environments_of(parameters.subjects))
        super().__init__(lab.folder, comparisons, [ceiling_text(self.ceiling)], failures_beside(self.ceiling))
        self.operators = parameters.operators
        self.passes = parameters.passes

    def findings(self) -> list[str]:
        """For each operator, pass and subject: how often it is faster, slower, the same within the margin or neither,
        and its ratio at the ends.
        """
        groups = self.ratios.groupby(["workload", "passes", "subject"], sort=False)
        return [_sentence(*names, rows.sort_values("million_multiply_adds")) for names, rows in groups]

    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """``ratios``, ``indicators`` and ``processes``."""
        frame = _without_parts(self.throughputs)
        return {
            "ratios": (
                "Throughput relative to the first framework at the same size.",
                _without_parts(self.ratios).drop(columns=["half_width_percent", "ended"]),
            ),
            "indicators": (
                "Each operator in each framework: means over processes, with 95 % intervals.",
                indicators(frame),
            ),
            "processes": (PROCESSES, processes(frame).drop(columns="size")),
        }

    @figures.styled
    def draw(self) -> dict[str, tuple[str, Figure]]:
        """``ratios``: a panel for each operator and kind of pass."""
        frame = self._series()
        looks = _looks(frame)
        width = figures.PAGE if len(self.passes) > 1 else figures.COLUMN
        figure, panels = figures.panels(len(self.operators), len(self.passes), height=1.95, width=width)
        baseline = frame["baseline"].iloc[0]
        places = [(operator.workload, passes) for operator in self.operators for passes in self.passes]
        for axes, (name, passes) in zip(panels, places, strict=True):
            rows = frame[(frame["workload"] == name) & (frame["passes"] == passes)]
            label = f"throughput relative to\n{baseline}" if passes == self.passes[0] else ""
            work = "million multiply-adds" if name == self.operators[-1].workload else ""
            figures.ratio_panel(
                axes, rows, looks, "million_multiply_adds", work, label, "series", ticks=(), margin=self.margin
            )
            axes.set_title(f"{workloads.load(name).title}, {passes}")
        caption = (
            f"Throughput of single operators relative to {baseline}, with 95 % intervals, against the work of a "
            "forward pass; above 1 is faster. From a base size one thing is varied at a time (a linear layer's "
            f"features count as its channels). {figures.margin_text(self.margin)}"
        )
        ratios = caption, figures.finish(figure, looks, figures.ratio_legend(frame, self.margin))
        return {"ratios": ratios, "peak": self._draw_peak()}

    def _draw_peak(self) -> tuple[str, Figure]:
        """The share of the machine's peak that each framework reaches."""
        frame = self.throughputs
        looks = figures.looks(frame["subject"])
        width = figures.PAGE if len(self.passes) > 1 else figures.COLUMN
        figure, panels = figures.panels(len(self.operators), len(self.passes), height=1.95, width=width)
        places = [(operator.workload, passes) for operator in self.operators for passes in self.passes]
        for axes, (name, passes) in zip(panels, places, strict=True):
            rows = frame[(frame["workload"] == name) & (frame["passes"] == passes)]
            work = "million multiply-adds" if name == self.operators[-1].workload else ""
            label = "share of the\nmachine's peak (%)" if passes == self.passes[0] else ""
            figures.line_panel(axes, rows, looks, "million_multiply_adds", "peak_share_percent", work, label, ticks=())
            axes.set_title(f"{workloads.load(name).title}, {passes}")
        caption = (
            "The share of the machine's peak: the least time that a step could take, by its multiply-adds or by the "
            "bytes that it has to move, of the time that it took (means over processes). Above 100 % its bytes "
            "were in a faster cache than those of the fastest copy."
        )
        return caption, figures.finish(figure, looks)

    @cached_property
    def throughputs(self) -> pd.DataFrame:
        """With the size of each operator."""
        sized = [throughputs([one], self.ceiling).assign(**_size(one.baseline)) for one in self.measured]
        return pd.concat(sized, ignore_index=True)

    @cached_property
    def ratios(self) -> pd.DataFrame:
        """With the size of each operator."""
        frames = [ratios([one]).assign(**_size(one.baseline)) for one in self.measured]
        return pd.concat(frames, ignore_index=True)

    def _series(self) -> pd.DataFrame:
        """The ratios once for each thing varied that they belong to: the base size belongs to all of its operator."""
        frame, parts = self.ratios, []
        for operator in self.operators:
            of_operator = frame[frame["workload"] == operator.workload]
            base = {"batch_size": operator.batch_size, **operator.hyperparameters}
            for varied in operator.vary:
                others = [of_operator[name] == value for name, value in base.items() if name != varied]
                rows = of_operator[np.logical_and.reduce(others)] if others else of_operator
                word = VARIED.get(varied, varied.replace("_", " "))
                parts.append(rows.assign(varied=word, series=rows["subject"] + f", {word} varied"))
        return pd.concat(parts, ignore_index=True)


VARIED = {
    "batch_size": "batch size",
    "in_channels": "input channels",
    "in_features": "input channels",
    "channels": "input channels",
    "out_channels": "output channels",
    "out_features": "output channels",
}
"""What was varied, in words that operators share."""


def _counted(operator: str) -> bool:
    """Is it said how many multiply-adds the operator takes, and are there any?"""
    workload = workloads.load(operator)
    return workload.work is not None and workload.work(workload.values({})).multiply_adds > 0


def _sizes(operator: Operator, place: str) -> list[tuple[str, dict[str, Any]]]:
    """The base size, and each that differs from it in one thing, with the parameter that asks for it."""
    base = {"batch_size": operator.batch_size, **operator.hyperparameters}
    sizes = [(place, base)]
    for name, values in operator.vary.items():
        sizes += [(f"{place}.vary.{name}", {**base, name: value}) for value in values if base.get(name) != value]
    return sizes


def _size(condition: Condition) -> dict[str, str | float]:
    """``size`` in words, and what the frame says of it."""
    values = {name.replace("_", " "): value for name, value in condition.hyperparameters.items() if name != "passes"}
    return {
        "size": ", ".join(f"{name} {value}" for name, value in {"batch": condition.batch_size, **values}.items()),
        **tidy.size(condition),
    }


def _without_parts(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame without the hyperparameters that its ``size`` says; those of one operator mean nothing to another."""
    every = {name for workload in set(frame["workload"]) for name in workloads.load(workload).hyperparameters}
    frame = frame.drop(columns=[*(every - {"passes"}), "batch_size"])
    first = ["subject", "workload", "size", "passes"]
    return frame[[*first, *(name for name in frame if name not in first)]]


def _looks(frame: pd.DataFrame) -> dict[str, figures.Look]:
    """The marker says what was varied; colour and line the subject or, where there is but one, what was varied too."""
    series = frame[["series", "subject", "varied"]].drop_duplicates()
    by_subject, by_varied = figures.looks(series["subject"]), figures.looks(series["varied"])
    lines = by_subject if len(by_subject) > 1 else by_varied
    keys = series["subject"] if len(by_subject) > 1 else series["varied"]
    return {
        name: figures.Look(lines[key].color, by_varied[varied].marker, lines[key].line)
        for name, key, varied in zip(series["series"], keys, series["varied"], strict=True)
    }


def _sentence(operator: str, passes: str, who: str, rows: pd.DataFrame) -> str:
    ends = rows.iloc[[0] if len(rows) == 1 else [0, -1]]
    at_ends = "; ".join(
        f"at {tables.number(row['million_multiply_adds'])} million {ratio_text(row)}" for _, row in ends.iterrows()
    )
    sizes = "one size" if len(rows) == 1 else f"{len(rows)} sizes ({counts_text(rows)})"
    start = f"{operator}, {passes}: throughput of {who} relative to {rows['baseline'].iloc[0]}"
    return f"{start}, over {sizes}; by multiply-adds of a forward pass: {at_ends}."
