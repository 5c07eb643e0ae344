"""The experiment ``modes``: what graph mode and mixed precision give, and after how long graph mode has paid for its
compilation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from pydantic import BaseModel, Field, model_validator

from benchlib import frameworks, workloads
from benchlib.analysis import frame as tidy
from benchlib.analysis.amortisation import AT_ONCE, NEVER, NOT_MEASURED, NOT_SHOWN, PAYS, Amortisation, amortisation
from benchlib.analysis.comparison import DISTURBED, Comparison
from benchlib.analysis.equivalence import NOT_CHECKED, Certificate
from benchlib.analysis.frame import FAILED, IMPOSSIBLE, NOT_COMPARED
from benchlib.analysis.measured import failures as failures_of
from benchlib.analysis.statistics import Interval, geometric_interval, mean_interval
from benchlib.analysis.training import TrainingRuns
from benchlib.condition import Condition, DeviceName, PrecisionName, WorkloadName, implementation
from benchlib.data.prepare import prepare
from benchlib.lab import Lab
from benchlib.measure import availability
from benchlib.suite import figures, tables, tasks
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.result import (
    NO_RATIO,
    PROCESSES,
    Result,
    between,
    columns,
    data_note,
    different_models,
    processes,
    ratio_text,
    ratios,
    throughputs,
    without_hyperparameters,
)
from benchlib.validation import Strict
from benchlib.worker.batches import Batches

LONGEST_REASON = 240  # characters


class Subject(p.Subject):
    """What is compared: a framework of an environment, in a mode, a precision and a lane."""

    precision: PrecisionName

    @property
    def choices(self) -> dict[str, str]:
        """As a condition's choices."""
        return {**super().choices, "precision": self.precision}


class Task(BaseModel):
    """A workload, and for how long it is trained to see its losses."""

    model_config = Strict.model_config

    workload: WorkloadName
    data: str
    hyperparameters: dict[str, Any]
    batch_size: p.BatchSize
    learning_rate: p.Rate | None  # None: of a workload that does not train
    train_samples: p.Samples | None  # None: all
    epochs: p.Epochs | None  # None: of a workload that does not train


