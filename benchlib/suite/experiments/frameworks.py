"""The experiment ``frameworks``: each workload in each framework, how fast its steps are and how soon it learns."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from pydantic import BaseModel, Field, model_validator
from scipy import stats

from benchlib import metrics, workloads
from benchlib.analysis import frame as tidy
from benchlib.analysis.comparison import DISTURBED, NO_DIFFERENCE, Comparison, verdict_on
from benchlib.analysis.statistics import Interval, geometric_interval, mean_interval
from benchlib.analysis.training import TrainingRuns, left_out, median_to_threshold, undisturbed
from benchlib.condition import Condition, DeviceName, WorkloadName
from benchlib.lab import Lab
from benchlib.metrics import readable
from benchlib.suite import figures, showing, tables, tasks
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.metric import PERCENT
from benchlib.suite.experiments.result import (
    PROCESSES,
    Result,
    columns,
    data_note,
    different_models,
    indicators,
    processes,
    ratio_text,
    ratios,
    throughputs,
    without_hyperparameters,
)
from benchlib.validation import Strict

TITLE = 44  # characters of a line that fit above one of two panels


class Task(BaseModel):
    """A workload, and how it is trained."""

    model_config = Strict.model_config

    workload: WorkloadName
    data: str
    hyperparameters: dict[str, Any]
    batch_size: p.BatchSize
    learning_rate: p.Rate
    train_samples: p.Samples | None  # None: all
    epochs: p.Epochs  # of every run
    most_epochs: p.Epochs  # a run that has not reached the threshold by then ends
    threshold: float | None  # of the metric; None: there is none to reach


class Parameters(p.Compared):
    """Each task in each subject: a comparison of steps, and training runs from each seed."""

    tasks: p.Grid[Task]
    device: DeviceName
    subjects: Annotated[p.Grid[p.Subject], Field(min_length=2)]  # the first is the baseline
    seeds: p.Grid[p.Seed]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        p.check_count("tasks, subjects", len(self.tasks) * len(self.subjects))
        for number, task in enumerate(self.tasks):
            try:
                p.check_metric(task.workload, task.threshold)
            except ValueError as error:
                raise ValueError(f"tasks.{number}.{error}") from None
            if task.most_epochs < task.epochs:
                raise ValueError(f"tasks.{number}.most_epochs: {task.most_epochs}: is less than epochs ({task.epochs})")
            _of_task(self, number)
        tasks.check([task.model_dump() for task in self.tasks])
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be measured."""
    return [condition for group in comparisons(parameters) for condition in group]


def comparisons(parameters: Parameters) -> list[list[Condition]]:
    """A group of conditions for each task, baseline first."""
    return [_of_task(parameters, number) for number in range(len(parameters.tasks))]


def measure(parameters: Parameters, lab: Lab) -> Frameworks:
    """Compare and train, or take from disk what was measured before."""
    names = tasks.names([task.model_dump() for task in parameters.tasks])
    groups, cases = comparisons(parameters), []
    compared_each = lab.compare_each(groups, **parameters.settings)
    for name, task, group, compared in zip(names, parameters.tasks, groups, compared_each, strict=True):
        more = {"epochs": task.epochs, "threshold": task.threshold, "most_epochs": task.most_epochs}
        cases.append(_Case(name, task, compared, lab.train(group, seeds=parameters.seeds, **more)))
    return Frameworks(lab, cases)


@dataclass(frozen=True)
class _Case:
    """A task, and what was measured of it."""

    name: str
    task: Task
    comparison: Comparison
    runs: TrainingRuns


