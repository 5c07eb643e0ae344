"""The experiment ``learning_rate``: the metric after some epochs, and time to the threshold, by learning rate."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from pydantic import model_validator

from benchlib import workloads
from benchlib.analysis import frame as tidy
from benchlib.analysis.training import TrainingRuns, left_out, median_to_threshold, undisturbed
from benchlib.condition import Condition, DeviceName, WorkloadName
from benchlib.lab import Lab
from benchlib.suite import figures, showing, tables
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.metric import Metric
from benchlib.suite.experiments.result import Result, data_note, different_models


class Subject(p.Subject):
    """What is trained, and with which learning rates."""

    learning_rates: p.Grid[p.Rate]


class Parameters(p.Parameters):
    """Training runs of each subject with each of its learning rates from each seed."""

    workload: WorkloadName
    data: str
    device: DeviceName
    batch_size: p.BatchSize
    hyperparameters: dict[str, Any]
    train_samples: p.Samples | None  # None: all
    subjects: p.Grid[Subject]
    seeds: p.Grid[p.Seed]
    epochs: p.Epochs  # after which the metric is compared
    most_epochs: p.Epochs  # a run that has not reached the threshold by then ends
    threshold: float

    @model_validator(mode="after")
    def _fits(self) -> Self:
        p.check_count("subjects", sum(len(subject.learning_rates) for subject in self.subjects))
        p.check_metric(self.workload, self.threshold)
        if self.most_epochs < self.epochs:
            raise ValueError(
                f"most_epochs: {self.most_epochs}: is less than epochs ({self.epochs}); give at least that"
            )
        conditions(self)
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be measured."""
    made = []
    for number, subject in enumerate(parameters.subjects):
        keys = dict.fromkeys(subject.choices, f"subjects.{number}")
        made += [
            p.condition(
                {**keys, "learning_rate": f"subjects.{number}.learning_rates"},
                workload=parameters.workload,
                **subject.choices,
                data=parameters.data,
                device=parameters.device,
                hyperparameters=parameters.hyperparameters,
                batch_size=parameters.batch_size,
                train_samples=parameters.train_samples,
                learning_rate=rate,
            )
            for rate in subject.learning_rates
        ]
    return made


def measure(parameters: Parameters, lab: Lab) -> LearningRate:
    """Train, or take from disk what was trained before."""
    made = conditions(parameters)
    runs = lab.train(
        made,
        seeds=parameters.seeds,
        epochs=parameters.epochs,
        threshold=parameters.threshold,
        most_epochs=parameters.most_epochs,
    )
    note = data_note(made[0], lab.inputs)
    return LearningRate(parameters, lab, runs, note)