class Parameters(p.Compared):
    """Each task on each device in each subject: a comparison of steps, and a training run from each seed."""

    tasks: p.Grid[Task]
    devices: p.Grid[DeviceName] | None  # None: all that this machine has
    subjects: Annotated[p.Grid[Subject], Field(min_length=2)]  # the first is the baseline
    seeds: p.Grid[p.Seed]
    trained: Literal["all", "mixed"]  # mixed: only what is there in several precisions, whose losses can be compared

    @model_validator(mode="after")
    def _fits(self) -> Self:
        devices = self.devices or frameworks.every_device()
        p.check_count("tasks, devices, subjects", len(self.tasks) * len(devices) * len(self.subjects))
        first = self.subjects[0]
        if (first.mode, first.precision) != ("eager", "fp32"):
            raise ValueError(f"subjects.0: {first} {first.precision}: the baseline must be eager and fp32")
        for number, task in enumerate(self.tasks):
            trains = workloads.load(task.workload).kind == "training"
            if trains == (task.epochs is None):
                must = "give a number" if trains else "its steps train nothing: give null"
                raise ValueError(f"tasks.{number}.epochs: {task.epochs!r}: of {task.workload} {must}")
            for device in self.devices or ["cpu"]:
                _of_task(self, number, device)
        tasks.check([task.model_dump() for task in self.tasks])
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be tried; on this machine, where the devices are not named."""
    return [one for group in comparisons(parameters) for one in group]


def comparisons(parameters: Parameters) -> list[list[Condition]]:
    """A group of conditions for each task and device. The gate may find fewer that can be run there."""
    return [[one for one in group if _missing(one) is None] for *_, group in _groups(parameters)]


def measure(parameters: Parameters, lab: Lab) -> Modes:
    """Compare and train what can be run here, or take from disk what was measured before."""
    cases = []
    for name, task, group in _groups(parameters):
        impossible, failed = _tried(group, lab)
        possible = [one for one in group if one.key not in impossible and one.key not in failed]
        baseline = next((one for one in possible if (one.mode, one.precision) == ("eager", "fp32")), None)
        comparison = runs = None
        if baseline is not None and len(possible) > 1:
            possible.sort(key=lambda one: one != baseline)
            comparison = lab.compare(possible, **parameters.settings)
            trained = possible if parameters.trained == "all" else _with_mixed(possible)
            if task.epochs and trained:
                runs = lab.train(trained, seeds=parameters.seeds, epochs=task.epochs)
        cases.append(_Case(name, task, group, impossible, failed, baseline, comparison, runs))
    return Modes(lab, cases)


@dataclass(frozen=True)
class _Case:
    """A task on a device: what was measured of it, and why not the rest."""

    name: str
    task: Task
    conditions: list[Condition]
    impossible: Mapping[str, str]  # why, by condition key
    failed: Mapping[str, Certificate]  # what could not be checked, by condition key: it may be possible the next time
    baseline: Condition | None  # the first that can be run here of those in eager mode and fp32
    comparison: Comparison | None
    runs: TrainingRuns | None

    def why(self, condition: Condition) -> tuple[str, str]:
        """Of what was not measured: the verdict, and the reason."""
        if condition.key in self.impossible:
            return IMPOSSIBLE, self.impossible[condition.key]
        if condition.key in self.failed:
            return FAILED, _reason(self.failed[condition.key])
        _, reason = self.why(self.conditions[0])
        return NOT_COMPARED, f"no baseline can be run here: {self.conditions[0].subject}: {reason}"

    def pairs(self) -> list[tuple[Condition, Condition, str]]:
        """Eager and graph mode of what is the same in all else, where both could be run, and the verdict on their
        ratio.
        """
        here = self.comparison.conditions if self.comparison else []
        both = [(one, two) for one in here for two in here if one.mode == "eager" and two == one.but(mode="graph")]
        return [(*pair, between(self.comparison, *pair)[1]) for pair in both]

    def proved(self) -> list[tuple[Condition, Condition]]:
        """Those of :meth:`pairs` that can be compared: their models are certified, and neither slows down or was
        disturbed.
        """
        return [(eager, graph) for eager, graph, verdict in self.pairs() if verdict not in NO_RATIO]

    def within(self) -> list[tuple[Condition, Condition, Interval, str]]:
        """Of each two conditions that differ in mode or precision only, the ratio and the verdict; of those that can be
        compared, or could be if they had not been disturbed.
        """
        if self.comparison is None:
            return []
        there = self.comparison.conditions
        exact = [(one.but(precision="fp32"), one) for one in there if one.precision != "fp32"]
        modes = [(eager, graph) for eager, graph, _ in self.pairs()]
        every = [
            (one, other, *between(self.comparison, one, other))
            for one, other in [*modes, *(pair for pair in exact if pair[0] in there)]
        ]
        return [pair for pair in every if pair[-1] not in NO_RATIO or pair[-1] == DISTURBED]

    def own_rows(self) -> list[dict[str, Any]]:
        """Rows of the frame: the ratios within one framework, those of losses, and what was not measured."""
        made = []
        for one, other, ratio, verdict in self.within():
            more = {"files": " ".join(self.comparison.files(one, other)), **tidy.control_of(self.comparison)}
            more |= {"kind": tidy.COMPARISON, **tidy.said(verdict)}
            made.append(tidy.row("within_ratio", other, ratio, one, **more))
        measured = self.comparison.conditions if self.comparison else []
        baseline, nothing = self.baseline or self.conditions[0], geometric_interval([])
        for one in self.conditions:
            if one not in measured and one != self.baseline:
                why, _ = self.why(one)
                made.append(tidy.row("throughput_ratio", one, nothing, baseline, kind=tidy.COMPARISON, why=why))
        for one in self.runs.conditions if self.runs else ():
            exact = one.but(precision="fp32")
            if one != exact and exact in self.runs.conditions:
                ratio = _Losses.of(self.runs, one).relative_to(_Losses.of(self.runs, exact))
                why = None if math.isfinite(ratio.estimate) else tidy.NOT_MEASURED
                files = {"files": " ".join(self.runs.files(one, exact)), "epochs": self.runs.epochs, "why": why}
                made.append(tidy.row("loss_ratio", one, ratio, exact, kind=tidy.TRAINING, **files))
        return made


class Modes(Result):
    """Of each task the ratios of throughput, the amortisation of graph mode, and the losses."""

    notebook = "modes"
    in_report = ("ratios", "within", "amortisation", "losses")
    title = "Modes and precisions"

    def __init__(self, lab: Lab, cases: list[_Case]) -> None:
        self.cases = cases
        measured = [one for case in cases for one in (case.comparison, case.runs) if one is not None]
        self.steps_of_epoch = {case.name: _steps_of_epoch(case.conditions[0], lab) for case in cases}
        failed = [one for case in cases for one in case.failed.values()]
        self._of_gate = {one.condition: (one, lab.certificate_path(one.condition)) for one in failed}
        notes = [data_note(case.conditions[0], lab.inputs) for case in cases]
        super().__init__(lab.folder, measured, [note for note in dict.fromkeys(notes) if note])

    def frame_arguments(self, measured: Comparison | TrainingRuns) -> dict[str, Any]:
        """With the name of the task."""
        of = next(case for case in self.cases if measured is case.comparison or measured is case.runs)
        return {"task": of.name}

    def own_rows(self) -> list[dict[str, Any]]:
        """The ratios within one framework, those of losses to fp32's, and what was not measured, with the reason."""
        return [{"task": case.name, **row} for case in self.cases for row in case.own_rows()]

    def findings(self) -> list[str]:
        """The ratios, what graph mode's compilation costs, how mixed precision's losses differ, and what cannot be
        run here.
        """
        found = []
        for case in self.cases:
            rows = self._ratios(case)
            measured = rows[rows["why"].isna()]
            each = [f"{row['subject']} {ratio_text(row)}" for _, row in measured.iterrows()]
            if each:
                found.append(f"{case.name}, throughput relative to {case.baseline.subject}: {'; '.join(each)}.")
            found += [self._pair_sentence(case, *pair) for pair in case.pairs()]
            found += self._loss_sentences(case)
            if case.comparison is not None:
                found += [
                    f"{case.name}: {condition.subject} computes as exactly as fp32: this precision changes nothing "
                    "of this model here, so its ratio shows nothing of the precision."
                    for condition in case.comparison.conditions
                    if case.comparison.certificates[condition.key].unrounded
                ]
            found += [
                f"{case.name}: {row['subject']} {'' if row['verdict'] == FAILED else 'is '}{row['verdict']}: "
                f"{row['why']}"
                for _, row in rows[rows["why"].notna()].iterrows()
            ]
            if case.runs is not None:
                found += [f"{case.name}: {warning}" for warning in different_models(case.runs)]
        return found

    def failures(self) -> pd.DataFrame:
        """What failed, a row a process; what could not be tried included."""
        tried = [
            failures_of([], [certificate]).assign(file=path.relative_to(self.folder).as_posix())
            for certificate, path in self._of_gate.values()
        ]
        return pd.concat([super().failures(), *tried], ignore_index=True)

    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """``ratios``, ``within``, ``amortisation``, ``losses`` and ``processes``."""
        measured = [case for case in self.cases if case.comparison is not None]
        amortised = [row for case in measured for row in self._amortisation_rows(case)]
        losses = [row for case in measured for row in self._loss_rows(case)]
        made = {
            "ratios": (
                "Throughput relative to the first subject in eager mode and fp32 that can be run here, and what cannot "
                "be run.",
                pd.concat([self._ratios(case) for case in self.cases], ignore_index=True),
            )
        }
        within = self.frame[self.frame["quantity"] == "within_ratio"]
        if len(within):
            made["within"] = (
                "Within one framework: throughput of graph mode relative to eager mode, and of mixed precision "
                "relative to fp32, all else the same.",
                _within_table(within),
            )
        if amortised:
            made["amortisation"] = (
                "Graph mode against eager mode of the same framework. Means over processes, with 95 % intervals. "
                "Steps: after so many both have taken equally long, the first step and its compilation included. "
                "Without processes whose first step was disturbed.",
                pd.DataFrame(amortised),
            )
        if losses:
            made["losses"] = (
                "Training loss of the last epoch, its ratio to that of the same framework and mode in fp32 within "
                "seeds, and the first epoch's time over the geometric mean of the others', with the compilation: "
                "means over seeds, with 95 % intervals. A run diverged if the loss of an epoch is not finite: its "
                "losses are in none of the means.",
                pd.DataFrame(losses),
            )
        if measured:
            each = [throughputs([case.comparison]).assign(task=case.name) for case in measured]
            frame = without_hyperparameters(pd.concat(each, ignore_index=True)).drop(columns=["workload", "data"])
            made["processes"] = (PROCESSES, processes(frame))
        return made

    @figures.styled
    def draw(self) -> dict[str, tuple[str, Figure]]:
        """``ratios``, ``amortisation`` and ``losses``."""
        drawn = {"ratios": self._draw_ratios()}
        if any(case.proved() for case in self.cases):
            drawn["amortisation"] = self._draw_amortisation()
        if any(case.runs is not None and len(case.runs.curves()) for case in self.cases):
            drawn["losses"] = self._draw_losses()
        return drawn

    def _draw_ratios(self) -> tuple[str, Figure]:
        shown = [(case, self._ratios(case)) for case in self.cases]
        kinds = figures.looks(kind for _, rows in shown for kind in rows["kind"])
        columns = min(2, len(shown))
        height = 0.45 + 0.22 * max(len(rows) for _, rows in shown)
        figure, panels = figures.panels(math.ceil(len(shown) / columns), columns, height=height)
        baselines = [(case.baseline or case.conditions[0]).subject for case in self.cases]
        for number, (axes, (case, rows)) in enumerate(zip(panels, shown, strict=False)):
            by_subject = {row["subject"]: kinds[row["kind"]] for _, row in rows.iterrows()}
            notes = rows["verdict"].where(rows["ratio"].isna())
            labels = rows["subject"] if number % columns == 0 else [""] * len(rows)
            xlabel = f"throughput relative to {baselines[number]}"
            figures.bar_panel(axes, rows.assign(note=notes), by_subject, "ratio", xlabel, list(labels), self.margin)
            axes.set_title(case.name)
        for axes in panels[len(shown) :]:
            axes.remove()
        baseline = baselines[0] if len(set(baselines)) == 1 else "the baseline that its axis names"
        caption = (
            f"Throughput relative to {baseline}, with 95 % intervals; above 1 is faster. The grey band is the A/A "
            f"control, the baseline against itself. {figures.margin_text(self.margin)}"
        )
        return caption, figures.finish(figure, kinds, [figures.CONTROL, figures.margin_legend(self.margin)])

    def _draw_amortisation(self) -> tuple[str, Figure]:
        pairs = [(case, *pair) for case in self.cases for pair in case.proved()]
        looks = figures.looks(["eager", "graph"])
        columns = min(3, len(pairs))
        figure, panels = figures.panels(math.ceil(len(pairs) / columns), columns, height=1.9)
        for axes, (case, eager, graph) in zip(panels, pairs, strict=False):
            _draw_pair(axes, amortisation(case.comparison, eager, graph), looks)
            axes.set_title(f"{case.name}\n{_without_mode(eager)}")
        for axes in panels[len(pairs) :]:
            axes.remove()
        caption = (
            "Time from the first step on against the number of steps, compilation included: means over processes. The "
            "grey band is the 95 % interval of the number of steps after which graph mode has paid for its compilation."
        )
        return caption, figures.finish(figure, looks)

    def _draw_losses(self) -> tuple[str, Figure]:
        shown = []
        for case in self.cases:
            if case.runs is None or not len(case.runs.curves()):
                continue
            frame = case.runs.curves()
            for (*where, mode, lane), rows in frame.groupby(["framework", "environment", "mode", "lane"], sort=False):
                shown.append((f"{case.name}\n{implementation(*where)} {mode} {lane}", rows))
        looks = figures.looks(precision for _, rows in shown for precision in rows["precision"])
        columns = min(3, len(shown))
        figure, panels = figures.panels(math.ceil(len(shown) / columns), columns, height=1.9)
        for axes, (title, rows) in zip(panels, shown, strict=False):
            own = {name: look for name, look in looks.items() if name in set(rows["precision"])}
            figures.curve_panel(axes, rows, own, "loss", "epoch", "training loss", "precision", log_y=True)
            axes.set_title(title)
        for axes in panels[len(shown) :]:
            axes.remove()
        caption = (
            "Training loss by epoch in each precision: lines are means over seeds, bands go from the lowest to the "
            "highest."
        )
        diverged = any(not np.isfinite(rows["loss"]).all() for _, rows in shown)
        return caption, figures.finish(figure, looks, [figures.DIVERGED] if diverged else [])

    def _ratios(self, case: _Case) -> pd.DataFrame:
        """A row for each subject but the baseline; of one that was not measured, ``why``."""
        made = ratios([case.comparison]).set_index("label") if case.comparison is not None else pd.DataFrame()
        names = ("ratio", "control", "student_ratio")
        unknown = [f"{name}{end}" for name in names for end in ("", "_low", "_high")]
        unknown += ["borrowed", "control_why"]
        rows = []
        for condition in case.conditions:
            if condition == case.baseline:
                continue
            kind = f"{condition.implementation} {condition.mode}"
            row = {"task": case.name, "subject": condition.subject, "kind": kind}
            row["baseline"] = (case.baseline or case.conditions[0]).subject
            if str(condition) in made.index:
                found = made.loc[str(condition)]
                row |= {name: found[name] for name in (*unknown, "processes", "verdict", "measurements")} | {
                    "why": None
                }
            else:
                verdict, why = case.why(condition)
                row |= {**dict.fromkeys(unknown, math.nan), "processes": 0, "verdict": verdict, "why": why}
            rows.append(row)
        return pd.DataFrame(rows)

    def _amortisation_rows(self, case: _Case) -> list[dict[str, Any]]:
        rows = []
        of_epoch = self.steps_of_epoch[case.name]
        for eager, graph in case.proved():
            found = amortisation(case.comparison, eager, graph)
            parts = {
                "first_eager_s": found.first[0],
                "first_graph_s": found.first[1],
                "step_eager_ms": _times(found.step[0], 1000),
                "step_graph_ms": _times(found.step[1], 1000),
                "pays_after_steps": found.steps,
                "pays_after_epochs": _times(found.steps, 1 / of_epoch),
                "pays_after_s": found.seconds,
            }
            row = {"task": case.name, "subject": _without_mode(eager), "verdict": found.verdict}
            for name, interval in parts.items():
                row |= columns(name, interval)
            row["measurements"] = " ".join(case.comparison.files(eager, graph))
            rows.append(row)
        return rows

    def _loss_rows(self, case: _Case) -> list[dict[str, Any]]:
        if case.runs is None:
            return []
        rows = []
        for condition in case.runs.conditions:
            losses, first = _Losses.of(case.runs, condition), case.runs.first_epoch(condition)
            row = {"task": case.name, "subject": condition.subject, "epochs_trained": case.task.epochs}
            row |= columns("loss", mean_interval(list(losses.last.values()), least=0))
            row |= {"diverged": losses.diverged_text, "runs": len(losses.last)}
            exact = condition.but(precision="fp32")
            if condition != exact and exact in case.runs.conditions:
                row |= columns("loss_ratio", losses.relative_to(_Losses.of(case.runs, exact)))
            row |= columns("first_epoch", first)
            row["measurements"] = " ".join(case.runs.files(condition, exact))
            rows.append(row)
        return rows

    def _loss_sentences(self, case: _Case) -> list[str]:
        rows = self._loss_rows(case)
        each = [
            f"{row['subject']} {tables.ratio(row['loss_ratio'], row['loss_ratio_low'], row['loss_ratio_high'])}"
            for row in rows
            if math.isfinite(row.get("loss_ratio", math.nan))
        ]
        start = f"{case.name}, training loss after {case.task.epochs} epochs relative to fp32 from the same seeds"
        found = [f"{start}: {'; '.join(each)}."] if each else []
        lost = [row for row in rows if row["diverged"] != NONE_DIVERGED]
        return [*found, *(f"{case.name}: {row['subject']} diverged in {row['diverged']}." for row in lost)]

    def _pair_sentence(self, case: _Case, eager: Condition, graph: Condition, verdict: str) -> str:
        start = f"{case.name}, {eager.subject} to graph"
        if verdict in NO_RATIO:
            return f"{start}: {NO_RATIO[verdict]}, so it is not said when it pays."
        return f"{start}: {_amortised(amortisation(case.comparison, eager, graph))}"


