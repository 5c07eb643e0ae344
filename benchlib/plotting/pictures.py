"""The figures that a notebook names: panels, each of a quantity of a tidy frame, or of training runs.

A :class:`Picture` has its panels once, or once for each value of ``each``. A panel shows rows; ``hue`` says which of
them look alike.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy import stats

from benchlib import metrics, workloads
from benchlib.plotting import figures, naming
from benchlib.plotting.figures import Legend
from benchlib.plotting.style import Look, hue_looks, name_once, subject_looks
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import DISTURBED
from benchlib.stats.training_runs import drop_disturbed
from benchlib.tables import Result, spelled, wide

Value = str | Callable[[pd.Series], Any]  # a column of the rows, or a function of a row
Text = str | Callable[[pd.DataFrame], str]  # the same for all rows, or made from them
Looks = Mapping[str, Look]


def values(rows: pd.DataFrame, of: Value) -> list[Any]:
    """For each row."""
    return list(rows[of]) if isinstance(of, str) else [of(row) for _, row in rows.iterrows()]


def text(rows: pd.DataFrame, of: Text) -> str:
    """For all rows."""
    return of if isinstance(of, str) else of(rows)


@dataclass(frozen=True, kw_only=True)
class Panel(ABC):
    """A drawing of some rows. ``where`` chooses among them, if not all are shown. A row whose ``hue`` is a list is
    drawn once for each of it.
    """

    hue: Value = "subject"
    where: Callable[[pd.DataFrame], pd.Series] | None = None
    margin: ClassVar[bool] = False  # shows the margin within which ratios are the same

    def rows(self, result: Result) -> pd.DataFrame:
        """Its rows of a result, with a column ``hue``, as :func:`name_once`."""
        rows = name_once(self.source(result))
        if self.where is not None and len(rows):
            rows = rows[self.where(rows).astype(bool)]
        return rows.assign(hue=values(rows, self.hue)).explode("hue", ignore_index=True) if len(rows) else rows

    @abstractmethod
    def source(self, result: Result) -> pd.DataFrame:
        """All rows of its kind."""

    @abstractmethod
    def draw(self, axes: Axes, rows: pd.DataFrame, looks: Looks, result: Result) -> None:
        """Draw some of its rows."""

    def legend(self, rows: pd.DataFrame, result: Result) -> list[Legend]:
        """Entries beside those of the looks."""
        return []

    def height(self, rows: pd.DataFrame) -> float | None:
        """Inches that these rows need; None: it is the same for all."""
        return None


@dataclass(frozen=True, kw_only=True)
class OfQuantity(Panel):
    """Rows of a quantity, with the other quantities of their conditions beside them (see ``tables.wide``)."""

    quantity: str

    def source(self, result: Result) -> pd.DataFrame:
        return wide(result.frame, self.quantity)

    def rows(self, result: Result) -> pd.DataFrame:
        """The rows, as of every panel; but none of a driver's quantity that the driver does not give."""
        rows = super().rows(result)
        return rows.iloc[:0] if self.quantity in tidy.ACCELERATOR and rows["estimate"].isna().all() else rows

    @property
    def margin(self) -> bool:
        return self.quantity.endswith("_ratio")

    def legend(self, rows: pd.DataFrame, result: Result) -> list[Legend]:
        return figures.ratio_legend(rows, result.margin, crosses=isinstance(self, Lines)) if self.margin else []


@dataclass(frozen=True, kw_only=True)
class Bars(OfQuantity):
    """The interval and the number of each row, from the top down: bars, or ratios around a line at 1."""

    xlabel: Text
    labels: Value
    target: Callable[[pd.Series], float] | None = None  # where a stroke stands; nan: nowhere

    def draw(self, axes: Axes, rows: pd.DataFrame, looks: Looks, result: Result) -> None:
        rows = rows if self.target is None else rows.assign(target=values(rows, self.target))
        labels, margin = values(rows, self.labels), result.margin if self.margin else None
        figures.row_panel(axes, rows, looks, labels, text(rows, self.xlabel), margin)

    def height(self, rows: pd.DataFrame) -> float:
        row = 0.34 if any(len(label) > figures.WIDEST for label in values(rows, self.labels)) else 0.24
        return 0.45 + row * max(len(rows), 2)  # one row needs more for its number