class Frameworks(Result):
    """Of each task the ratios of throughput, the time to its threshold, and its curves."""

    notebook = "frameworks"
    in_report = ("ratios", "learned", "first_epochs", "metrics")
    title = "Frameworks"

    def __init__(self, lab: Lab, cases: list[_Case]) -> None:
        notes = [data_note(case.comparison.baseline, lab.inputs) for case in cases]
        measured = [*(case.comparison for case in cases), *(case.runs for case in cases)]
        super().__init__(lab.folder, measured, list(dict.fromkeys(notes)))
        self.cases = cases

    def frame_arguments(self, measured: Comparison | TrainingRuns) -> dict[str, Any]:
        """With the name of the task; what was trained is shown beside the baseline, whose files are named, too."""
        case = next(case for case in self.cases if measured is case.comparison or measured is case.runs)
        if isinstance(measured, Comparison):
            return {"task": case.name}
        return {"task": case.name, "files": lambda condition: measured.files(measured.conditions[0], condition)}

    def own_rows(self) -> list[dict[str, Any]]:
        """How many times as fast as the baseline each subject trains an epoch, and reaches the threshold."""
        return [
            {"task": case.name, **tidy.as_fast(case.runs, quantity, condition, case.runs.conditions[0])}
            for case in self.cases
            for condition in case.runs.conditions[1:]
            for quantity in ("epoch_ratio", "threshold_ratio")
        ]

    def findings(self) -> list[str]:
        """For each task the ratio of throughput, how soon it was learned, the first epoch against the others, and the
        metrics.
        """
        found = []
        for case in self.cases:
            name, task, runs = case.name, case.task, case.runs
            rows = ratios([case.comparison])
            each = [f"{row['subject']} relative to {row['baseline']} {ratio_text(row)}" for _, row in rows.iterrows()]
            found.append(f"{name}, throughput: {'; '.join(each)}.")
            if task.threshold is not None:
                found.append(f"{name}, to {_threshold(task)}: {'; '.join(self._learned_texts(case))}.")
            found += self._epoch_texts(case)
            failed = int(runs.runs()["failure"].notna().sum())
            found += [f"{name}: {failed} of {len(runs.measurements)} training runs failed."] if failed else []
            found.append(f"{name}, first epoch over the others: {'; '.join(self._first_texts(case))}.")
            found += self._metric_texts(case)
            found += [f"{name}: {warning}" for warning in different_models(runs)]
        return found

    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """``ratios``, ``learned``, ``first_epochs``, ``metrics``, ``indicators`` and ``processes``."""
        names = [case.name for case in self.cases for _ in ratios([case.comparison]).index]
        comparisons = [case.comparison for case in self.cases]
        each = [throughputs([case.comparison]).assign(task=case.name) for case in self.cases]
        frame = without_hyperparameters(pd.concat(each, ignore_index=True)).drop(columns=["workload", "data"])
        learned = pd.concat([self._learned(case) for case in self.cases])
        return {
            "ratios": (
                "Throughput relative to the first framework.",
                without_hyperparameters(ratios(comparisons)).assign(task=names).drop(columns=["workload", "data"]),
            ),
            "learned": (
                "Training: medians over seeds, with runs that did not reach the threshold as the longest; times leave "
                "out evaluation, the first step, which includes the compilation, and runs that were disturbed. Times "
                "as soon at the threshold (where every run reached it) and throughput of whole epochs: relative to the "
                "first framework within seeds, with 95 % intervals over seeds.",
                learned.drop(columns=[name for name in learned if name.startswith("first_")]),
            ),
            "first_epochs": (
                "The first step of a process, with compilation, and the time of the first epoch over the geometric "
                "mean of the others', with that compilation and without; 95 % intervals over seeds.",
                learned[["task", "subject", *(name for name in learned if name.startswith("first_")), "measurements"]],
            ),
            "metrics": (
                "What was learned after the epochs that every run has, with dropout at work: means over seeds, of the "
                "metric on the test data and of the last epoch's training loss, and the difference of the metric from "
                "the first framework within seeds, which share initial weights and order of the data, with 95 % "
                "intervals over seeds.",
                pd.concat([self._metrics(case) for case in self.cases]),
            ),
            "indicators": ("Each framework: means over processes, with 95 % intervals.", indicators(frame)),
            "processes": (PROCESSES, processes(frame)),
        }

    @figures.styled
    def draw(self) -> dict[str, tuple[str, Figure]]:
        """``ratios``; and if anything was trained ``curves``, and if there is a threshold ``survival``."""
        drawn = {"ratios": self._draw_ratios()}
        if any(case.runs.runs()["epochs"].any() for case in self.cases):
            drawn["curves"] = self._draw_curves()
            if any(case.task.threshold is not None for case in self.cases):
                drawn["survival"] = self._draw_survival()
        return drawn

    def _draw_ratios(self) -> tuple[str, Figure]:
        frame = pd.concat([ratios([case.comparison]).assign(task=case.name) for case in self.cases], ignore_index=True)
        looks = figures.looks(frame["subject"])
        figure, (axes,) = figures.panels(1, 1, height=0.45 + 0.24 * len(frame))
        baseline = frame["baseline"].iloc[0]
        noted = frame.assign(note=frame["verdict"])
        xlabel = f"throughput relative to {baseline}"
        figures.bar_panel(axes, noted, looks, "ratio", xlabel, list(frame["task"]), self.margin)
        caption = (
            f"Throughput of each workload relative to {baseline}, with 95 % intervals; above 1 is faster. "
            f"{figures.margin_text(self.margin)}"
        )
        return caption, figures.finish(figure, looks, [figures.CONTROL, figures.margin_legend(self.margin)])

    def _draw_survival(self) -> tuple[str, Figure]:
        """How many runs have not learned yet, by training time."""
        every = [showing.with_subject(case.runs.runs()) for case in self.cases]
        looks = figures.looks(subject for frame in every for subject in frame["subject"])
        shown = [pair for pair in zip(self.cases, every, strict=True) if pair[0].task.threshold is not None]
        columns = min(2, len(shown))
        figure, panels = figures.panels(math.ceil(len(shown) / columns), columns, height=2.0)
        for axes, (case, frame) in zip(panels, shown, strict=False):
            axes.set(xlabel="training time (s)", ylabel="runs not there yet (%)", ylim=(-4, 104))
            axes.set_title(textwrap.fill(f"{case.name}: {_threshold(case.task)}", TITLE))
            for subject, rows in frame.groupby("subject", sort=False):
                _survival(axes, undisturbed(rows[rows["epochs"] > 0]), looks[subject], subject)
        for axes in panels[len(shown) :]:
            axes.remove()
        caption = (
            "The share of training runs that have not reached the threshold yet, by training time (Kaplan and Meier "
            "1958); a run that ended before it counts as long as it was watched (a cross). The first step, which "
            "includes the compilation, is left out."
        )
        lost = left_out(pd.concat([frame for _, frame in shown]))
        return f"{caption} Left out: {lost}." if lost else caption, figures.finish(figure, looks)

    def _draw_curves(self) -> tuple[str, Figure]:
        every = [showing.with_subject(case.runs.curves()) for case in self.cases]
        looks = figures.looks(subject for frame in every for subject in frame["subject"])
        figure, panels = figures.panels(len(self.cases), 2, height=1.9)
        for row, (case, frame) in enumerate(zip(self.cases, every, strict=True)):
            task = case.task
            frame = frame.assign(shown=frame["metric"] * _factor(task))
            loss, metric = panels[2 * row : 2 * row + 2]
            own = {name: look for name, look in looks.items() if name in set(frame["subject"])}
            figures.curve_panel(loss, frame, own, "loss", "epoch", "training loss", "subject", log_y=True)
            figures.curve_panel(metric, frame, own, "shown", "epoch", _label(task), "subject")
            if task.threshold is not None:
                metric.axhline(task.threshold * _factor(task), color="0.2", linewidth=0.8, linestyle=":")
            loss.set_title(case.name)
        caption = (
            "Training loss and metric by epoch: lines are means over seeds, bands go from the lowest to the highest, "
            "as far as all seeds went."
        )
        shown = (
            [("threshold", figures.THRESHOLD)] if any(case.task.threshold is not None for case in self.cases) else []
        )
        return caption, figures.finish(figure, looks, shown)

    def _learned(self, case: _Case) -> pd.DataFrame:
        task, runs = case.task, case.runs
        rows, baseline, every = [], runs.conditions[0], runs.runs()
        for condition in runs.conditions:
            of_subject = every[every["label"] == str(condition)]
            timed, reached = undisturbed(of_subject), of_subject["reached"]
            compiled, alone = (runs.first_epoch(condition, with_compilation) for with_compilation in (True, False))
            epochs = sooner = geometric_interval([])  # none of the baseline itself
            why = None
            if condition != baseline:
                epochs, why = runs.times_as_fast(condition, baseline)
                sooner, _ = runs.times_as_fast(condition, baseline, "seconds_to_threshold")
            rows.append(
                {
                    "task": case.name,
                    "subject": condition.subject,
                    "baseline": baseline.subject,
                    "threshold": _threshold(task),
                    "reached": f"{int(reached.sum())} of {len(of_subject)}" if task.threshold is not None else None,
                    "epochs_to_threshold": median_to_threshold(of_subject, "epochs_to_threshold"),
                    "seconds_to_threshold": median_to_threshold(timed, "seconds_to_threshold"),
                    **columns("threshold_ratio", sooner),
                    "best_metric": of_subject["best_metric"].median(),
                    "first_step_s": of_subject["first_step_s"].mean(),
                    "epoch_s": timed["epoch_s"].mean(),
                    **columns("epoch_ratio", epochs),
                    **columns("first_epoch", compiled),
                    **columns("first_epoch_alone", alone),
                    "peak_memory_mib": of_subject["peak_memory_mib"].mean(),
                    "failed": int(of_subject["failure"].notna().sum()),
                    "times_left_out": left_out(of_subject) or None,
                    "why": why if why == DISTURBED else None,
                    "first_why": DISTURBED if runs.first_epoch_disturbed(condition) else None,
                    "measurements": " ".join(runs.files(baseline, condition)),
                }
            )
        return pd.DataFrame(rows)

    def _metrics(self, case: _Case) -> pd.DataFrame:
        task, runs = case.task, case.runs
        rows, baseline, first = [], None, []
        for subject, of_subject in showing.with_subject(runs.runs()).groupby("subject", sort=False):
            metric = of_subject.set_index("seed")["metric"].dropna() * _factor(task)
            if baseline is None:
                baseline, first = metric, list(of_subject["measurements"])
            mean, difference = mean_interval(metric.to_list(), *_range(task)), _difference(task, metric, baseline)
            loss = mean_interval(of_subject["loss"].dropna().to_list(), least=0)
            rows.append(
                {
                    "task": case.name,
                    "subject": subject,
                    "epochs_trained": task.epochs,
                    "metric_of": _label(task),
                    "runs": mean.processes,
                    **columns("final_metric", mean),
                    **columns("final_loss", loss),
                    **columns("difference", difference),
                    "verdict": _agreement(difference),
                    "measurements": " ".join(dict.fromkeys([*first, *of_subject["measurements"]])),
                }
            )
        return pd.DataFrame(rows)

    def _metric_texts(self, case: _Case) -> list[str]:
        task = case.task
        first, *others = self._metrics(case).to_dict("records")
        unit = "percentage points" if _factor(task) == 100 else first["metric_of"]
        return [
            f"{case.name}, {row['metric_of']} after {task.epochs} epochs: {row['subject']} "
            f"{_interval_of(row, 'final_metric')}, {first['subject']} {_interval_of(first, 'final_metric')}, "
            f"difference within seeds {_interval_of(row, 'difference')} {unit}: {row['verdict']}."
            for row in others
        ]

    def _learned_texts(self, case: _Case) -> list[str]:
        told = []
        for _, row in self._learned(case).iterrows():
            lost = f"; times left out: {row['times_left_out']}" if row["times_left_out"] else ""
            if row["failed"]:
                ended = f"{row['failed']} runs failed, {row['reached']} reached it"
            elif np.isfinite(row["seconds_to_threshold"]):
                ended = (
                    f"{row['epochs_to_threshold']:g} epochs, {tables.number(row['seconds_to_threshold'])} s (medians, "
                    f"without compilation; {row['reached']} runs{lost})"
                )
            elif np.isfinite(row["epochs_to_threshold"]):
                ended = f"{row['epochs_to_threshold']:g} epochs (median; {row['reached']} runs{lost})"
            else:
                ended = (
                    f"reached by {row['reached']}, so there is no median; best {_value(case.task, row['best_metric'])}"
                )
            told.append(f"{row['subject']} {ended}")
        return told

    def _epoch_texts(self, case: _Case) -> list[str]:
        first, *others = self._learned(case).to_dict("records")
        return [
            f"{case.name}, throughput of whole epochs of training: {row['subject']} relative to {first['subject']} "
            f"{'no ratio: the training was disturbed' if row['why'] else self._epoch_ratio_text(row)}."
            for row in others
            if math.isfinite(row["epoch_ratio"]) or row["why"]
        ]

    def _epoch_ratio_text(self, row: dict[str, Any]) -> str:
        """With its verdict, if there is an interval: one seed shows nothing of others."""
        ratio = Interval(*(row[f"epoch_ratio{end}"] for end in ("", "_low", "_high")), 0)
        verdict = f", {verdict_on(ratio, self.margin)}" if math.isfinite(ratio.low) else ""
        return f"{_ratio_of(row, 'epoch_ratio')}{verdict}"

    def _first_texts(self, case: _Case) -> list[str]:
        return [
            f"{row['subject']} {row['first_why']}"
            if row["first_why"]
            else f"{row['subject']} {_ratio_of(row, 'first_epoch')} with compilation, "
            f"{_ratio_of(row, 'first_epoch_alone')} without"
            for row in self._learned(case).to_dict("records")
        ]