NONE_DIVERGED = "none"


@dataclass(frozen=True)
class _Losses:
    """How a condition's runs ended."""

    last: dict[int, float]  # the last epoch's loss by seed, of the runs that got there and did not diverge
    diverged: dict[int, int]  # by seed, the first epoch whose loss is not finite

    @classmethod
    def of(cls, runs: TrainingRuns, condition: Condition) -> Self:
        last, diverged = {}, {}
        for m in runs.measurements:
            if m.condition != condition:
                continue
            lost = [epoch.epoch for epoch in m.epochs if not math.isfinite(epoch.loss)]
            if lost:
                diverged[m.seed] = lost[0]
            elif len(m.epochs) >= runs.epochs:
                last[m.seed] = m.epochs[runs.epochs - 1].loss
        return cls(last, diverged)

    @property
    def diverged_text(self) -> str:
        """How many of how many, in words."""
        if not self.diverged:
            return NONE_DIVERGED
        count = len(self.last) + len(self.diverged)
        return f"{len(self.diverged)} of {count} seeds (first in epoch {min(self.diverged.values())})"

    def relative_to(self, others: _Losses) -> Interval:
        """The ratio of the last losses, within the seeds of which neither diverged."""
        both = [seed for seed in self.last if seed in others.last]
        ratios = [self.last[seed] / others.last[seed] for seed in both]
        return geometric_interval([math.log(one) if one > 0 else math.nan for one in ratios])


