"""The experiment ``modes``: what graph mode and mixed precision give, and after how long graph mode has paid for its
compilation.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import astuple
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from pydantic import BaseModel, Field, model_validator

from benchlib import figures, tables, workloads
from benchlib.condition import Condition, DeviceName, PrecisionName, WorkloadName
from benchlib.equivalence import NOT_CHECKED
from benchlib.experiments import parameters as p
from benchlib.experiments.result import (
    IMPOSSIBLE,
    NO_RATIO,
    PROCESSES,
    Result,
    data_note,
    different_models,
    processes,
    ratio_text,
    ratios,
    subject_of,
    throughputs,
)
from benchlib.lab import Lab
from benchlib.measure import machine
from benchlib.measure.amortisation import AT_ONCE, NEVER, NOT_MEASURED, NOT_SHOWN, PAYS, Amortisation, amortisation
from benchlib.measure.comparison import Comparison
from benchlib.measure.statistics import Interval
from benchlib.measure.training import TrainingRuns
from benchlib.validation import Strict

LONGEST_REASON = 200  # characters


class Subject(p.Subject):
    """What is compared: a framework in a mode, a precision and a lane."""

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
    hyperparameters: dict[str, Any] = Field(default_factory=dict)
    batch_size: p.BatchSize
    learning_rate: p.Rate | None  # None: of a workload that does not train
    train_samples: p.Count | None = None  # None: all
    epochs: p.Count | None  # None: of a workload that does not train

    def __str__(self) -> str:
        return f"{self.workload} on {self.data}"


class Parameters(p.Parameters):
    """Each task on each device in each subject: a comparison of steps, and a training run from each seed."""

    tasks: p.Grid[Task]
    devices: p.Grid[DeviceName] | None  # None: all that this machine has
    subjects: Annotated[p.Grid[Subject], Field(min_length=2)]  # the first is the baseline
    seeds: p.Grid[p.Seed]
    precision: p.Precision
    budget_s: p.Seconds  # of each comparison
    block_s: p.Seconds

    @model_validator(mode="after")
    def _fits(self) -> Self:
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
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be tried; on this machine, where the devices are not named."""
    return [one for group in _groups(parameters) for one in group[2] if _missing(one) is None]


def measure(parameters: Parameters, lab: Lab) -> Modes:
    """Compare and train what can be run here, or take from disk what was measured before."""
    settings = {"precision": parameters.precision, "budget_s": parameters.budget_s, "block_s": parameters.block_s}
    cases = []
    for task, _, group in _groups(parameters):
        impossible = _impossible(group, lab)
        possible = [one for one in group if one.key not in impossible]
        if group[0].key in impossible or len(possible) < 2:
            cases.append(_Case(task, group, impossible, None, None))
            continue
        comparison = lab.compare(possible, **settings)
        trained = _with_mixed(possible)
        runs = None
        if task.epochs and trained:
            runs = lab.train(trained, seeds=parameters.seeds, epochs=task.epochs)
        cases.append(_Case(task, group, impossible, comparison, runs))
    return Modes(lab, cases)


class _Case:
    """A task on a device: what was measured of it, and why not the rest."""

    def __init__(
        self,
        task: Task,
        conditions: list[Condition],
        impossible: dict[str, str],
        comparison: Comparison | None,
        runs: TrainingRuns | None,
    ) -> None:
        self.task, self.conditions, self.impossible = task, conditions, impossible
        self.comparison, self.runs = comparison, runs
        several = len(machine.devices()) > 1 or conditions[0].device != "cpu"
        self.name = f"{task}, {conditions[0].device}" if several else str(task)

    def pairs(self) -> list[tuple[Condition, Condition]]:
        """Eager and graph mode of what is the same in all else, where both could be run."""
        here = self.comparison.conditions if self.comparison else []
        return [(one, two) for one in here for two in here if one.mode == "eager" and two == one.but(mode="graph")]

    def steps_of_epoch(self) -> int | None:
        """Training steps of a pass over the data."""
        curves = self.runs.curves() if self.runs is not None else ()
        return int(curves["steps"].iloc[0]) if len(curves) else None


