"""The experiment ``scaling``: data-parallel training in several processes, on one machine: how much of their number is
gained, and what exchanging gradients takes.
"""

from __future__ import annotations

import math
import os
from typing import Any, Self

import pandas as pd
from matplotlib.figure import Figure
from pydantic import model_validator

from benchlib import figures, tables, workloads
from benchlib.condition import Condition, DeviceName, WorkloadName
from benchlib.experiments import parameters as p
from benchlib.experiments.result import (
    PROCESSES,
    Result,
    data_note,
    processes,
    ratio_text,
    ratios,
    subject_of,
    throughputs,
)
from benchlib.lab import Lab
from benchlib.measure import machine
from benchlib.measure.comparison import Comparison
from benchlib.measure.statistics import Interval

STRONG, WEAK, ONE = "strong", "weak", "one process, all threads"
"""The batch is shared; each process has a batch of its own; the same batch without processes, on as many cores."""


class Parameters(p.Parameters):
    """For each subject one process against several, with the same batch (strong) and the same batch each (weak)."""

    workload: WorkloadName
    data: str
    hyperparameters: dict[str, Any]
    device: DeviceName
    subjects: p.Grid[p.Subject]
    world_sizes: p.Grid[p.Count]  # numbers of processes, beside 1, which is the baseline
    batch_size: p.BatchSize  # of one process, and of all together in strong scaling
    precision: p.Precision
    budget_s: p.Seconds  # of each comparison
    block_s: p.Seconds

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if 1 in self.world_sizes:
            raise ValueError("world_sizes: 1 is the baseline anyway; leave it out")
        if workloads.load(self.workload).kind != "training":
            raise ValueError(f"workload: {self.workload!r}: it trains nothing")
        for number in range(len(self.subjects)):
            _of_subject(self, number, max(self.world_sizes))
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be measured; on the CPU as many processes as there are cores for."""
    return [one for number in range(len(parameters.subjects)) for one in _here(parameters, number)]


def measure(parameters: Parameters, lab: Lab) -> Scaling:
    """Measure, or take from disk what was measured before."""
    settings = {"precision": parameters.precision, "budget_s": parameters.budget_s, "block_s": parameters.block_s}
    groups = [_here(parameters, number) for number in range(len(parameters.subjects))]
    return Scaling(parameters, lab, [lab.compare(group, **settings) for group in groups])


class Scaling(Result):
    """Throughput, efficiency and the share of communication of each subject, by number of processes."""

    notebook = "scaling"
    in_report = ("scaling",)
    title = "Scaling"

    def __init__(self, parameters: Parameters, lab: Lab, comparisons: list[Comparison]) -> None:
        notes = [data_note(comparisons[0].baseline, lab.inputs)]
        left_out = [count for count in parameters.world_sizes if count not in _counts(parameters)]
        if left_out:
            places, kind = _places(parameters.device), "core" if parameters.device == "cpu" else "device"
            there = f"there is 1 {kind}" if places == 1 else f"there are {places} {kind}s"
            notes.append(f"Not measured: {', '.join(map(str, left_out))} processes, because {there} here.")
        super().__init__(lab.folder, comparisons, [note for note in notes if note])
        self.comparisons = comparisons

    def findings(self) -> list[str]:
        """A sentence for each subject and way of scaling, with its efficiency, and one on communication."""
        found = []
        for _, row in self._rows().iterrows():
            start = f"{row['subject']}, {row['scaling']}"
            if row["scaling"] == ONE:
                found.append(f"{start} ({row['threads']:g}): {ratio_text(row)}, relative to one thread.")
                continue
            share = _text(row, "communication_percent")
            communication = f"; communication takes {share} % of a step" if share else ""
            efficiency = _text(row, "efficiency_percent")
            found.append(
                f"{start}, {row['world_size']} processes: throughput ratio {ratio_text(row)}; efficiency "
                f"{efficiency} %{communication}."
            )
        return found

    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """``scaling`` and ``processes``; on one core there is no place for groups, and the first is left out."""
        made = {"processes": (PROCESSES, processes(self._throughputs()))}
        if not len(frame := self._rows()):
            return made
        return {
            "scaling": (
                "Throughput relative to one process of the same framework with the same threads. Efficiency: the share "
                "of the number of processes that is gained. Communication: the share of a step that is gone when "
                "gradients are not exchanged. 95 % intervals over groups of processes.",
                frame.drop(columns=["control", "control_low", "control_high"]),
            ),
            **made,
        }

    @figures.styled
    def draw(self) -> dict[str, tuple[str, Figure]]:
        """``scaling``: throughput ratios of each subject."""
        if not len(frame := self._rows()):
            return {}
        looks = figures.looks(frame["scaling"])
        subjects = list(dict.fromkeys(frame["subject"]))
        figure, panels = figures.panels(1, len(subjects), height=0.5 + 0.3 * frame.groupby("subject").size().max())
        for axes, subject in zip(panels, subjects, strict=True):
            rows = frame[frame["subject"] == subject].reset_index(drop=True)
            labels = [
                f"{row['scaling']}, {row['world_size']} processes"
                if row["scaling"] != ONE
                else f"one process, {row['threads']:g} threads"
                for _, row in rows.iterrows()
            ]
            shown = rows.assign(subject=rows["scaling"])
            figures.bar_panel(axes, shown, looks, "ratio", "throughput relative to one process", labels)
            for place, count in enumerate(rows["world_size"]):
                axes.plot([count, count], [place - 0.35, place + 0.35], color="0.2", linewidth=1)
            low, high = axes.get_xlim()
            axes.set_xlim(low, max(high, 1.15 * rows["world_size"].max()))
            axes.set_title(subject)
        caption = (
            "Throughput relative to one process with the same threads, with 95 % intervals. The dark stroke is as many "
            "times as there are processes; the grey band is the A/A control."
        )
        return {"scaling": (caption, figures.finish(figure, looks, [figures.CONTROL]))}

    def _throughputs(self) -> pd.DataFrame:
        return throughputs(self.comparisons).fillna({"world_size": 1, "communication": True})

    def _rows(self) -> pd.DataFrame:
        rows = []
        for comparison in self.comparisons:
            base = comparison.baseline
            measured = ratios([comparison]).set_index("label")
            for condition in comparison.conditions[1:]:
                if not condition.communication:
                    continue
                found = measured.loc[str(condition)]
                kept = ("ratio", "ratio_low", "ratio_high", "control", "control_low", "control_high", "verdict")
                row = {
                    "subject": subject_of(condition),
                    "scaling": _kind(base, condition),
                    "world_size": condition.world_size,
                    "threads": condition.threads,
                    "batch_size": condition.batch_size,
                    **{name: found[name] for name in kept},
                }
                ratio = Interval(*(found[name] for name in kept[:3]), int(found["processes"]))
                row |= _columns("efficiency_percent", _scaled(ratio, 100 / condition.world_size))
                row |= _columns("communication_percent", _communication(comparison, condition))
                files = comparison.files(
                    condition, condition.but(communication=False) if condition.world_size > 1 else condition
                )
                rows.append({**row, "processes": found["processes"], "measurements": " ".join(files)})
        return pd.DataFrame(rows)


def _here(parameters: Parameters, number: int) -> list[Condition]:
    """A subject's conditions, baseline first, for the numbers of processes that this machine has a place for."""
    counts = _counts(parameters) or [1]
    found = [one for count in counts for one in _of_subject(parameters, number, count)]
    return list(dict.fromkeys(found))