def _within_table(rows: pd.DataFrame) -> pd.DataFrame:
    columns = {"task": "task", "subject": "subject", "baseline_subject": "baseline", "estimate": "within_ratio"}
    columns |= {"low": "within_ratio_low", "high": "within_ratio_high", "processes": "processes"}
    columns |= {"verdict": "verdict", "files": tables.FILES}
    shown = rows.assign(verdict=rows["verdict"].fillna(rows["why"]))
    return shown[[*columns]].rename(columns=columns).reset_index(drop=True)


def _groups(parameters: Parameters) -> list[tuple[str, Task, list[Condition]]]:
    """Each task on each device: what it is called, and its conditions."""
    there = availability.devices(p.environments_of(parameters.subjects))
    devices = parameters.devices or there
    several = len(there) > 1 or devices != ["cpu"]
    return [
        (f"{name}, {device}" if several else name, task, _of_task(parameters, number, device))
        for number, (name, task) in enumerate(zip(_names(parameters), parameters.tasks, strict=True))
        for device in devices
    ]


def _names(parameters: Parameters) -> list[str]:
    return tasks.names([task.model_dump() for task in parameters.tasks])


def _of_task(parameters: Parameters, number: int, device: str) -> list[Condition]:
    task, place = parameters.tasks[number], f"tasks.{number}"
    choices = {
        "data": task.data,
        "device": device,
        "hyperparameters": task.hyperparameters,
        "batch_size": task.batch_size,
        "train_samples": task.train_samples,
        "learning_rate": task.learning_rate,
    }
    keys = {name: f"{place}.{name}" for name in choices if name != "device"}
    made = []
    for at, subject in enumerate(parameters.subjects):
        named = {**keys, "workload": f"{place}.workload", **dict.fromkeys(subject.choices, f"subjects.{at}")}
        made.append(p.condition(named, workload=task.workload, **subject.choices, **choices))
    return made