class LearningRate(Result):
    """The runs: how good after some epochs, how long to the threshold, how long an epoch."""

    notebook = "learning_rate"
    in_report = ("thresholds", "metric")
    title = "Learning rate"

    def __init__(self, parameters: Parameters, lab: Lab, runs: TrainingRuns, note: str) -> None:
        super().__init__(lab.folder, [runs], [note])
        self.runs = runs
        metric = workloads.load(parameters.workload).metric
        self.metric = Metric(metric, parameters.data, "learning_rate", parameters.epochs, note)
        self.threshold = self.metric.say_threshold(parameters.threshold)
        self.threshold_value = parameters.threshold * self.metric.factor

    def own_rows(self) -> list[dict[str, Any]]:
        """How many times as fast as with a subject's lowest learning rate an epoch is trained with its others."""
        by_subject: dict[str, list[Condition]] = {}
        for condition in sorted(self.runs.conditions, key=lambda condition: condition.learning_rate):
            by_subject.setdefault(condition.subject, []).append(condition)
        made = []
        for lowest, *others in by_subject.values():
            for condition in others:
                files = [m.file for one in (lowest, condition) for m in self.runs.measurements if m.condition == one]
                row = tidy.as_fast(self.runs, "epoch_ratio", condition, lowest)
                made.append({**row, "task": f"{condition.workload} on {condition.data}", "files": " ".join(files)})
        return made

    def findings(self) -> list[str]:
        """Where the metric is best, which runs reached the threshold and how fast, and how epoch times differ."""
        by_subject = list(showing.with_subject(self.runs.runs()).groupby("subject", sort=False))
        found = self.metric.findings(self.frame)
        found += [self._threshold_sentence(who, rows) for who, rows in by_subject]
        found += [_epoch_sentence(who, rows) for who, rows in by_subject]
        return found + different_models(self.runs)

    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """``thresholds``, ``metric`` and ``runs``."""
        return {
            "thresholds": (
                f"To {self.threshold}: medians over seeds, with runs that did not reach it as the longest.",
                self._thresholds(),
            ),
            "metric": (self.metric.caption, self.metric.table(self.frame)),
            "runs": ("The training runs.", showing.with_subject(self.runs.runs())),
        }

    @figures.styled
    def draw(self) -> dict[str, tuple[str, Figure]]:
        """``rates`` and ``curves``; nothing if every run failed in its first epoch."""
        if not self.runs.runs()["epochs"].any():
            return {}
        return {"rates": self._draw_rates(), "curves": self._draw_curves()}

    def _draw_rates(self) -> tuple[str, Figure]:
        frame = self._runs_with_bounds()
        looks = figures.looks(frame["subject"])
        figure, panels = figures.panels(2, 2, height=2.1)
        shown = [
            (self.metric.column, f"{self.metric.label}\nafter {self.metric.epochs} epochs", None),
            ("epochs_watched", f"epochs to {self.threshold}", "censored"),
            ("seconds_watched", f"training time to {self.threshold} (s)", "censored"),
            ("epoch_s", "time of an epoch (s)", None),
        ]
        x = ("learning_rate", "learning rate")
        for axes, (name, label, censored) in zip(panels, shown, strict=True):
            log_y, from_zero = name == "seconds_watched", name != self.metric.column
            figures.run_panel(axes, frame, looks, x[0], name, x[1], label, censored, log_y, from_zero)
        caption = f"Training by learning rate: a point for each seed, lines through the medians. {self.metric.note}"
        caption += f" Times left out: {lost}." if (lost := left_out(frame)) else ""
        extra = [figures.CENSORED] if frame["censored"].any() else []
        return caption, figures.finish(figure, looks, extra)

    def _draw_curves(self) -> tuple[str, Figure]:
        frame = showing.with_subject(self.runs.curves())
        frame = frame.assign(
            rate=[_rate(rate) for rate in frame["learning_rate"]],
            **{self.metric.column: frame["metric"] * self.metric.factor},
        )
        subjects = list(dict.fromkeys(frame["subject"]))
        looks = figures.ordered_looks(_rate(rate) for rate in sorted(frame["learning_rate"].unique()))
        figure, panels = figures.panels(len(subjects), 2, height=2.1)
        for row, subject in enumerate(subjects):
            rows = frame[frame["subject"] == subject]
            loss, metric = panels[2 * row : 2 * row + 2]
            own = {name: look for name, look in looks.items() if name in set(rows["rate"])}
            figures.curve_panel(loss, rows, own, "loss", "epoch", "training loss", "rate", log_y=True)
            figures.curve_panel(metric, rows, own, self.metric.column, "epoch", self.metric.label, "rate")
            metric.axhline(self.threshold_value, color="0.2", linewidth=0.8, linestyle=":")
            loss.set_title(subject)
        extra = [figures.DIVERGED] if not np.isfinite(frame["loss"]).all() else []
        extra = [(f"threshold, {self.threshold}", figures.THRESHOLD), *extra]
        caption = (
            "Training loss and metric by epoch: lines are means over seeds, bands go from the lowest to the highest "
            f"seed. {self.metric.note}"
        )
        return caption, figures.finish(figure, looks, extra)

    def _runs_with_bounds(self) -> pd.DataFrame:
        """The runs; one that did not reach the threshold is ``censored``, what it took so far is in ``*_watched``. One
        that was disturbed has no times.
        """
        frame = self.metric.values(self.runs)
        frame = frame[frame["epochs"] > 0]  # a run that failed in its first epoch was not watched at all
        quiet = frame.index.isin(undisturbed(frame).index)
        return frame.assign(
            censored=~frame["reached"],
            epochs_watched=frame["epochs_to_threshold"].where(frame["reached"], frame["epochs"]),
            seconds_watched=frame["seconds_to_threshold"].where(frame["reached"], frame["seconds"]).where(quiet),
            epoch_s=frame["epoch_s"].where(quiet),
        )

    def _thresholds(self) -> pd.DataFrame:
        rows = []
        for (subject, rate), of_rate in showing.with_subject(self.runs.runs()).groupby(
            ["subject", "learning_rate"], sort=False
        ):
            reached, timed = int(of_rate["reached"].sum()), undisturbed(of_rate)
            rows.append(
                {
                    "subject": subject,
                    "learning_rate": rate,
                    "reached": f"{reached} of {len(of_rate)}",
                    "epochs_to_threshold": median_to_threshold(of_rate, "epochs_to_threshold"),
                    "seconds_to_threshold": median_to_threshold(timed, "seconds_to_threshold"),
                    "epochs_longest": int(of_rate["epochs"].max()),
                    "epoch_s": timed["epoch_s"].mean(),
                    "times_left_out": left_out(of_rate) or None,
                    "measurements": tables.together(of_rate["measurements"]),
                }
            )
        return pd.DataFrame(rows)

    def _threshold_sentence(self, who: str, rows: pd.DataFrame) -> str:
        each = "; ".join(f"{rate:g}: {_threshold_text(of_rate)}" for rate, of_rate in rows.groupby("learning_rate"))
        return f"{who}, to {self.threshold} (median over seeds, without compilation), by learning rate: {each}."


