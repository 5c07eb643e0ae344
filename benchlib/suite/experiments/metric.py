"""The metric after a number of epochs against a hyperparameter: table, figure and findings of training runs."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd
from matplotlib.figure import Figure

from benchlib import data, metrics
from benchlib.analysis.training import TrainingRuns
from benchlib.suite import figures, showing, tables

PERCENT = {"accuracy": "test accuracy"}
"""Metrics between 0 and 1 that people read in percent, and what they are called then."""


@dataclass(frozen=True)
class Metric:
    """A workload's metric after some epochs, against the hyperparameter ``x``: a column of the runs."""

    name: str
    data: str
    x: str
    epochs: int
    note: str  # what a reader has to know about the data

    @property
    def factor(self) -> float:
        """What a value is multiplied by for people to read."""
        return metrics.readable(self.name)[0]

    @property
    def label(self) -> str:
        """With the data that it is of, and its unit, for an axis."""
        return f"{self._word} (%)" if self.name in PERCENT else self._word

    @property
    def column(self) -> str:
        """In a table."""
        return f"{self.name}_percent" if self.name in PERCENT else self.name

    @property
    def heading(self) -> str:
        """With the number of epochs."""
        return f"{self.label} after {self.epochs} epoch{'s' * (self.epochs != 1)}"

    @property
    def caption(self) -> str:
        """Of the table."""
        return f"{self.heading}: mean, lowest and highest over seeds. {self.note}"

    @property
    def _word(self) -> str:
        return f"{data.title(self.data)} {PERCENT.get(self.name, self.name)}"

    def say(self, value: float) -> str:
        """A value with its unit."""
        return f"{value:.1f} %" if self.name in PERCENT else tables.number(value)

    def say_threshold(self, value: float) -> str:
        """A threshold, given as the workload's metric, with its unit and no more digits than it has."""
        return f"{value * self.factor:g}" + " %" * (self.name in PERCENT)

    def values(self, runs: TrainingRuns) -> pd.DataFrame:
        """A row per run, its metric in the readable unit."""
        frame = showing.with_subject(runs.runs())
        return frame.assign(**{self.column: frame["metric"] * self.factor})

    def table(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Mean, lowest and highest over the seeds for each subject and ``x``; ``failed`` runs have no metric."""
        rows = frame[frame["quantity"] == "final_metric"]
        columns = {
            **{name: rows[name] for name in ("subject", self.x)},
            self.column: rows["estimate"],
            **{name: rows[name] for name in ("lowest", "highest")},
            "runs": rows["processes"] + rows["failed"],
            "failed": rows["failed"],
            tables.FILES: rows["files"],
        }
        return pd.DataFrame(columns).reset_index(drop=True)

    @figures.styled
    def draw(self, runs: TrainingRuns) -> tuple[str, Figure]:
        """A caption, and the figure: a point for each seed, a line through the medians."""
        frame = self.values(runs)
        looks = figures.looks(frame["subject"])
        figure, (axes,) = figures.panels(1, 1, height=2.4, width=figures.COLUMN)
        words, label = self.x.replace("_", " "), self.heading.replace(" after", "\nafter")
        figures.run_panel(axes, frame, looks, self.x, self.column, words, label, from_zero=False)
        caption = f"{self.heading} against the {words}: a point for each seed, lines through the medians. {self.note}"
        return caption, figures.finish(figure, looks)

    def findings(self, frame: pd.DataFrame) -> list[str]:
        """Where each subject's metric is best, whether inside the grid, and what the seeds cannot tell apart."""
        return [self._finding(who, rows) for who, rows in self.table(frame).groupby("subject", sort=False)]

    def _finding(self, who: str, rows: pd.DataFrame) -> str:
        start = f"{who}, after {self.epochs} epoch{'s' * (self.epochs != 1)}: "
        words = self.x.replace("_", " ")
        rows = rows.dropna(subset=[self.column]).sort_values(self.x)
        if rows.empty:
            return f"{start}no run got there."
        best = rows.loc[rows[self.column].idxmax()]
        seeds = best["runs"] - best["failed"]
        value = f"{self.say(best[self.column])} ({_of_seeds(seeds)}"
        value += f", {self.say(best['lowest'])} to {self.say(best['highest'])})" if seeds > 1 else ")"
        if len(rows) == 1:
            return f"{start}{self._word} {value} at {words} {best[self.x]:g}."
        inside = rows[self.x].min() < best[self.x] < rows[self.x].max()
        where = "inside the grid: lower at both ends" if inside else "an end of the grid: no inner maximum is shown"
        close = rows[(rows["highest"] >= best["lowest"]) & (rows[self.x] != best[self.x])][self.x]
        apart = f"; the seeds' ranges overlap with those at {', '.join(f'{x:g}' for x in close)}" if len(close) else ""
        return f"{start}{self._word} is highest at {words} {best[self.x]:g}, {value}, {where}{apart}."


def _of_seeds(seeds: int) -> str:
    return "one seed" if seeds == 1 else f"mean of {seeds} seeds"
