"""The experiment ``scaling``: data-parallel training in several processes, on one machine: how much of their number is
gained, and what exchanging gradients takes.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any, Self

import pandas as pd
from matplotlib.figure import Figure
from pydantic import model_validator

from benchlib import frameworks, workloads
from benchlib.analysis import frame as tidy
from benchlib.analysis.comparison import Comparison, verdict_on
from benchlib.analysis.frame import IMPOSSIBLE
from benchlib.analysis.statistics import Interval
from benchlib.condition import Condition, DeviceName, WorkloadName
from benchlib.lab import Lab
from benchlib.measure import availability, npu_smi, nvml
from benchlib.suite import figures, tables
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.result import (
    NO_RATIO,
    PROCESSES,
    Result,
    between,
    columns,
    data_note,
    processes,
    ratio_text,
    throughputs,
    why_no_control,
)

STRONG, WEAK, ONE = "strong", "weak", "one process"
"""The batch is shared; each process has a batch of its own; the same batch without processes."""

BASELINE = "baseline"
"""The verdict on what the others are compared with."""


class Parameters(p.Compared):
    """For each subject one process against several, with the same batch (strong) and the same batch each (weak)."""

    workload: WorkloadName
    data: str
    hyperparameters: dict[str, Any]
    device: DeviceName
    subjects: p.Grid[p.Subject]
    world_sizes: p.Grid[p.Count]  # numbers of processes, beside 1, which is the baseline
    batch_size: p.BatchSize  # of one process, and of all together in strong scaling

    @model_validator(mode="after")
    def _fits(self) -> Self:
        p.check_count("subjects, world_sizes", len(self.subjects) * (1 + 4 * len(self.world_sizes)))
        if 1 in self.world_sizes:
            raise ValueError("world_sizes: 1 is the baseline anyway; leave it out")
        if workloads.load(self.workload).kind != "training":
            raise ValueError(f"workload: {self.workload!r}: it trains nothing")
        for number in range(len(self.subjects)):
            _of_subject(self, number, self.world_sizes)
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be measured: on the CPU as many processes as there are cores for; of the subjects those
    that can use the device, or all, where none can: asking for a device that is not there is refused.
    """
    possible = [one for one in _subjects(parameters) if one.why is None] or _subjects(parameters)
    return [condition for one in possible for condition in one.conditions]


def comparisons(parameters: Parameters) -> list[list[Condition]]:
    """All of them in one, so that it has one baseline."""
    return [conditions(parameters)]


def measure(parameters: Parameters, lab: Lab) -> Scaling:
    """Measure, or take from disk what was measured before."""
    return Scaling(parameters, lab, lab.compare(conditions(parameters), **parameters.settings))


@dataclass(frozen=True)
class _Subject:
    """A subject's conditions, its baseline first, in the same order for every subject."""

    conditions: list[Condition]
    why: str | None  # it cannot be run here

    @property
    def baseline(self) -> Condition:
        return self.conditions[0]

    @property
    def name(self) -> str:
        return self.baseline.subject


