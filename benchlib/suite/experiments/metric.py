"""The metric after a number of epochs against a hyperparameter: table, figure and findings of training runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pandas as pd

from benchlib import data, metrics, tables
from benchlib.plotting import Picture, Points, figures
from benchlib.suite.experiments.result import Result
from benchlib.tables import Column, Table
from benchlib.workloads import Workload

PERCENT = {"accuracy": "test accuracy"}
"""Metrics between 0 and 1 that people read in percent, and what they are called then."""


def label(workload: Workload) -> str:
    """Of the metric of a workload, with its unit, for an axis."""
    name = workload.metric_name or PERCENT.get(workload.metric, workload.metric)
    return f"{name} (%)" if workload.metric in PERCENT else name


def value_text(workload: Workload, value: float) -> str:
    """A value of the metric of a workload, in the readable unit."""
    factor, unit = metrics.readable(workload.metric)
    return f"{tables.number(value * factor)}{' %' if unit == '%' else ''}"


@dataclass(frozen=True)
class Metric:
    """A workload's metric after some epochs, against the hyperparameter ``x``: a column of the frame."""

    name: str
    data: str
    x: str
    epochs: int
    warning: str  # what makes it another than that of the whole original data; empty: nothing

    @property
    def label(self) -> str:
        """With the data that it is of, and its unit, for an axis."""
        return f"{self._word} (%)" if self.name in PERCENT else self._word

    @property
    def factor(self) -> float:
        """What a value is multiplied by for people to read."""
        return metrics.readable(self.name)[0]

    @property
    def table(self) -> Table:
        """Mean, lowest and highest over the seeds for each subject and ``x``; ``failed`` runs have no metric."""
        own = Column(f"{self.name}_percent" if self.name in PERCENT else self.name, "estimate")
        columns = ("subject", self.x, own, "lowest", "highest", "runs", "failed")
        return Table(
            f"{self._heading}: mean, lowest and highest over seeds. {self.warning}".strip(), "final_metric", columns
        )

    @property
    def picture(self) -> Picture:
        """A point for each seed, a line through the medians."""
        words, ylabel = self.x.replace("_", " "), self._heading.replace(" after", "\nafter")
        return Picture(
            caption=f"{self._heading} against the {words}: a point for each seed, lines through the medians. "
            f"{self.warning}".strip(),
            panels=[Points(y="metric", x=self.x, ylabel=ylabel, from_zero=False)],
            height=2.4,
            width=figures.COLUMN,
        )

    def findings(self, result: Result) -> Iterator[str]:
        """Where each subject's metric is best, whether inside the grid, and what the seeds cannot tell apart."""
        for who, rows in result.rows("final_metric").groupby("subject", sort=False):
            yield f"{who}, after {self._epochs}: {self._best(rows.dropna(subset='estimate').sort_values(self.x))}"

    def say_threshold(self, value: float) -> str:
        """A threshold, given as the workload's metric, with its unit and no more digits than it has."""
        return f"{value * self.factor:g}" + " %" * (self.name in PERCENT)

    @property
    def _word(self) -> str:
        return f"{data.title(self.data)} {PERCENT.get(self.name, self.name)}"

    @property
    def _epochs(self) -> str:
        return f"{self.epochs} epoch{'s' * (self.epochs != 1)}"

    @property
    def _heading(self) -> str:
        return f"{self.label} after {self._epochs}"

    def _best(self, rows: pd.DataFrame) -> str:
        if rows.empty:
            return "no run got there."
        best, words = rows.loc[rows["estimate"].idxmax()], self.x.replace("_", " ")
        of_seeds = "one seed"
        if best["processes"] > 1:
            seeds = f"{self._say(best['lowest'])} to {self._say(best['highest'])}"
            of_seeds = f"mean of {best['processes']} seeds, {seeds}"
        value = f"{self._say(best['estimate'])} ({of_seeds})"
        if len(rows) == 1:
            return f"{self._word} {value} at {words} {best[self.x]:g}."
        inside = rows[self.x].min() < best[self.x] < rows[self.x].max()
        where = "inside the grid: lower at both ends" if inside else "an end of the grid: no inner maximum is shown"
        close = rows[(rows["highest"] >= best["lowest"]) & (rows[self.x] != best[self.x])][self.x]
        apart = f"; the seeds' ranges overlap with those at {', '.join(f'{x:g}' for x in close)}" if len(close) else ""
        return f"{self._word} is highest at {words} {best[self.x]:g}, {value}, {where}{apart}."

    def _say(self, value: float) -> str:
        return f"{value:.1f} %" if self.name in PERCENT else tables.number(value)