def _of_task(parameters: Parameters, number: int) -> list[Condition]:
    """A condition for each subject, the baseline first."""
    task, place = parameters.tasks[number], f"tasks.{number}"
    made = []
    for at, subject in enumerate(parameters.subjects):
        choices = {
            "data": task.data,
            "device": parameters.device,
            "hyperparameters": task.hyperparameters,
            "batch_size": task.batch_size,
            "train_samples": task.train_samples,
            "learning_rate": task.learning_rate,
        }
        keys = {name: f"{place}.{name}" for name in choices if name != "device"}
        keys |= {"workload": f"{place}.workload", **dict.fromkeys(subject.choices, f"subjects.{at}")}
        made.append(p.condition(keys, workload=task.workload, **subject.choices, **choices))
    return made


def _survival(axes: figures.Axes, rows: pd.DataFrame, look: figures.Look, name: str) -> None:
    """A step down for each run that learned, a cross where one was given up."""
    seconds = rows["seconds_to_threshold"].where(rows["reached"], rows["seconds"]).to_numpy()
    if not len(seconds):
        return
    sample = stats.CensoredData.right_censored(seconds, ~rows["reached"].to_numpy(dtype=bool))
    found = stats.ecdf(sample).sf
    at = np.concatenate([[0.0], found.quantiles, [seconds.max()]])
    share = 100 * np.concatenate([[1.0], found.probabilities, found.probabilities[-1:]])
    axes.plot(at, share, drawstyle="steps-post", color=look.color, linestyle=look.line, label=name)
    given_up = seconds[~rows["reached"].to_numpy(dtype=bool)]
    axes.plot(given_up, 100 * found.evaluate(given_up), "x", color=look.color)