class Scaling(Result):
    """Throughput, efficiency and the share of communication of each subject, by number of processes."""

    notebook = "scaling"
    in_report = ("scaling", "subjects")
    title = "Scaling"

    def __init__(self, parameters: Parameters, lab: Lab, comparison: Comparison) -> None:
        notes = [data_note(comparison.baseline, lab.inputs)]
        left_out = [count for count in parameters.world_sizes if count not in _counts(parameters)]
        if left_out:
            places, kind = _places(parameters.device), "core" if parameters.device == "cpu" else "device"
            there = f"there is 1 {kind}" if places == 1 else f"there are {places} {kind}s"
            notes.append(f"Not measured: {', '.join(map(str, left_out))} processes, because {there} here.")
        super().__init__(lab.folder, [comparison], [note for note in notes if note])
        self.comparison = comparison
        self.subjects = _subjects(parameters)

    def own_rows(self) -> list[dict[str, Any]]:
        """Of each group its efficiency, relative to one process of the same subject, whose batch is the group's (strong
        scaling) or that of each of its processes (weak); what else there is to compare it with; and what cannot be run
        here.
        """
        lost = {"kind": tidy.COMPARISON, "why": IMPOSSIBLE}
        every = [condition for one in self.subjects if one.why for condition in filter(_communicates, one.conditions)]
        made = [tidy.row("samples_per_second", condition, _NONE, **lost) for condition in every]
        for one in self._possible:
            for condition in (each for each in one.conditions if each.world_size > 1 and each.communication):
                found = self._compared(condition, one.baseline)
                common = {"kind": tidy.COMPARISON, **tidy.control_of(self.comparison), "files": found["measurements"]}
                others = {
                    "efficiency_percent": one.baseline,
                    "same_threads_ratio": one.baseline.but(threads=condition.world_size * condition.threads),
                    "communication_percent": condition.but(communication=False),
                }
                for quantity in filter(found.__contains__, others):
                    _, verdict = between(self.comparison, others[quantity], condition)
                    ends = (found[f"{quantity}{end}"] for end in ("", "_low", "_high"))
                    interval, why = Interval(*ends, found["processes"]), tidy.said(verdict)["why"]
                    made.append(tidy.row(quantity, condition, interval, others[quantity], why=why, **common))
        return made

    def findings(self) -> list[str]:
        """A sentence for each subject and way of scaling, with its efficiency and what communication takes; for each
        subject beside the first, how it compares with that; and what cannot be run here.
        """
        impossible = [f"{one.name} is {IMPOSSIBLE}: {one.why}." for one in self.subjects if one.why]
        if not len(rows := self._rows()):
            return impossible
        told = rows[rows["why"].isna()].sort_values(
            "world_size", ascending=False, kind="stable"
        )  # what was asked first
        found = [self._finding(row) for _, row in told.iterrows()]
        found += [
            f"{_way(row)}, {row['subject']} relative to {row['baseline']}: {ratio_text(row)}."
            for _, row in self._between_subjects().iterrows()
        ]
        return [*found, *impossible]

    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """``scaling``, ``subjects`` and ``processes``; on one core there is no place for groups, and only the last is
        left.
        """
        made = {"processes": (PROCESSES, processes(self._throughputs()))}
        if not len(frame := self._rows()):
            return made
        first = self._possible[0].name
        scaling = (
            "Throughput, and its ratio to one process of the same subject with the same threads. Efficiency: the "
            "share of the number of processes that is gained. Relative to one process that has the same threads in "
            "all, and the batch of the baseline. Communication: the share of a step that is gone when gradients are "
            f"not exchanged. The A/A control is of one process of {first}, which is the first. 95 % intervals over "
            "processes or groups of them.",
            frame,
        )
        made = {"scaling": scaling, **made}
        if len(frame := self._between_subjects()):
            made["subjects"] = (
                f"Throughput relative to {first} in the same way of scaling, with the same processes and threads. The "
                f"A/A control is of one process of {first}. 95 % intervals over what was measured together.",
                frame,
            )
        return made

    @figures.styled
    def draw(self) -> dict[str, tuple[str, Figure]]:
        """``scaling``: throughput ratios of each subject."""
        if not len(frame := self._rows()):
            return {}
        frame = frame[(frame["verdict"] != BASELINE) & frame["why"].isna()]
        frame = frame.assign(way=[name if name in (STRONG, WEAK) else ONE for name in frame["scaling"]])
        looks = figures.looks(frame["way"])
        subjects = list(dict.fromkeys(frame["subject"]))
        figure, panels = figures.panels(1, len(subjects), height=0.5 + 0.3 * frame.groupby("subject").size().max())
        for axes, subject in zip(panels, subjects, strict=True):
            rows = frame[frame["subject"] == subject].reset_index(drop=True)
            ideal = rows["world_size"].where(rows["world_size"] > 1)
            shown = rows.assign(subject=rows["way"], note=rows["verdict"], target=ideal)
            if subject != self._possible[0].name:
                shown = shown.assign(control_low=math.nan, control_high=math.nan)  # it is the first's
            labels = [_way(row) for _, row in rows.iterrows()]
            figures.bar_panel(axes, shown, looks, "ratio", "throughput relative to one process", labels, self.margin)
            axes.set_title(subject)
        caption = (
            "Throughput relative to one process of the same subject with the same threads, with 95 % intervals. The "
            "dark stroke is as many times as there are processes; the grey band is the A/A control, which is of one "
            f"process of the first subject. {figures.margin_text(self.margin)}"
        )
        bands = [figures.CONTROL, figures.margin_legend(self.margin)]
        return {"scaling": (caption, figures.finish(figure, looks, bands))}

    @property
    def _possible(self) -> list[_Subject]:
        return [one for one in self.subjects if one.why is None]

    def _throughputs(self) -> pd.DataFrame:
        return throughputs([self.comparison]).fillna({"world_size": 1, "communication": True})

    def _rows(self) -> pd.DataFrame:
        """A row for each condition that communicates, of each subject; none where there is no place for groups."""
        if all(len(one.conditions) == 1 for one in self.subjects):
            return pd.DataFrame()
        measured = throughputs([self.comparison]).set_index("label")
        rows = []
        for one in self.subjects:
            for condition in filter(_communicates, one.conditions):
                row = _named(condition, one.baseline)
                if one.why is not None:
                    rows.append({**row, "verdict": IMPOSSIBLE, "processes": 0, "why": one.why})
                    continue
                found = measured.loc[str(condition)]
                row |= {f"samples_per_second{end}": found[f"samples_per_second{end}"] for end in ("", "_low", "_high")}
                if condition == one.baseline:
                    row |= {**columns("ratio", _NONE), "verdict": BASELINE, "processes": found["processes"]}
                    row |= {"measurements": " ".join(self.comparison.files(condition))}
                else:
                    row |= self._compared(condition, one.baseline)
                rows.append({**row, **self._control(), "why": None})
        frame = pd.DataFrame(rows)
        last = [*self._control(), "processes", "measurements", "why"]
        return frame[[*frame.columns.drop(last), *last]]

    def _compared(self, condition: Condition, base: Condition) -> dict[str, Any]:
        """The ratio of a condition to its baseline, and of a group what else there is to compare it with."""
        ratio, verdict = between(self.comparison, base, condition)
        used = [base, condition]
        found = {**columns("ratio", ratio), "verdict": verdict, "processes": ratio.processes}
        if condition.world_size > 1:
            found |= columns("efficiency_percent", _scaled(ratio, 100 / condition.world_size))
            one = base.but(threads=condition.world_size * base.threads)
            if one in self.comparison.conditions:
                found |= columns("same_threads_ratio", between(self.comparison, one, condition)[0])
                used.append(one)
            alone = condition.but(communication=False)
            if alone in self.comparison.conditions:
                faster, _ = between(self.comparison, condition, alone)
                share = [100 * (1 - 1 / value) for value in (faster.estimate, faster.low, faster.high)]
                found |= columns("communication_percent", Interval(*share, faster.processes))
                used.append(alone)
        return {**found, "measurements": " ".join(self.comparison.files(*used))}

    def _between_subjects(self) -> pd.DataFrame:
        """A row for each condition that communicates, of each subject but the first, relative to that."""
        rows = []
        for one in self._possible[1:]:
            for its, condition in zip(self._possible[0].conditions, one.conditions, strict=True):
                if not _communicates(condition):
                    continue
                ratio, verdict = between(self.comparison, its, condition)
                row = {**_named(condition, one.baseline), "baseline": self._possible[0].name}
                row |= {**columns("ratio", ratio), "verdict": verdict, **self._control()}
                files = " ".join(self.comparison.files(its, condition))
                rows.append({**row, "processes": ratio.processes, "measurements": files})
        return pd.DataFrame(rows)

    def _control(self) -> dict[str, Any]:
        return {**columns("control", self.comparison.control), "control_why": why_no_control(self.comparison)}

    def _finding(self, row: pd.Series) -> str:
        """A row of a subject that can be run here, in words."""
        start, threads = f"{row['subject']}, {_way(row)}", self.comparison.baseline.threads
        if row["verdict"] == BASELINE:
            speed = _text(row, "samples_per_second")
            said = f"{speed} samples/s" if speed else "no throughput: it failed, keeps getting slower, or was disturbed"
            return f"{start}{_with_threads(threads)}: {said}."
        if row["verdict"] in NO_RATIO:
            return f"{start}: {NO_RATIO[row['verdict']]}."
        said = ratio_text(row)
        if row["subject"] != self._possible[0].name:  # whose baseline the control is of
            said = f"{tables.ratio(row['ratio'], row['ratio_low'], row['ratio_high'])}, {row['verdict']}"
        start += f": throughput ratio {said}, relative to one process{_with_threads(threads)}"
        if row["world_size"] == 1:
            return f"{start}."
        parts = [start, f"efficiency {_text(row, 'efficiency_percent')} %"]
        if math.isfinite(row.get("same_threads_ratio", math.nan)):
            same = Interval(*(row[f"same_threads_ratio{end}"] for end in ("", "_low", "_high")), 0)
            text = f"{tables.ratio(same.estimate, same.low, same.high)}, {verdict_on(same, self.margin)}"
            parts.append(f"relative to one process{_with_threads(row['world_size'] * threads)}: {text}")
        if row["scaling"] == STRONG:
            share = _text(row, "communication_percent")
            unknown = (
                "what communication takes is not known: the same processes without it failed, slow down, or were "
                "disturbed"
            )
            parts.append(f"communication takes {share} % of a step" if share else unknown)
        return f"{'; '.join(parts)}."