class Modes(Result):
    """Of each task the ratios of throughput, the amortisation of graph mode, and the losses."""

    notebook = "modes"
    in_report = ("ratios", "within", "amortisation", "losses")
    title = "Modes and precisions"

    def __init__(self, lab: Lab, cases: list[_Case]) -> None:
        self.cases = cases
        measured = [one for case in cases for one in (case.comparison, case.runs) if one is not None]
        notes = [data_note(case.conditions[0], lab.inputs) for case in cases]
        super().__init__(lab.folder, measured, [note for note in dict.fromkeys(notes) if note])

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
                baseline = subject_of(case.conditions[0])
                found.append(f"{case.name}, throughput relative to {baseline}: {'; '.join(each)}.")
            found += [
                f"{case.name}, {subject_of(eager)} to graph: {_amortised(amortisation(case.comparison, eager, graph))}"
                for eager, graph in case.pairs()
            ]
            found += self._loss_sentences(case)
            found += [
                f"{case.name}: {row['subject']} is {IMPOSSIBLE}: {row['why']}"
                for _, row in rows[rows["why"].notna()].iterrows()
            ]
            if case.runs is not None:
                found += [f"{case.name}: {warning}" for warning in different_models(case.runs)]
        return found

    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """``ratios``, ``within``, ``amortisation``, ``losses`` and ``processes``."""
        measured = [case for case in self.cases if case.comparison is not None]
        amortised = [row for case in measured for row in self._amortisation_rows(case)]
        losses = [row for case in measured for row in self._loss_rows(case)]
        made = {
            "ratios": (
                "Throughput relative to the first framework in eager mode and fp32, and what cannot be run here.",
                pd.concat([self._ratios(case) for case in self.cases], ignore_index=True),
            )
        }
        within = [row for case in measured for row in self._within_rows(case)]
        if within:
            made["within"] = (
                "Within one framework: throughput of graph mode relative to eager mode, and of mixed precision "
                "relative to fp32, all else the same.",
                pd.DataFrame(within),
            )
        if amortised:
            made["amortisation"] = (
                "Graph mode against eager mode of the same framework. Means over processes, with 95 % intervals. "
                "Steps: after so many both have taken equally long, the first step and its compilation included.",
                pd.DataFrame(amortised),
            )
        if losses:
            made["losses"] = (
                "Training loss of the last epoch, its ratio to that of the same framework and mode in fp32 within "
                "seeds, and the first epoch's time over the geometric mean of the others', with the compilation: "
                "means over seeds, with 95 % intervals.",
                pd.DataFrame(losses),
            )
        if measured:
            frame = pd.concat([self._plain(throughputs([case.comparison])) for case in measured], ignore_index=True)
            made["processes"] = (PROCESSES, processes(frame))
        return made

    @figures.styled
    def draw(self) -> dict[str, tuple[str, Figure]]:
        """``ratios``, ``amortisation`` and ``losses``."""
        drawn = {"ratios": self._draw_ratios()}
        if any(case.pairs() for case in self.cases):
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
        baseline = subject_of(self.cases[0].conditions[0])
        for number, (axes, (case, rows)) in enumerate(zip(panels, shown, strict=False)):
            by_subject = {row["subject"]: kinds[row["kind"]] for _, row in rows.iterrows()}
            notes = rows["verdict"].where(rows["ratio"].isna())
            labels = rows["subject"] if number % columns == 0 else [""] * len(rows)
            figures.bar_panel(
                axes, rows.assign(note=notes), by_subject, "ratio", f"throughput relative to {baseline}", list(labels)
            )
            axes.set_title(case.name)
        for axes in panels[len(shown) :]:
            axes.remove()
        caption = (
            f"Throughput relative to {baseline}, with 95 % intervals; above 1 is faster. The grey band is the A/A "
            "control, the baseline against itself."
        )
        return caption, figures.finish(figure, kinds, [figures.CONTROL])

    def _draw_amortisation(self) -> tuple[str, Figure]:
        pairs = [(case, *pair) for case in self.cases for pair in case.pairs()]
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
            for (framework, mode), rows in frame.groupby(["framework", "mode"], sort=False):
                shown.append((f"{case.name}\n{framework} {mode}", rows))
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
        """A row for each subject but the baseline; of one that cannot be run, ``why``."""
        made = ratios([case.comparison]).set_index("label") if case.comparison is not None else pd.DataFrame()
        rows = []
        for condition in case.conditions[1:]:
            kind = f"{condition.framework} {condition.mode}"
            row = {"task": case.name, "subject": subject_of(condition), "kind": kind}
            if str(condition) in made.index:
                found = made.loc[str(condition)]
                names = ("baseline", "ratio", "ratio_low", "ratio_high", "control", "control_low", "control_high")
                row |= {name: found[name] for name in (*names, "processes", "verdict", "measurements")} | {"why": None}
            else:
                why = case.impossible.get(condition.key) or "the baseline cannot be run here"
                row |= {"baseline": subject_of(case.conditions[0]), "ratio": math.nan, "ratio_low": math.nan}
                row |= {"ratio_high": math.nan, "control": math.nan, "control_low": math.nan, "control_high": math.nan}
                row |= {"processes": 0, "verdict": IMPOSSIBLE, "why": why}
            rows.append(row)
        return pd.DataFrame(rows)

    def _within_rows(self, case: _Case) -> list[dict[str, Any]]:
        """A row for each pair of conditions that differ in mode or precision only, and whose models are certified."""
        proved = {row["label"] for _, row in case.comparison.ratios().iterrows() if row["verdict"] not in NO_RATIO}
        there = [one for one in case.comparison.conditions if str(one) in proved]
        exact = [(one.but(precision="fp32"), one) for one in there if one.precision != "fp32"]
        pairs = [pair for pair in [*case.pairs(), *exact] if all(one in there for one in pair)]
        rows = []
        for one, other in pairs:
            ratio = case.comparison.between(one, other)
            row = {"task": case.name, "subject": subject_of(other), "baseline": subject_of(one)}
            row |= {"within_ratio": ratio.estimate, "within_ratio_low": ratio.low, "within_ratio_high": ratio.high}
            files = " ".join(case.comparison.files(one, other))
            rows.append({**row, "processes": ratio.processes, tables.FILES: files})
        return rows

    def _amortisation_rows(self, case: _Case) -> list[dict[str, Any]]:
        rows = []
        for eager, graph in case.pairs():
            found, of_epoch = amortisation(case.comparison, eager, graph), case.steps_of_epoch()
            parts = {
                "first_eager_s": found.first[0],
                "first_graph_s": found.first[1],
                "step_eager_ms": _times(found.step[0], 1000),
                "step_graph_ms": _times(found.step[1], 1000),
                "pays_after_steps": found.steps,
                "pays_after_epochs": _times(found.steps, 1 / of_epoch if of_epoch else math.nan),
                "pays_after_s": found.seconds,
            }
            row = {"task": case.name, "subject": _without_mode(eager), "verdict": found.verdict}
            for name, interval in parts.items():
                row |= {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}
            row["measurements"] = " ".join(case.comparison.files(eager, graph))
            rows.append(row)
        return rows

    def _loss_rows(self, case: _Case) -> list[dict[str, Any]]:
        if case.runs is None:
            return []
        rows = []
        for condition in case.runs.conditions:
            loss, first = case.runs.last_loss(condition), case.runs.first_epoch(condition)
            row = {"task": case.name, "subject": subject_of(condition), "epochs_trained": case.task.epochs}
            row |= {"loss": loss.estimate, "loss_low": loss.low, "loss_high": loss.high, "runs": loss.processes}
            exact = condition.but(precision="fp32")
            if condition != exact and exact in case.runs.conditions:
                ratio = case.runs.loss_ratio(condition, exact)
                row |= {"loss_ratio": ratio.estimate, "loss_ratio_low": ratio.low, "loss_ratio_high": ratio.high}
            row |= {"first_epoch": first.estimate, "first_epoch_low": first.low, "first_epoch_high": first.high}
            row["measurements"] = " ".join(case.runs.files(condition, exact))
            rows.append(row)
        return rows

    def _loss_sentences(self, case: _Case) -> list[str]:
        rows = [row for row in self._loss_rows(case) if "loss_ratio" in row]
        each = [
            f"{row['subject']} {tables.ratio(row['loss_ratio'], row['loss_ratio_low'], row['loss_ratio_high'])}"
            for row in rows
        ]
        if not each:
            return []
        start = f"{case.name}, training loss after {case.task.epochs} epochs relative to fp32 from the same seeds"
        return [f"{start}: {'; '.join(each)}."]

    def _plain(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Without the hyperparameters: those of one workload mean nothing to another."""
        every = {name for case in self.cases for name in workloads.load(case.task.workload).hyperparameters}
        return frame.drop(columns=[name for name in every if name in frame])


def _groups(parameters: Parameters) -> list[tuple[Task, str, list[Condition]]]:
    """Each task on each device, with its conditions, baseline first."""
    devices = parameters.devices or machine.devices()
    return [
        (task, device, _of_task(parameters, number, device))
        for number, task in enumerate(parameters.tasks)
        for device in devices
    ]


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
    return machine.available(condition.framework, condition.device)


def _impossible(group: list[Condition], lab: Lab) -> dict[str, str]:
    """Why a condition cannot be run here, by key: its device is missing, or its process fails when it is tried."""
    found = {one.key: missing for one in group if (missing := _missing(one))}
    certificates = lab.certify([one for one in group if one.key not in found])
    for key, certificate in certificates.items():
        if certificate.verdict == NOT_CHECKED:
            found[key] = _reason(certificate.reason)
    return found


def _with_mixed(group: list[Condition]) -> list[Condition]:
    """Those of a framework and mode that is there in more than one precision: whose losses can be compared."""
    kinds = Counter(one.but(precision="fp32") for one in group)
    return [one for one in group if kinds[one.but(precision="fp32")] > 1]


def _reason(text: str) -> str:
    """A worker's failure in a line: what it says before its own output, without rules and empty lines."""
    told = text.partition(". The end of what it said")[0].removeprefix("the condition failed: ")
    lines = [line.strip(" -") for line in told.splitlines()]
    line = " ".join(line for line in lines if line)
    return line if len(line) <= LONGEST_REASON else line[:LONGEST_REASON] + " ..."


def _without_mode(condition: Condition) -> str:
    parts = [condition.framework, *([] if condition.precision == "fp32" else [condition.precision]), condition.lane]
    return " ".join(parts)


def _times(interval: Interval, factor: float) -> Interval:
    return Interval(interval.estimate * factor, interval.low * factor, interval.high * factor, interval.processes)


def _amortised(found: Amortisation) -> str:
    """What a reader wants to know of graph mode's compilation."""
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