def _missing(condition: Condition) -> str | None:
    return availability.available(condition.framework, condition.device, condition.environment)


def _tried(group: list[Condition], lab: Lab) -> tuple[dict[str, str], dict[str, Certificate]]:
    """By condition key, why a condition cannot be run here, and the certificates of those that failed when they were
    tried, which says nothing of what is possible.
    """
    impossible = {one.key: missing for one in group if (missing := _missing(one))}
    failed = {}
    certificates = lab.certify([one for one in group if one.key not in impossible])
    # What all others are checked against must run there: that it does not is no answer.
    certain = (
        certificates[group[0].key].condition if group[0].device == "cpu" and group[0].key in certificates else None
    )
    for key, certificate in certificates.items():
        if certificate.verdict != NOT_CHECKED:
            continue
        if certificate.refused and certificate.condition != certain:
            impossible[key] = _reason(certificate)
        else:
            failed[key] = certificate
    return impossible, failed


def _steps_of_epoch(condition: Condition, lab: Lab) -> float:
    """Training steps of a pass over the data; nan of a workload that does not train."""
    workload = workloads.load(condition.workload)
    if workload.kind != "training":
        return math.nan
    return Batches(prepare(condition, 0, lab.inputs), condition.batch_size, None, workload.fields).steps_per_epoch