@dataclass(frozen=True, kw_only=True)
class Intervals(Bars):
    """Ratios of a baseline to itself (A/A): each is its own control."""

    def rows(self, result: Result) -> pd.DataFrame:
        rows = super().rows(result)
        return rows.assign(control_low=rows["low"], control_high=rows["high"]) if len(rows) else rows


@dataclass(frozen=True, kw_only=True)
class Lines(OfQuantity):
    """A quantity against a column ``x`` (a logarithmic axis), a line for each ``hue``."""

    x: str
    xlabel: str
    ylabel: Text
    log_y: bool = False
    round_ticks: bool = False  # not the values of ``x``

    def draw(self, axes: Axes, rows: pd.DataFrame, looks: Looks, result: Result) -> None:
        axes.set(xlabel=self.xlabel, ylabel=text(rows, self.ylabel))
        margin = result.margin if self.margin else None
        known = (rows if self.margin else rows.dropna(subset="estimate")).sort_values(self.x)
        beside = figures.side_by_side(looks, rows[self.x])
        figures.intervals(axes, known, looks, known[self.x], margin=margin, upright=True, joined=True, beside=beside)
        figures.value_axis(axes, rows[self.x], () if self.round_ticks else None)
        if margin is None:
            figures.y_axis(axes, rows["estimate"], self.log_y)
        else:
            axes.set_yscale("log")
            figures.ratio_axis(axes.yaxis, rows["estimate"], figures.interval_ends(rows, margin))


def relative_to(rows: pd.DataFrame, between: str = " ") -> str:
    """The label of an axis of ratios to the first row's baseline."""
    return f"throughput relative to{between}{rows['baseline_subject'].iloc[0]}"


def metric_of(rows: pd.DataFrame) -> str:
    """The label of an axis of the metric of the first row's workload."""
    return metrics.label(workloads.load(rows["workload"].iloc[0]))


def threshold_of(rows: pd.DataFrame) -> float | None:
    """The threshold of the first row's training, in the unit in which people read it."""
    factor, _ = metrics.readable_unit(workloads.load(rows["workload"].iloc[0]).metric)
    return None if pd.isna(rows["threshold"].iloc[0]) else factor * rows["threshold"].iloc[0]


@dataclass(frozen=True, kw_only=True)
class Ratios(Lines):
    """The throughput ratio against a column ``x``, with the A/A controls and the margin."""

    quantity: str = "throughput_ratio"
    ylabel: Text = lambda rows: relative_to(rows, "\n")


