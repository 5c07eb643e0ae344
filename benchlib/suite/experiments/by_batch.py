"""Throughput against the batch size: what ``batch_size``, ``inference`` and ``versions`` have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from benchlib import findings, tables, workloads
from benchlib.condition import Condition, DeviceName, WorkloadName
from benchlib.findings import growth as growth
from benchlib.lab import Lab
from benchlib.plotting import Lines, Picture, Ratios, figures
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import Comparison
from benchlib.stats.training_runs import TrainingRuns
from benchlib.stats.validity import MOST
from benchlib.study import ceiling_text, failures_beside
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments import subjects
from benchlib.suite.experiments.result import Declaration, Result
from benchlib.tables import (
    CONDITION,
    ENDED,
    HYPERPARAMETERS,
    INDICATORS,
    PROCESSES,
    RATIO,
    Table,
    interval_text,
    ratio_text,
)


class Parameters(p.Compared):
    """A comparison of the subjects at each batch size."""

    workload: WorkloadName
    data: str
    device: DeviceName
    hyperparameters: dict[str, Any]
    subjects: p.Subjects[p.Subject]  # the first is the baseline
    batch_sizes: p.Grid[p.BatchSize]


def comparisons(parameters: Parameters) -> list[list[Condition]]:
    """A group of conditions for each batch size, baseline first."""
    return [
        subjects.conditions(parameters, "subjects", batch_size=("batch_sizes", size)) for size in parameters.batch_sizes
    ]


def result(
    declared: Declaration, lab: Lab, compared: list[Comparison], *runs: TrainingRuns, notes: list[str]
) -> Result:
    """Of comparisons at batch sizes, and perhaps training runs, with the machine's limits."""
    conditions = [condition for comparison in compared for condition in comparison.conditions]
    ceiling = lab.ceiling(conditions[0].device, within=p.environments_of(conditions))
    notes = [*notes[:1], ceiling_text(ceiling), *notes[1:]]
    return Result(declared, lab.folder, [*compared, *runs], notes, failures_beside(ceiling), ceiling)


def compared_findings(result: Result) -> Iterator[str]:
    """How the subjects compare, and how throughput grows with the batch."""
    for who, rows in result.rows("throughput_ratio").groupby("subject", sort=False):
        each = "; ".join(f"batch {row['batch_size']}: {ratio_text(row)}" for _, row in rows.iterrows())
        yield f"Throughput of {who} relative to {rows['baseline_subject'].iloc[0]}: {each}."
    for who, rows in result.rows("samples_per_second").groupby("subject", sort=False):
        yield _growth(who, rows)


def _growth(who: str, rows: pd.DataFrame) -> str:
    """How throughput and memory go with the batch size."""
    noisy = " undisturbed" if (rows["disturbed"] > MOST).any() else ""
    rows = rows.dropna(subset="estimate").sort_values("batch_size")
    if len(rows) < 2:
        return f"{who}: too few batch sizes were measured{noisy} to say how throughput goes with the batch."
    first, last, best = rows.iloc[0], rows.iloc[-1], rows.loc[rows["estimate"].idxmax()]
    times = tables.number(best["estimate"] / first["estimate"])
    return (
        f"{who}: throughput is highest at batch {best['batch_size']} with {interval_text(best)} {_unit(rows)}/s, "
        f"{times} times that at batch {first['batch_size']}; peak memory goes from "
        f"{interval_text(first, 'memory_mib')} MiB at batch {first['batch_size']} to "
        f"{interval_text(last, 'memory_mib')} MiB at batch {last['batch_size']}."
    )


def _unit(rows: pd.DataFrame) -> str:
    return workloads.load(rows["workload"].iloc[0]).unit


def _throughput(rows: pd.DataFrame) -> str:
    return f"throughput ({_unit(rows)}/s)"


def _line(quantity: str, ylabel: Any, log_y: bool = False) -> Lines:
    axes = {"x": "batch_size", "xlabel": "batch size", "ylabel": ylabel, "log_y": log_y}
    return Lines(quantity=quantity, where=_compared, **axes)


def _compared(rows: pd.DataFrame) -> pd.Series:
    """Training runs take memory, too, but are not compared."""
    return rows["kind"] == tidy.COMPARISON


def _compared_caption(rows: pd.DataFrame) -> str:
    baseline = rows["baseline_subject"].iloc[0]
    return f"Throughput relative to {baseline} at the same batch size, with 95 % intervals; above 1 is faster."


EFFECTS = findings.effects(lambda row: f"batch {row['batch_size']}")
"""How the subjects compare, and at which batch size they differ most."""

TABLES = {
    "indicators": Table(
        "Each subject at each batch size: means over processes, with 95 % intervals.",
        "samples_per_second",
        (*CONDITION, HYPERPARAMETERS, *INDICATORS),
    ),
    "processes": PROCESSES,
    "ratios": Table(
        "Throughput relative to the first subject at the same batch size.",
        "throughput_ratio",
        (*CONDITION, HYPERPARAMETERS, *RATIO, *ENDED),
    ),
}
FIGURES = {
    "ratios": Picture(
        caption=_compared_caption,
        panels=[Ratios(x="batch_size", xlabel="batch size")],
        height=2.6,
        width=figures.COLUMN,
    ),
    "indicators": Picture(
        caption="Indicators against the batch size. Points: means over processes; bars: 95 % intervals, where one is "
        "known. Share of the peak: the least time that a step's multiply-adds or bytes could take here, of the time "
        "that it took.",
        panels=[
            _line("samples_per_second", _throughput, log_y=True),
            _line("step_ms", "time of a step (ms)", log_y=True),
            _line("cpu_percent", "CPU (% of the machine)"),
            _line("memory_mib", "peak memory (MiB)"),
            _line("peak_share_percent", "share of the peak (%)"),
            _line("accelerator_percent", "accelerator (%)"),
            _line("accelerator_memory_mib", "accelerator memory (MiB)"),
        ],
        columns=lambda rows: 3 if rows["batch_size"].nunique() < 6 else 2,  # more ticks need wider panels
        height=1.8,
    ),
}