def _counts(parameters: Parameters) -> list[int]:
    return sorted(count for count in parameters.world_sizes if count <= _places(parameters.device))


def _places(device: str) -> int:
    if device == "cpu":
        return len(os.sched_getaffinity(0))
    return len(machine.gpus() if device == "cuda" else machine.npus())


def _of_subject(parameters: Parameters, number: int, count: int) -> list[Condition]:
    """One process; ``count`` of them with the same batch, without communication, and with the same batch each; on the
    CPU one process with the threads of all.
    """
    on_cpu, places = parameters.device == "cpu", max(1, _places(parameters.device))
    most = max([1, *_counts(parameters)])
    threads = max(1, places // most) if on_cpu else None
    subject, size = parameters.subjects[number], parameters.batch_size

    def made(**choices: Any) -> Condition:
        keys = dict.fromkeys(subject.choices, f"subjects.{number}")
        common = {"data": parameters.data, "device": parameters.device, "hyperparameters": parameters.hyperparameters}
        return p.condition(keys, workload=parameters.workload, **subject.choices, **common, **choices)

    found = [made(batch_size=size, threads=threads)]
    if on_cpu and most > 1:
        found.append(made(batch_size=size, threads=threads * most))
    if count > 1:
        together = {"threads": threads, "world_size": count}
        found += [
            made(batch_size=size, **together),
            made(batch_size=size, **together, communication=False),
            made(batch_size=count * size, **together),
        ]
    return found


def _kind(base: Condition, condition: Condition) -> str:
    if condition.world_size == 1:
        return ONE
    return STRONG if condition.batch_size == base.batch_size else WEAK


def _communication(comparison: Comparison, condition: Condition) -> Interval:
    """The percentage of a step that goes without the exchange of gradients; nan where that was not measured."""
    alone = condition.but(communication=False) if condition.world_size > 1 else None
    if alone not in comparison.conditions:
        return Interval(math.nan, math.nan, math.nan, 0)
    faster = comparison.between(condition, alone)
    share = [100 * (1 - 1 / value) for value in (faster.estimate, faster.low, faster.high)]
    return Interval(*share, faster.processes)


def _scaled(interval: Interval, factor: float) -> Interval:
    return Interval(interval.estimate * factor, interval.low * factor, interval.high * factor, interval.processes)


def _columns(name: str, interval: Interval) -> dict[str, float]:
    return {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _text(row: pd.Series, name: str) -> str:
    return tables.interval(row[name], row[f"{name}_low"], row[f"{name}_high"]) if math.isfinite(row[name]) else ""