@dataclass(frozen=True, kw_only=True)
class Points(Panel):
    """A point for each training run against a column ``x``, and a line through the medians of each ``hue``.

    Where the column ``censored`` is true, ``y`` is how far the run got without reaching its goal: an open
    triangle. The line leaves out a median that is such a run. A ``metric`` is in its readable unit.
    """

    y: str
    x: str
    ylabel: str
    censored: str | None = None
    log_y: bool = False
    from_zero: bool = True

    def source(self, result: Result) -> pd.DataFrame:
        """The runs, with times of undisturbed ones only. A ``censored`` run did not reach the threshold;
        ``epochs_watched`` and ``seconds_watched`` are its length so far.
        """
        runs = result.runs
        if not len(runs):
            return runs
        runs = _rescale(runs[runs["epochs"] > 0])  # a run that failed in its first epoch was not watched at all
        quiet = runs.index.isin(drop_disturbed(runs).index)
        return runs.assign(
            censored=~runs["reached"],
            epochs_watched=runs["epochs_to_threshold"].where(runs["reached"], runs["epochs"]),
            seconds_watched=runs["seconds_to_threshold"].where(runs["reached"], runs["seconds"]).where(quiet),
            epoch_s=runs["epoch_s"].where(quiet),
        )

    def draw(self, axes: Axes, rows: pd.DataFrame, looks: Looks, result: Result) -> None:
        axes.set(xlabel=self.x.replace("_", " "), ylabel=self.ylabel)
        for name, shift in figures.side_by_side(looks, rows[self.x]).items():
            look, own = looks[name], rows[rows["hue"] == name].dropna(subset=[self.y])
            cut = own[self.censored] if self.censored else pd.Series(False, index=own.index)
            at, y = own[self.x] * shift, own[self.y]
            axes.plot(at[~cut], y[~cut], look.marker, color=look.color, alpha=0.8, markeredgewidth=0)
            axes.plot(at[cut], y[cut], "^", color=look.color, markerfacecolor="none", markersize=6, zorder=4)
            medians = y.mask(cut, math.inf).groupby(at).median()
            medians = medians[np.isfinite(medians)]
            axes.plot(medians.index, medians, color=look.color, linestyle=look.line)
        figures.value_axis(axes, rows[self.x])
        figures.y_axis(axes, rows[self.y], self.log_y, self.from_zero)

    def legend(self, rows: pd.DataFrame, result: Result) -> list[Legend]:
        return [figures.CENSORED] if self.censored and rows[self.censored].any() else []