def _subjects(parameters: Parameters) -> list[_Subject]:
    """With their conditions for the numbers of processes that this machine has a place for."""
    return [
        _Subject(_of_subject(parameters, number, _counts(parameters)), _missing(parameters, subject))
        for number, subject in enumerate(parameters.subjects)
    ]


def _missing(parameters: Parameters, subject: p.Subject) -> str | None:
    """Why a subject's framework cannot do it here; None: it can."""
    if _counts(parameters) and not frameworks.launcher(subject.framework):
        return f"{subject.framework} has no path to data-parallel training"
    return availability.available(subject.framework, parameters.device, subject.environment)


def _counts(parameters: Parameters) -> list[int]:
    return sorted(count for count in parameters.world_sizes if count <= _places(parameters.device))


def _places(device: str) -> int:
    if device == "cpu":
        return len(os.sched_getaffinity(0))
    return len(nvml.gpus() if device == "cuda" else npu_smi.npus())


def _of_subject(parameters: Parameters, number: int, counts: list[int]) -> list[Condition]:
    """One process; then for each of ``counts``: on the CPU one process with the threads of so many, so many with the
    same batch, the same without communication, and so many with the same batch each.
    """
    on_cpu = parameters.device == "cpu"
    most = max([1, *_counts(parameters)])
    threads = max(1, _places("cpu") // most)  # beside a device, too: torchrun would give each process one
    subject, size = parameters.subjects[number], parameters.batch_size

    def made(**choices: Any) -> Condition:
        keys = dict.fromkeys(subject.choices, f"subjects.{number}")
        common = {"data": parameters.data, "device": parameters.device, "hyperparameters": parameters.hyperparameters}
        return p.condition(keys, workload=parameters.workload, **subject.choices, **common, **choices)

    found = [made(batch_size=size, threads=threads)]
    for count in counts:
        together = {"threads": threads, "world_size": count}
        found += [made(batch_size=size, threads=threads * count)] if on_cpu else []
        found += [
            made(batch_size=size, **together),
            made(batch_size=size, **together, communication=False),
            made(batch_size=count * size, **together),
        ]
    return found


def _communicates(condition: Condition) -> bool:
    return condition.communication


def _named(condition: Condition, base: Condition) -> dict[str, Any]:
    """What a row of a table is about."""
    kind = STRONG if condition.batch_size == base.batch_size else WEAK
    if condition.world_size == 1:
        kind = ONE if condition == base else f"{ONE}{_with_threads(condition.threads)}"
    return {
        "subject": condition.subject,
        "scaling": kind,
        "world_size": condition.world_size,
        "threads": condition.threads,
        "batch_size": condition.batch_size,
    }


def _way(row: pd.Series) -> str:
    """A row in a few words."""
    if row["world_size"] == 1:
        return row["scaling"]
    return f"{row['scaling']}, {row['world_size']} processes"


def _with_threads(count: int | None) -> str:
    """The threads of a process, in words; none on a device that is not the CPU."""
    return "" if count is None else f" with {count:g} thread{'s' * (count > 1)}"


def _scaled(interval: Interval, factor: float) -> Interval:
    return Interval(interval.estimate * factor, interval.low * factor, interval.high * factor, interval.processes)


_NONE = Interval(math.nan, math.nan, math.nan, 0)


def _text(row: pd.Series, name: str) -> str:
    return tables.interval(row[name], row[f"{name}_low"], row[f"{name}_high"]) if math.isfinite(row[name]) else ""