def _with_mixed(group: list[Condition]) -> list[Condition]:
    """Those of a framework and mode that is there in more than one precision: whose losses can be compared."""
    kinds = Counter(one.but(precision="fp32") for one in group)
    return [one for one in group if kinds[one.but(precision="fp32")] > 1]


def _reason(certificate: Certificate) -> str:
    """Why a model could not be checked, in a line without rules and empty lines."""
    whose = "" if certificate.failed == "condition" else f"the {certificate.failed} failed: "
    lines = [line.strip(" -") for line in f"{whose}{certificate.failure.sentence}".splitlines()]
    line = " ".join(line for line in lines if line)
    return line if len(line) <= LONGEST_REASON else line[:LONGEST_REASON] + " ..."


def _without_mode(condition: Condition) -> str:
    precision = [] if condition.precision == "fp32" else [condition.precision]
    return " ".join([condition.implementation, *precision, condition.lane])


def _times(interval: Interval, factor: float) -> Interval:
    return Interval(interval.estimate * factor, interval.low * factor, interval.high * factor, interval.processes)


def _amortised(found: Amortisation) -> str:
    """What a reader wants to know of graph mode's compilation."""
    if found.verdict == DISTURBED:
        return (
            "the first step of more than half of the processes was disturbed, so it is not said when it pays (see that "
            "the machine is quiet, delete the measurements and run again)."
        )
    eager, graph = (tables.number(one.estimate) for one in found.first)
    first = f"its first step takes {graph} s, {eager} s in eager mode"
    steps = [round(value) if math.isfinite(value) else value for value in astuple(found.steps)[:3]]
    said = {
        PAYS: f"it has paid for that after {tables.interval(*steps)} steps, "
        f"{tables.interval(*astuple(found.seconds)[:3])} s",
        AT_ONCE: "it pays from the first step on",
        NEVER: "its steps are slower, so it never pays",
        NOT_SHOWN: "its steps are not shown to be faster, so it is not shown to pay",
        NOT_MEASURED: "too few processes to say when it pays",
    }
    return f"{first}; {said[found.verdict]}."


def _draw_pair(axes: figures.Axes, found: Amortisation, looks: dict[str, figures.Look]) -> None:
    """Seconds against steps in both modes, and where they cross."""
    if found.verdict == DISTURBED:
        axes.text(0.5, 0.5, "disturbed", transform=axes.transAxes, ha="center", va="center")
        return
    far = 10 * found.steps.estimate if found.verdict == PAYS else 1000.0
    steps = np.geomspace(1, max(far, 100.0), 60)
    for name, first, step in zip(("eager", "graph"), found.first, found.step, strict=True):
        look = looks[name]
        seconds = first.estimate + (steps - 1) * step.estimate
        axes.plot(steps, seconds, color=look.color, linestyle=look.line, marker=look.marker, markevery=20)
    if found.verdict == PAYS and math.isfinite(found.steps.low):
        axes.axvspan(found.steps.low, found.steps.high, color=figures.GREY, alpha=0.35, linewidth=0, zorder=0)
    axes.set(xscale="log", yscale="log", xlabel="steps", ylabel="time (s)")
    for axis in (axes.xaxis, axes.yaxis):
        figures.plain_log_axis(axis)