@dataclass(frozen=True, kw_only=True)
class Curves(Panel):
    """``loss``, or the ``metric`` in its readable unit, by epoch. Lines are means over seeds, bands go from the lowest
    to the highest, as far as all of them went. A loss that is not finite ends the line, with a cross at the top.
    """

    y: str
    ylabel: Text
    threshold: Callable[[pd.DataFrame], float | None] | None = None  # of the rows shown

    def source(self, result: Result) -> pd.DataFrame:
        return _rescale(result.curves)

    def draw(self, axes: Axes, rows: pd.DataFrame, looks: Looks, result: Result) -> None:
        axes.set(xlabel="epoch", ylabel=text(rows, self.ylabel))
        first, last = rows["epoch"].min(), rows["epoch"].max()
        for name, look in looks.items():
            own = rows[rows["hue"] == name]
            lost = own.loc[~np.isfinite(own[self.y]), "epoch"].min()
            if pd.notna(lost):
                figures.draw_cross(axes, lost, 0.96, look)
                own = own[own["epoch"] < lost]
            seeds = own.groupby("epoch")[self.y].agg(["mean", "min", "max", "count"])
            seeds = seeds[seeds["count"] == seeds["count"].max()]
            line = {"linestyle": look.line, "marker": look.marker, "markevery": max(1, (last - first + 1) // 8)}
            axes.plot(seeds.index, seeds["mean"], color=look.color, markersize=3.5, **line)
            axes.fill_between(seeds.index, seeds["min"], seeds["max"], color=look.color, alpha=0.15, linewidth=0)
        axes.set_xlim(first - 0.4, last + 0.4)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        figures.y_axis(axes, rows[self.y][np.isfinite(rows[self.y])], self.y == "loss", from_zero=False)
        if self.threshold and (threshold := self.threshold(rows)) is not None:
            axes.axhline(threshold, linestyle=":", **figures.LINE)

    def legend(self, rows: pd.DataFrame, result: Result) -> list[Legend]:
        entries = [figures.DIVERGED] if self.y == "loss" and not np.isfinite(rows["loss"]).all() else []
        return [*entries, figures.THRESHOLD] if self.threshold and self.threshold(rows) is not None else entries


@dataclass(frozen=True, kw_only=True)
class Survival(Panel):
    """The share of training runs that have not reached the threshold yet, by training time. It steps down for each that
    has, and has a cross where one was given up.
    """

    def source(self, result: Result) -> pd.DataFrame:
        return result.runs[result.runs["epochs"] > 0]

    def draw(self, axes: Axes, rows: pd.DataFrame, looks: Looks, result: Result) -> None:
        axes.set(xlabel="training time (s)", ylabel="runs not there yet (%)", ylim=(-4, 104))
        for name, own in drop_disturbed(rows).groupby("hue", sort=False):
            look, reached = looks[name], own["reached"].to_numpy(dtype=bool)
            seconds = own["seconds_to_threshold"].where(reached, own["seconds"]).to_numpy()
            share = stats.ecdf(stats.CensoredData.right_censored(seconds, ~reached)).sf
            at = np.concatenate([[0.0], share.quantiles, [seconds.max()]])
            left = 100 * np.concatenate([[1.0], share.probabilities, share.probabilities[-1:]])
            axes.plot(at, left, drawstyle="steps-post", color=look.color, linestyle=look.line)
            axes.plot(seconds[~reached], 100 * share.evaluate(seconds[~reached]), "x", color=look.color)


@dataclass(frozen=True, kw_only=True)
class Costs(OfQuantity):
    """Seconds against steps in both modes, first steps included, and where they cross."""

    quantity: str = "pays_after_steps"
    hue: Value = "mode"  # each pair stands for both

    def rows(self, result: Result) -> pd.DataFrame:
        """Each pair twice: as eager and as graph mode."""
        every = super().rows(result)
        if not len(every):
            return every
        modes = {mode: (every[f"first_{mode}_s"], every[f"step_{mode}_ms"] / 1000) for mode in ("eager", "graph")}
        return pd.concat(every.assign(hue=mode, first=first, step_s=step) for mode, (first, step) in modes.items())

    def draw(self, axes: Axes, rows: pd.DataFrame, looks: Looks, result: Result) -> None:
        paid = rows.iloc[0]
        if paid["why"] == DISTURBED:
            axes.text(0.5, 0.5, "disturbed", transform=axes.transAxes, ha="center", va="center")
            return
        steps = np.geomspace(1, 1000.0 if pd.isna(paid["estimate"]) else max(10 * paid["estimate"], 100.0), 60)
        for _, row in rows.iterrows():
            look, seconds = looks[row["hue"]], row["first"] + (steps - 1) * row["step_s"]
            axes.plot(steps, seconds, color=look.color, linestyle=look.line, marker=look.marker, markevery=20)
        if math.isfinite(paid["low"]):
            axes.axvspan(paid["low"], paid["high"], color=figures.GREY, alpha=0.35, linewidth=0, zorder=0)
        axes.set(xscale="log", yscale="log", xlabel="steps", ylabel="time (s)")
        for axis in (axes.xaxis, axes.yaxis):
            figures.plain_log_axis(axis)


@dataclass(frozen=True, kw_only=True)
class Differences(Panel):
    """The differences of certified models from the reference: a stroke for each quantity, the farthest named."""

    def source(self, result: Result) -> pd.DataFrame:
        conditions = {one.condition: one for one in result.certificates.values()}
        rows = [
            {
                **{name: getattr(condition, name) for name in tidy.SUBJECT},
                "subject": subject,
                "model": f"{condition.workload}, {subject}",
                "quantity": conditions[condition].checks[place].name,
                "share": share,
            }
            for condition, subject in naming.subjects(conditions).items()
            for place, share in enumerate(figures.shares(conditions[condition].table()))
        ]
        return pd.DataFrame(rows)

    def draw(self, axes: Axes, rows: pd.DataFrame, looks: Looks, result: Result) -> None:
        xlabel = "largest relative difference / tolerance"
        figures.dot_panel(axes, rows, looks, "share", xlabel, "model", "quantity")

    def legend(self, rows: pd.DataFrame, result: Result) -> list[Legend]:
        return [figures.COMPARED, figures.FARTHEST]

    def height(self, rows: pd.DataFrame) -> float:
        count = rows["model"].nunique()
        return 0.6 + min(0.2 * count, max(6.2, 0.13 * count))  # all fit on a page


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure of a notebook. Beside the band of a margin its caption explains the band."""

    caption: Text  # from all rows that it shows
    panels: Sequence[Panel]
    each: Value | None = None  # the panels again for each of its values
    columns: int | None = None  # at most; None: the panels of each beside each other
    height: float = 1.9  # inches of a panel whose rows do not say it
    width: float = figures.PAGE
    looks: Callable[[pd.DataFrame], dict[str, Look]] | None = None  # by hue; None: of subjects, or in their order

    @figures.styled
    def draw(self, result: Result) -> tuple[str, Figure] | None:
        """The caption and the figure; None where there is nothing to show."""
        shown = self._shown_panels(result)
        if not shown:
            return None
        every = pd.concat([rows for _, rows in shown])
        of_subjects = all(panel.hue == "subject" for panel in self.panels)
        cells, looks = self._cells(shown), (self.looks or (subject_looks if of_subjects else hue_looks))(every)
        columns = min(self.columns or len(shown), len(cells))
        height = max(panel.height(rows) or self.height for panel, rows, _ in cells)
        figure, axes = figures.panels(math.ceil(len(cells) / columns), columns, height, self.width)
        legend: dict[str, Any] = {}
        said, before = "", ("", list[Any]())
        for number, (place, (panel, rows, title)) in enumerate(zip(axes, cells, strict=False)):
            panel.draw(place, rows, {name: look for name, look in looks.items() if name in set(rows["hue"])}, result)
            legend |= panel.legend(rows, result)
            place.set_title(title)
            ylabel, names = here = place.get_ylabel(), figures.row_names(place)
            if number % columns and ylabel == before[0]:
                place.set_ylabel("")
            if number % columns and names and names == before[1]:
                place.set_yticklabels([""] * len(names))
            said, before = " ".join([said, title, *names]), here
        for place in axes[len(cells) :]:
            place.remove()
        caption = text(every, self.caption)
        if any(panel.margin for panel, _ in shown):
            caption = f"{caption} {figures.margin_text(result.margin)}"
        unnamed = {} if all(spelled(str(hue)) in spelled(said) for hue in looks) else looks
        return caption, figures.finish(figure, unnamed, list(legend.items()))

    def shown_rows(self, result: Result) -> pd.DataFrame:
        """The rows of all its panels, each once, with all columns that have a value."""
        every = pd.concat([rows for _, rows in self._shown_panels(result)], ignore_index=True)
        return every.drop(columns="hue").drop_duplicates().dropna(axis="columns", how="all")

    def _shown_panels(self, result: Result) -> list[tuple[Panel, pd.DataFrame]]:
        """The panels that have anything to show, with their rows."""
        shown = [(panel, panel.rows(result)) for panel in self.panels]
        return [(panel, rows) for panel, rows in shown if len(rows)]

    def _cells(self, shown: list[tuple[Panel, pd.DataFrame]]) -> list[tuple[Panel, pd.DataFrame, str]]:
        """Each panel with its rows and its title."""
        if self.each is None:
            return [(panel, rows, "") for panel, rows in shown]
        split: list[tuple[Panel, dict[Any, pd.DataFrame]]] = []
        for panel, rows in shown:
            names = values(rows, self.each)
            split.append((panel, {one: rows[[name == one for name in names]] for one in dict.fromkeys(names)}))
        cells = []
        for name in dict.fromkeys(name for _, parts in split for name in parts):
            of_each = [(panel, parts[name]) for panel, parts in split if name in parts]
            cells += [(panel, rows, "" if number else str(name)) for number, (panel, rows) in enumerate(of_each)]
        return cells


def _rescale(rows: pd.DataFrame) -> pd.DataFrame:
    """Training runs or their epochs, with the metric in the unit in which people read it."""
    if not len(rows):
        return rows
    factors = {name: metrics.readable_unit(workloads.load(name).metric)[0] for name in set(rows["workload"])}
    return rows.assign(metric=rows["metric"] * rows["workload"].map(factors))
