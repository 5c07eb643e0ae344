"""When graph mode has paid for its compilation (``stats.amortisation``): rows of the frame, and what shows them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd

from benchlib import tables, workloads
from benchlib.condition import Condition
from benchlib.data.prepare import prepare
from benchlib.lab import Lab
from benchlib.plotting import Costs, Picture, naming
from benchlib.stats import derived_ratios
from benchlib.stats import frame as tidy
from benchlib.stats.amortisation import AT_ONCE, NEVER, NOT_MEASURED, NOT_SHOWN, PAYS
from benchlib.stats.comparison import DISTURBED, Comparison
from benchlib.suite.experiments.result import Result
from benchlib.tables import NO_RATIO, Column, Table, interval_text, verdict
from benchlib.worker.batches import Batches


def rows(comparison: Comparison, lab: Lab) -> Iterator[dict[str, Any]]:
    """Of each two conditions of a comparison that differ in the mode only."""
    there, steps = comparison.conditions, _steps_of_epoch(comparison.baseline, lab)
    for eager in (one for one in there if one.mode == "eager"):
        for graph in (one for one in there if is_graph_of(one, eager)):
            yield from derived_ratios.amortised(comparison, eager, graph, steps)


def is_graph_of(one: Condition, eager: Condition) -> bool:
    """Does a condition differ from one in eager mode in its mode only?"""
    return one.mode != "eager" and one.framework == eager.framework and one.but(mode="eager") == eager


def _steps_of_epoch(condition: Condition, lab: Lab) -> float | None:
    """Training steps of a pass over the data; None of a workload that does not train."""
    workload = workloads.load(condition.workload)
    if workload.kind != "training":
        return None
    return Batches(prepare(condition, 0, lab.inputs), condition.batch_size, None, workload.fields).steps_per_epoch


def _without_mode(row: pd.Series) -> str:
    """Graph mode goes without saying; what a framework has beside it does not."""
    mode = [] if row["mode"] == "graph" else [row["mode"]]
    precision = [] if row["precision"] == "fp32" else [row["precision"]]
    return " ".join([naming.implementation_of(row), *mode, *precision, row["lane"]])


def _timed(row: pd.Series) -> bool:
    """Are these two modes that can be compared?"""
    return any(pd.notna(row.get(name)) for name in ("step_eager_ms", "step_eager_ms_why"))


TABLE = Table(
    "Graph mode against eager mode of the same framework. Means over processes, with 95 % intervals. "
    "Steps: after so many both have taken equally long, the first step and its compilation included. "
    "Without processes whose first step was disturbed.",
    "pays_after_steps",
    ("task", Column("subject", _without_mode), Column("verdict", verdict), *tidy.OF_GRAPHS),
    where=lambda rows: rows.apply(_timed, axis=1),
)
PICTURE = Picture(
    caption="Time from the first step on against the number of steps, compilation included: means over "
    "processes. The grey band is the 95 % interval of the number of steps after which graph mode has paid for "
    "its compilation.",
    panels=[Costs(where=lambda rows: rows.apply(_timed, axis=1))],
    each=lambda row: f"{row['task']}\n{_without_mode(row)}",
    columns=3,
)


def findings(result: Result) -> Iterator[str]:
    """What graph mode's compilation costs, and when it has paid for that."""
    for _, row in result.rows("pays_after_steps").iterrows():
        yield f"{row['task']}, {row['baseline_subject']} to {row['mode']}: {_payback_text(row)}."


def answer(result: Result) -> Iterator[str]:
    """Where compilation has paid for itself, after how many steps, and where it does not."""
    rows = result.rows("pays_after_steps")
    rows = rows[rows.apply(_timed, axis=1)] if len(rows) else rows
    parts = []
    for shown, words in ANSWERED.items():
        named = [
            words.format(who=_with_task(row, rows), steps=_steps_text(row))
            for _, row in rows.iterrows()
            if verdict(row) == shown
        ]
        parts += [", ".join(named)] if named else []
    if parts:
        yield f"Compilation to a graph: {'; '.join(parts)}."


ANSWERED = {
    AT_ONCE: "{who} has gained from the first step on",
    PAYS: "{who} has paid for itself after {steps} steps",
    NOT_SHOWN: "{who} is not shown to pay",
    NEVER: "{who} never pays, its steps are slower",
}


def _with_task(row: pd.Series, rows: pd.DataFrame) -> str:
    who = _without_mode(row).removesuffix(f" {row['lane']}")
    return f"{who} on {row['task']}" if rows["task"].nunique() > 1 else who


def _steps_text(row: pd.Series) -> str:
    return f"{round(row['estimate']):,}" if math.isfinite(row["estimate"]) else tables.MISSING


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
