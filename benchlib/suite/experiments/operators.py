"""The experiment ``operators``: throughput ratios of single operators against their size."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Annotated, Any, Self

import pandas as pd
from pydantic import BaseModel, BeforeValidator, model_validator

from benchlib import findings, tables, workloads
from benchlib.condition import Condition, DeviceName, WorkloadName
from benchlib.lab import Lab
from benchlib.plotting import Lines, Picture, figures
from benchlib.stats.comparison import FASTER, SLOWER
from benchlib.study import ceiling_text, failures_beside
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments import subjects
from benchlib.suite.experiments.result import Declaration, Result
from benchlib.suite.experiments.varied import Varied, looks, sizes_of
from benchlib.tables import (
    CONDITION,
    INDICATORS,
    OF_PROCESSES,
    PROCESSES,
    RATIO,
    Column,
    Table,
    counts_text,
    ratio_text,
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
    subjects: p.Subjects[p.Subject]  # the first is the baseline

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
                choices = {
                    "batch_size": (key, size["batch_size"]),
                    "hyperparameters": (key, {**values, "passes": passes}),
                }
                choices["workload"] = (f"{place}.workload", operator.workload)
                groups.append(subjects.conditions(parameters, "subjects", **choices))
    return groups


def measure(parameters: Parameters, lab: Lab) -> Result:
    """Measure, or take from disk what was measured before."""
    compared = lab.compare_each(comparisons(parameters), **parameters.settings)
    ceiling = lab.ceiling(parameters.device, within=p.environments_of(conditions(parameters)))
    operators = [operator.workload for operator in parameters.operators]
    absent = subjects.left_out(parameters.subjects, operators, [parameters.device])
    notes, failed = [ceiling_text(ceiling), *absent], failures_beside(ceiling)
    return Result(_declaration(parameters), lab.folder, compared, notes, failed, ceiling)


def _findings(result: Result) -> Iterator[str]:
    """For each operator, pass and subject: how often it is faster, slower, the same within the margin or neither, and
    its ratio at the ends.
    """
    rows = result.rows("throughput_ratio")
    rows = rows.assign(passes=[_passes(row) for _, row in rows.iterrows()])
    for (operator, passes, who), of_one in rows.groupby(["workload", "passes", "subject"], sort=False):
        of_one = of_one.sort_values("million_multiply_adds")
        ends = of_one.iloc[[0] if len(of_one) == 1 else [0, -1]]
        at_ends = "; ".join(
            f"at {tables.number(row['million_multiply_adds'])} million {ratio_text(row)}" for _, row in ends.iterrows()
        )
        sizes = "one size" if len(of_one) == 1 else f"{len(of_one)} sizes ({counts_text(of_one)})"
        start = f"{operator}, {passes}: throughput of {who} relative to {of_one['baseline_subject'].iloc[0]}"
        yield f"{start}, over {sizes}; by multiply-adds of a forward pass: {at_ends}."


def _overtaking(result: Result) -> Iterator[str]:
    """Between which sizes a framework that was shown to be slower is shown to be faster, or the other way round."""
    rows = result.rows("throughput_ratio")
    if not len(rows):
        return
    rows = rows.assign(passes=[_passes(row) for _, row in rows.iterrows()])
    found = []
    for (operator, passes, who), of_one in rows.groupby(["workload", "passes", "subject"], sort=False):
        shown = of_one[of_one["verdict"].isin((FASTER, SLOWER))].sort_values("million_multiply_adds")
        for (_, before), (_, after) in itertools.pairwise(shown.iterrows()):
            if before["verdict"] != after["verdict"]:
                one, other = who, of_one["baseline_subject"].iloc[0]
                first, second = (one, other) if after["verdict"] == FASTER else (other, one)
                sizes = " and ".join(tables.number(row["million_multiply_adds"]) for row in (before, after))
                at = f"{operator}, {passes}, between {sizes} million multiply-adds"
                found.append(f"{first} overtakes {second} in {at}")
    yield f"{'; '.join(found) or 'At no size that was measured is one shown to overtake another'}."


def _work(row: pd.Series) -> str:
    work = tables.number(row["million_multiply_adds"])
    return (
        f"{row['workload']}, {work} million multiply-adds"
        if pd.notna(row["million_multiply_adds"])
        else row["workload"]
    )


def _passes(row: pd.Series) -> str:
    return json.loads(row["hyperparameters"])["passes"]


def _size(row: pd.Series) -> str:
    """In words."""
    sizes = {name.replace("_", " "): value for name, value in sizes_of(row).items() if name != "passes"}
    return ", ".join(f"{name} {value}" for name, value in {"batch": sizes.pop("batch size"), **sizes}.items())


def _title(rows: pd.DataFrame) -> str:
    """The operator with its passes, and what was varied where the names of the series do not say it."""
    first = rows.iloc[0]
    title = f"{workloads.load(first['workload']).title}, {_passes(first)}"
    return f"{title}\n{first['varied']} varied" if first.get("series") == first["subject"] else title


def _operator(row: pd.Series) -> tuple[str, str]:
    return row["workload"], _passes(row)


_BY_WORK = {"x": "million_multiply_adds", "xlabel": "million multiply-adds", "round_ticks": True}


def _ratios_caption(rows: pd.DataFrame) -> str:
    return (
        f"Throughput of single operators relative to {rows['baseline_subject'].iloc[0]}, with 95 % intervals, against "
        "the work of a forward pass; above 1 is faster. From a base size one thing is varied at a time (a linear "
        "layer's features count as its channels)."
    )


_CONDITION = tuple(name for name in CONDITION if name not in {"subject", "workload", "batch_size"})
_OPERATOR = ("subject", "workload", Column("size", _size), Column("passes", _passes), *_CONDITION)
_WORK = ("parameters", "million_multiply_adds")


def _declaration(parameters: Parameters) -> Declaration:
    passes, shape = len(parameters.passes), {"each": _operator, "title": _title, "height": 1.7}
    bases = [
        (one.workload, {"batch_size": one.batch_size, **one.hyperparameters}, list(one.vary))
        for one in parameters.operators
    ]
    beside = {"columns": max(2, passes), "width": figures.PAGE if len(bases) * passes > 1 else figures.COLUMN}
    below = {"columns": passes, "width": figures.PAGE if passes > 1 else figures.COLUMN}
    return Declaration(
        notebook="operators",
        title="Operators",
        question="At which size does one framework overtake the other, operator by operator?",
        answers=[_overtaking, findings.effects(_work)],
        in_report=("ratios",),
        tables={
            "ratios": Table(
                "Throughput relative to the first framework at the same size.",
                "throughput_ratio",
                (*_OPERATOR, *RATIO, *_WORK),
            ),
            "indicators": Table(
                "Each operator in each framework: means over processes, with 95 % intervals.",
                "samples_per_second",
                (*_OPERATOR, *INDICATORS, *_WORK),
            ),
            "processes": PROCESSES.but(
                columns=("subject", "workload", Column("passes", _passes), *_CONDITION, *OF_PROCESSES, "parameters")
            ),
        },
        figures={
            "ratios": Picture(
                caption=_ratios_caption,
                panels=[Varied(bases=bases, **_BY_WORK)],
                looks=looks,
                **shape,
                **beside,
            ),
            "peak": Picture(
                caption="The share of the machine's peak: the least time that a step could take, by its multiply-adds "
                "or by the bytes that it has to move, of the time that it took (means over processes). Above 100 % its "
                "bytes were in a faster cache than those of the fastest copy.",
                panels=[Lines(quantity="peak_share_percent", ylabel="share of the\nmachine's peak (%)", **_BY_WORK)],
                **shape,
                **below,
            ),
        },
        findings=[_findings],
    )


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