def _threshold_text(rows: pd.DataFrame) -> str:
    failed = int(rows["failure"].notna().sum())
    if failed == len(rows):
        return "every run failed"
    note = f", {failed} failed" if failed else ""
    note += f", times left out: {lost}" if (lost := left_out(rows)) else ""
    epochs = median_to_threshold(rows, "epochs_to_threshold")
    seconds = median_to_threshold(undisturbed(rows), "seconds_to_threshold")
    reached = f"{int(rows['reached'].sum())} of {len(rows)} runs{note}"
    if np.isfinite(seconds):
        return f"{epochs:g} epochs, {tables.number(seconds)} s ({reached})"
    if np.isfinite(epochs):
        return f"{epochs:g} epochs ({reached})"
    return f"not reached in {int(rows['epochs'].max())} epochs ({reached} did)"


def _epoch_sentence(who: str, rows: pd.DataFrame) -> str:
    noisy = " that was not disturbed" if len(undisturbed(rows)) < len(rows) else ""
    rows = undisturbed(rows)
    means = rows.groupby("learning_rate")["epoch_s"].mean().dropna()
    if not len(means):
        return f"{who}: no epoch was timed{noisy}."
    if len(means) < 2:
        return f"{who}: an epoch takes {tables.number(means.mean())} s."
    fast, slow = means.min(), means.max()
    spread = rows.groupby("learning_rate")["epoch_s"].agg(lambda seconds: seconds.max() / seconds.min()).max()
    same = f"; runs with the same rate are up to {100 * (spread - 1):.0f} % apart" if spread > 1 else ""
    return (
        f"{who}: an epoch takes {tables.number(fast)} to {tables.number(slow)} s over the learning rates, "
        f"{100 * (slow / fast - 1):.0f} % apart{same}."
    )


def _rate(rate: float) -> str:
    return f"learning rate {rate:g}"