def _difference(task: Task, metric: pd.Series, baseline: pd.Series) -> Interval:
    """Of two series by seed, over the seeds that both have; none of the baseline from itself."""
    least, greatest = _range(task)
    values = [] if metric is baseline else (metric - baseline).dropna().to_list()
    return mean_interval(values, least - greatest, greatest - least)


def _agreement(difference: Interval) -> str:
    if difference.processes == 0:
        return tables.MISSING
    if not math.isfinite(difference.low):
        return "no interval: too few seeds"
    if not difference.excludes(0):
        return NO_DIFFERENCE
    return "higher" if difference.estimate > 0 else "lower"


def _interval_of(row: dict[str, Any], name: str) -> str:
    return tables.interval(row[name], row[f"{name}_low"], row[f"{name}_high"])


def _ratio_of(row: dict[str, Any], name: str) -> str:
    return tables.ratio(row[name], row[f"{name}_low"], row[f"{name}_high"])


def _factor(task: Task) -> float:
    return readable(workloads.load(task.workload).metric)[0]


def _range(task: Task) -> tuple[float, float]:
    """What the shown metric can be."""
    least, greatest = metrics.limits(workloads.load(task.workload))
    return least * _factor(task), greatest * _factor(task)


def _label(task: Task) -> str:
    workload = workloads.load(task.workload)
    name = workload.metric_name or PERCENT.get(workload.metric, workload.metric)
    return f"{name} (%)" if workload.metric in PERCENT else name


def _threshold(task: Task) -> str:
    return tables.MISSING if task.threshold is None else _value(task, task.threshold)


def _value(task: Task, value: float) -> str:
    unit = " %" if _factor(task) == 100 else ""
    return f"{tables.number(value * _factor(task))}{unit}"
