"""The style of all figures, and the panels they are made of.

Made for print: a figure is one column (3.5 in) or one page (7.2 in) wide with text of 8 points. Colour-blind readers
can tell the colours apart, and every colour comes with a marker and a line style of its own. Intervals are drawn
wherever they are known.
"""

from __future__ import annotations

import functools
import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import matplotlib as mpl
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullFormatter, NullLocator
from scipy import stats

from benchlib import tables
from benchlib.plotting.style import REACH, Look, looks
from benchlib.stats.comparison import NO_DIFFERENCE, same_within

COLUMN, PAGE = 3.5, tables.PAGE
"""Widths of a figure in inches: one column, and the page."""

KINDS = ("png", "svg", "pdf")
"""Of the files of a figure: for a page (300 dpi), for the report, for a paper."""

FONT_SIZE = 8  # points, the least that journals take

GREY = "0.45"
NEAREST = 1e-4
"""Of what is allowed: less of it is drawn as so much, or a difference of rounding would take half of the panel."""

PALE = "#e3eef7"
"""Of the band within the margin of 1, in which a ratio is the same."""

STYLE = {
    **sns.axes_style("ticks"),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "axes.grid.which": "major",
    "axes.axisbelow": True,
    "axes.linewidth": 0.6,
    "axes.labelsize": FONT_SIZE,
    "axes.titlesize": FONT_SIZE,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same figure on every machine
    "font.size": FONT_SIZE,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "legend.fontsize": FONT_SIZE,
    "legend.frameon": False,
    "lines.linewidth": 1.1,
    "lines.markersize": 4.5,
    "pdf.fonttype": 42,  # text stays text
    "svg.hashsalt": "benchlib",  # the same figure gives the same file
    "xtick.labelsize": FONT_SIZE,
    "ytick.labelsize": FONT_SIZE,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.size": 2,
    "ytick.minor.size": 2,
}

Draw = TypeVar("Draw", bound=Callable)


Legend = tuple[str, Line2D | Patch]
"""An entry: its text, and what stands before it."""


def styled(draw: Draw) -> Draw:
    """Run a drawing function in the style of all figures."""

    @functools.wraps(draw)
    def inner(*args: object, **kwargs: object) -> object:
        with mpl.rc_context():
            mpl.rcdefaults()  # not from what a matplotlibrc of the user's says
            mpl.rcParams.update(STYLE)
            return draw(*args, **kwargs)

    return inner


def ordered_looks(names: Iterable[str]) -> dict[str, Look]:
    """Looks for names that have an order (learning rates): colours go from dark to light with it."""
    names = list(dict.fromkeys(names))
    shades = mpl.colormaps["viridis"](np.linspace(0.0, 0.85, max(len(names), 2)))
    return {name: replace(look, color=tuple(shades[i])) for i, (name, look) in enumerate(looks(names).items())}


@styled
def panels(rows: int, columns: int, height: float, width: float = PAGE) -> tuple[Figure, list[Axes]]:
    """A figure of ``rows`` x ``columns`` panels, each row ``height`` inches high; the panels row by row."""
    figure = Figure(figsize=(width, rows * height + 0.35), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06, wspace=0.04, hspace=0.04)
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


@styled
def line_panel(
    axes: Axes,
    rows: pd.DataFrame,
    series: Mapping[str, Look],
    x: str,
    xlabel: str,
    ylabel: str,
    log_y: bool = False,
    ticks: Iterable[float] | None = None,
) -> None:
    """The estimates of rows against ``x`` (a logarithmic axis), a line for each ``hue``, with intervals where they are
    known. Ticks of ``x`` are its values if None, round numbers if empty.
    """
    axes.set(xlabel=xlabel, ylabel=ylabel)
    for name, look, shift in _side_by_side(series, rows[x]):
        of_hue = rows[rows["hue"] == name].dropna(subset="estimate").sort_values(x)
        _interval_line(axes, of_hue[x] * shift, of_hue, look)
    value_axis(axes, rows[x], ticks)
    _y_axis(axes, rows["estimate"], log_y)


@styled
def ratio_panel(
    axes: Axes,
    rows: pd.DataFrame,
    series: Mapping[str, Look],
    x: str,
    xlabel: str,
    ylabel: str,
    ticks: Iterable[float] | None = None,
    *,
    margin: float,
) -> None:
    """As :func:`line_panel`, of ratios: with the line at 1, in a pale band what is within the ``margin`` of it, and in
    grey the interval of each comparison's A/A control. A row without a ratio is a cross at the bottom.
    """
    axes.set(xlabel=xlabel, ylabel=ylabel, yscale="log")
    axes.axhline(1, color="0.2", linewidth=0.8, zorder=1.5)
    axes.axhspan(1 - margin, 1 + margin, color=PALE, linewidth=0, zorder=0)
    controls = rows.drop_duplicates([x, "control_low", "control_high"])  # equal work is not the same comparison
    restless = _excludes_1(controls)
    for of, line in ((controls[~restless], "-"), (controls[restless], STRIPES)):
        ends = of["control_low"], of["control_high"]
        axes.vlines(of[x], *ends, color=GREY, alpha=0.35, linewidth=7, linestyles=[line], zorder=1)
    for name, look, shift in _side_by_side(series, rows[x]):
        of_hue = rows[rows["hue"] == name].sort_values(x)
        there = of_hue["estimate"].notna()
        _interval_line(axes, of_hue.loc[there, x] * shift, of_hue[there], look)
        for missing in of_hue.loc[~there, x] * shift:
            _cross(axes, missing, 0.04, look)
    value_axis(axes, rows[x], ticks)
    ends = pd.concat([rows[name] for name in ("low", "high", "control_low", "control_high")])
    ratio_axis(axes.yaxis, rows["estimate"], [*ends, 1 - margin, 1 + margin])


@styled
def bar_panel(
    axes: Axes,
    rows: pd.DataFrame,
    series: Mapping[str, Look],
    xlabel: str,
    labels: Sequence[str],
    margin: float | None = None,
) -> None:
    """A bar for each row from the top down, with its interval and its number; ``labels`` name the rows. A row without
    a number says ``why``. With a ``margin`` they are ratios: they have the interval of their comparison's A/A control
    behind them, and behind that a pale band of what is within the margin of 1, and their numbers at the right, where
    nothing lies below them. A stroke stands at a row's ``target``, if it has one.
    """
    _rows(axes, labels, xlabel)
    if margin is not None:
        axes.axvline(1, color="0.2", linewidth=0.8)
        axes.axvspan(1 - margin, 1 + margin, color=PALE, linewidth=0, zorder=-1)
        controls = zip(rows["control_low"], rows["control_high"], _excludes_1(rows), strict=True)
        for place, (*ends, restless) in enumerate(controls):
            fill = HATCHED if restless else FILLED
            axes.fill_betweenx([place - 0.5, place + 0.5], *ends, zorder=0, **fill)
    limit = 1.5 * (rows["estimate"].max() if rows["estimate"].notna().any() else 1)
    if rows["high"].notna().any():
        limit = min(max(limit, 1.5 * rows["high"].max()), 2 * limit)
    if "target" in rows:
        limit = np.nanmax([limit, 1.5 * rows["target"].max()])
    if margin is not None:  # the line at 1, with the margin and the A/A control around it, is to be seen
        limit = max(limit, 1.3 * min(np.nanmax([1 + margin, rows["control_high"].max()]), REACH))
    for place, (_, row) in enumerate(rows.iterrows()):
        value, low, high = row["estimate"], row["low"], row["high"]
        if pd.isna(value):
            why = tables.MISSING if pd.isna(row["why"]) else row["why"]
            axes.annotate(why, (0, place), xytext=(4, 0), textcoords="offset points", va="center")
            continue
        look, end = series[row["hue"]], value
        color = GREY if _is_open(row) else look.color
        axes.barh(place, value, height=0.6, color=color, alpha=0.35, linewidth=0)
        if pd.notna(high):
            end = min(high, limit / 1.5)
            axes.errorbar(value, place, xerr=[[value - low], [high - value]], color=color, capsize=2)
        axes.plot(value, place, look.marker, color=color, markerfacecolor="white" if _is_open(row) else color)
        if pd.notna(target := row.get("target")):
            axes.plot([target, target], [place - 0.35, place + 0.35], color="0.2", linewidth=1)
        if margin is not None:
            at, side = {"xy": (1, place), "xycoords": axes.get_yaxis_transform(), "xytext": (-2, 0)}, "right"
        else:
            at, side = {"xy": (end, place), "xytext": (5, 0)}, "left"
        rounded = tables.interval if margin is None else tables.ratio  # as in tables
        number = rounded(value, low, high).partition(" ")[0]
        axes.annotate(number, **at, textcoords="offset points", ha=side, va="center")
    axes.set_xlim(0, limit)
    axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))


@styled
def interval_panel(
    axes: Axes, rows: pd.DataFrame, series: Mapping[str, Look], xlabel: str, labels: Sequence[str]
) -> None:
    """A point with its interval for each row from the top down, around a line at 1; ``labels`` name the rows. A row
    without a number says ``why``.
    """
    _rows(axes, labels, xlabel)
    axes.axvline(1, color="0.2", linewidth=0.8)
    known = rows.dropna(subset="estimate")
    reach = 1.1 * max([0.01, *(abs(known[name] - 1).max() for name in ("estimate", "low", "high") if len(known))])
    axes.set_xlim(1 - min(reach, 1), 1 + min(reach, 1))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    for place, (_, row) in enumerate(rows.iterrows()):
        look = series[row["hue"]]
        if pd.isna(row["estimate"]):
            why = tables.MISSING if pd.isna(row["why"]) else row["why"]
            axes.annotate(why, (1, place), xytext=(4, 0), textcoords="offset points", va="center")
            continue
        axes.plot([row["low"], row["high"]], [place, place], color=look.color, linestyle=look.line)
        axes.plot(row["estimate"], place, look.marker, color=look.color)
        if not row["low"] <= 1 <= row["high"]:
            axes.axhspan(place - 0.4, place + 0.4, zorder=0, **HATCHED)


@styled
def dot_panel(
    axes: Axes, frame: pd.DataFrame, series: Mapping[str, Look], x: str, xlabel: str, rows: str, column: str
) -> None:
    """Points over a logarithmic axis, in a row for each value of ``rows`` from the top down, looking as ``column``
    says. What is 0, and what is infinite, is drawn at the edges.
    """
    names = list(dict.fromkeys(frame[rows]))
    _rows(axes, names, xlabel)
    axes.set_xscale("log")
    finite = frame.loc[np.isfinite(frame[x]) & (frame[x] > 0), x]
    least, most = min([0.1, *finite]) / 2, max([2.0, *finite]) * 2
    axes.set_xlim(least, most)
    for _, row in frame.iterrows():
        look, at = series[row[column]], min(max(row[x], least), most)
        axes.plot(at, names.index(row[rows]), look.marker, color=look.color, clip_on=False)


@styled
def farthest_panel(
    axes: Axes, frame: pd.DataFrame, series: Mapping[str, Look], x: str, xlabel: str, rows: str, named: str
) -> None:
    """As :func:`dot_panel`, of many points: all are grey strokes but the one farthest to the right in each row, which
    looks as its ``hue`` says; beside the panel stand its ``named`` and how far it is. What is less than ``NEAREST`` is
    drawn at the left edge.
    """
    names = list(dict.fromkeys(frame[rows]))
    _rows(axes, names, xlabel)
    axes.set_xscale("log")
    frame = frame.assign(**{x: frame[x].fillna(math.inf)})  # what is no number is not near
    most = max([2.0, *frame.loc[np.isfinite(frame[x]), x]]) * 2
    axes.set_xlim(NEAREST, most)
    for place, name in enumerate(names):
        of_row = frame[frame[rows] == name].reset_index()
        at = of_row[x].clip(NEAREST, most)
        farthest = of_row.loc[of_row[x].idxmax()]
        axes.plot(at, [place] * len(at), "|", color=GREY, markersize=6, markeredgewidth=0.8, clip_on=False)
        look = series[farthest["hue"]]
        axes.plot(at.max(), place, look.marker, color=look.color, zorder=4, clip_on=False)
        axes.annotate(
            f"{tables.number(farthest[x], 2)} {farthest[named]}",
            (1, place),
            xycoords=axes.get_yaxis_transform(),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            annotation_clip=False,
        )


@styled
def run_panel(
    axes: Axes,
    frame: pd.DataFrame,
    series: Mapping[str, Look],
    x: str,
    y: str,
    xlabel: str,
    ylabel: str,
    censored: str | None = None,
    log_y: bool = False,
    from_zero: bool = True,
) -> None:
    """A point for each training run, and a line through the medians of each ``hue``.

    Where the column ``censored`` is true, ``y`` is how far the run got without reaching what was asked: an open
    triangle that points up. A median that is such a run is not known, and the line leaves it out.
    """
    axes.set(xlabel=xlabel, ylabel=ylabel)
    for name, look, shift in _side_by_side(series, frame[x]):
        rows = frame[frame["hue"] == name].dropna(subset=[y])
        open_ended = rows[censored] if censored else pd.Series(False, index=rows.index)
        done, cut = rows[~open_ended], rows[open_ended]
        axes.plot(done[x] * shift, done[y], look.marker, color=look.color, alpha=0.8, markeredgewidth=0)
        axes.plot(cut[x] * shift, cut[y], "^", color=look.color, markerfacecolor="none", markersize=6, zorder=4)
        medians = rows.assign(value=rows[y].mask(open_ended, math.inf)).groupby(x)["value"].median()
        medians = medians[np.isfinite(medians)]
        axes.plot(medians.index * shift, medians, color=look.color, linestyle=look.line)
    value_axis(axes, frame[x])
    _y_axis(axes, frame[y], log_y, from_zero)


@styled
def curve_panel(
    axes: Axes, frame: pd.DataFrame, series: Mapping[str, Look], y: str, ylabel: str, log_y: bool = False
) -> None:
    """``y`` against the epoch: a line for the mean over seeds of each ``hue``, a band from the lowest to the highest
    seed, as far as all of them went: the mean of those that go on is not comparable with that of all.

    An epoch in which a seed's value is not finite (a run that diverged) ends the line, with a cross at the top.
    """
    axes.set(xlabel="epoch", ylabel=ylabel)
    epochs = sorted(frame["epoch"].unique())
    for name, look in series.items():
        rows = frame[frame["hue"] == name]
        finite = np.isfinite(rows[y]).groupby(rows["epoch"]).all()
        lost = finite.index[~finite]
        if len(lost):
            _cross(axes, lost[0], 0.96, look)
            rows = rows[rows["epoch"] < lost[0]]
        seeds = rows.groupby("epoch")[y].agg(["mean", "min", "max", "count"])
        seeds = seeds[seeds["count"] == seeds["count"].max()]
        every = max(1, len(epochs) // 8)
        axes.plot(
            seeds.index,
            seeds["mean"],
            color=look.color,
            linestyle=look.line,
            marker=look.marker,
            markevery=every,
            markersize=3.5,
        )
        axes.fill_between(seeds.index, seeds["min"], seeds["max"], color=look.color, alpha=0.15, linewidth=0)
    axes.set_xlim(min(epochs) - 0.4, max(epochs) + 0.4)
    axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    _y_axis(axes, frame[y][np.isfinite(frame[y])], log_y, from_zero=False)


@styled
def survival_panel(axes: Axes, runs: pd.DataFrame, series: Mapping[str, Look]) -> None:
    """The share of training runs that have not reached the threshold yet: a step down for each that has, a cross where
    one was given up.
    """
    axes.set(xlabel="training time (s)", ylabel="runs not there yet (%)", ylim=(-4, 104))
    for name, look in series.items():
        rows = runs[runs["hue"] == name]
        if not len(rows):
            continue
        reached = rows["reached"].to_numpy(dtype=bool)
        seconds = rows["seconds_to_threshold"].where(reached, rows["seconds"]).to_numpy()
        share = stats.ecdf(stats.CensoredData.right_censored(seconds, ~reached)).sf
        at = np.concatenate([[0.0], share.quantiles, [seconds.max()]])
        left = 100 * np.concatenate([[1.0], share.probabilities, share.probabilities[-1:]])
        axes.plot(at, left, drawstyle="steps-post", color=look.color, linestyle=look.line)
        axes.plot(seconds[~reached], 100 * share.evaluate(seconds[~reached]), "x", color=look.color)


def value_axis(axes: Axes, values: Iterable[float], ticks: Iterable[float] | None = None) -> None:
    """Make the x axis logarithmic, with plain numbers at the values; at ``ticks`` if given, round ones if empty."""
    values = sorted(set(values))
    pad = max((values[-1] / values[0]) ** 0.06, 1.12)
    axes.set_xscale("log")
    axes.set_xlim(values[0] / pad, values[-1] * pad)
    ticks = values if ticks is None else list(ticks)
    if ticks:
        _fix(axes.xaxis, ticks)
    else:
        plain_log_axis(axes.xaxis)


def ratio_axis(axis: Axis, points: Iterable[float], ends: Iterable[float]) -> tuple[float, float]:
    """The limits of a logarithmic axis of ratios, which it gets, with plain numbers: 1 and all ``points`` are on it; an
    interval that ends far from them runs out. A band that is to be seen is among the ``ends``.
    """
    points = [1.0, *(point for point in points if math.isfinite(point))]
    ends = [*points, *(end for end in ends if math.isfinite(end))]
    low, high = max(min(ends), min(points) / REACH), min(max(ends), max(points) * REACH)
    room = max((high / low) ** 0.08, 1.03)
    set_limits = axis.axes.set_xlim if axis.axis_name == "x" else axis.axes.set_ylim
    set_limits(low / room, high * room)
    plain_log_axis(axis)
    return low / room, high * room


def plain_log_axis(axis: Axis) -> None:
    """Plain, round numbers as the ticks of a logarithmic axis: at least three wherever its limits allow it."""
    low, high = sorted(axis.get_view_interval())
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        ticks = [step * 10.0**decade for decade in decades for step in steps if low <= step * 10.0**decade <= high]
        if len(ticks) >= 3:
            break
    else:
        ticks = [tick for tick in MaxNLocator(5, steps=[1, 2, 5, 10]).tick_values(low, high) if low <= tick <= high]
    _fix(axis, ticks)


@styled
def finish(figure: Figure, series: Mapping[str, Look], extra: Sequence[Legend] = ()) -> Figure:
    """Add a legend of the series and of ``extra`` above the panels. Thin out ticks whose labels would overlap."""
    lines = (Line2D([], [], color=look.color, marker=look.marker, linestyle=look.line) for look in series.values())
    if entries := [*zip(series, lines, strict=True), *extra]:
        _add_legend(figure, entries)
    figure.draw_without_rendering()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            _thin(axis)
    return figure


def _add_legend(figure: Figure, entries: Sequence[Legend]) -> None:
    names, handles = zip(*entries, strict=True)
    width = figure.get_figwidth() * figure.dpi
    for columns in range(min(len(names), 6), 0, -1):
        legend = figure.legend(
            handles, names, loc="outside upper left", ncols=columns, handlelength=2.6, columnspacing=1.6
        )
        if columns == 1 or legend.get_window_extent(figure.canvas.get_renderer()).width <= 0.98 * width:
            break
        legend.remove()
    rows = math.ceil(len(names) / columns)
    figure.set_figheight(figure.get_figheight() + 0.17 * (rows - 1))


STRIPES = (0, (0.2, 0.2))
"""Of a line as wide as a band, hatched in effect."""

FILLED = {"color": GREY, "alpha": 0.35, "linewidth": 0}
HATCHED = {"facecolor": "none", "edgecolor": GREY, "alpha": 0.6, "hatch": "//////", "linewidth": 0}

CONTROL = ("A/A control: the baseline against itself (95 % interval)", Patch(**FILLED))
RESTLESS = ("A/A excludes 1: believe nothing of that size", Patch(**HATCHED))
UNDECIDED = (
    "no difference shown",
    Line2D([], [], color=GREY, marker="o", markerfacecolor="white", linestyle=""),
)
NO_RATIO = ("no ratio (failed, disturbed, or models differ)", Line2D([], [], color="0.2", marker="x", linestyle=""))
CENSORED = (
    "threshold not reached: how far the run got",
    Line2D([], [], color="0.2", marker="^", markerfacecolor="none", markersize=6, linestyle=""),
)
THRESHOLD = Line2D([], [], color="0.2", linewidth=0.8, linestyle=":")
COMPARED = ("a quantity that is compared", Line2D([], [], color=GREY, marker="|", markersize=6, linestyle=""))
FARTHEST = ("the one that is farthest", Line2D([], [], color=GREY, marker="o", linestyle=""))
PUBLISHED = (
    "published, of other hardware",
    Line2D([], [], color="0.2", marker="D", markerfacecolor="none", markersize=6, linestyle=""),
)
DIVERGED = ("loss no longer finite", Line2D([], [], color="0.2", marker="x", linestyle=""))
"""Legend entries beside the series'."""


def margin_legend(margin: float) -> Legend:
    """The legend entry of the band within the margin of 1."""
    return same_within(margin), Patch(color=PALE, linewidth=0)


def margin_text(margin: float) -> str:
    """What a caption says of the band within the margin of 1."""
    return f"An interval that lies within the pale band is {same_within(margin)}."


def ratio_legend(rows: pd.DataFrame, margin: float, crosses: bool = True) -> list[Legend]:
    """The legend entries that a figure of ratios needs; ``crosses``: where one is missing there is a cross."""
    restless = "control_low" in rows and _excludes_1(rows).any()
    undecided = "verdict" in rows and (rows["verdict"] == NO_DIFFERENCE).any()
    missing = crosses and rows["estimate"].isna().any()
    more = {RESTLESS: restless, UNDECIDED: undecided, NO_RATIO: missing}
    return [CONTROL, margin_legend(margin), *(entry for entry, needed in more.items() if needed)]


@styled
def svg(figure: Figure) -> bytes:
    """The figure as SVG text; the same figure gives the same bytes."""
    return _render(figure, "svg")


@styled
def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write ``folder/name`` in each of ``KINDS``; the same figure gives the same bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{kind}" for kind in KINDS]
    for path in paths:
        path.write_bytes(_render(figure, path.suffix[1:]))
    return paths


def _render(figure: Figure, kind: str) -> bytes:
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}[kind]
    file = io.BytesIO()
    figure.savefig(file, format=kind, dpi=300, metadata=metadata)
    return file.getvalue()


def _rows(axes: Axes, labels: Sequence[str], xlabel: str) -> None:
    """A row for each label from the top down."""
    axes.set(xlabel=xlabel, ylim=(len(labels) - 0.4, -0.6))
    axes.set_yticks(range(len(labels)), labels)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)


def _interval_line(axes: Axes, at: pd.Series, rows: pd.DataFrame, look: Look) -> None:
    axes.plot(at, rows["estimate"], color=look.color, marker=look.marker, linestyle=look.line, zorder=3)
    if rows["high"].notna().any():
        error = np.abs(rows[["low", "high"]].sub(rows["estimate"], axis=0).to_numpy().T)
        axes.errorbar(at, rows["estimate"], yerr=error, color=look.color, capsize=2, linestyle="none", zorder=3)
    open_ones = [_is_open(row) for _, row in rows.iterrows()]
    axes.plot(at[open_ones], rows["estimate"][open_ones], look.marker, color=GREY, markerfacecolor="white", zorder=4)


def _is_open(row: pd.Series) -> bool:
    """Is neither a difference nor sameness shown?"""
    return row.get("verdict") == NO_DIFFERENCE


def _excludes_1(rows: pd.DataFrame) -> pd.Series:
    """Does the A/A control say that identical processes differ?"""
    return (rows["control_low"] > 1) | (rows["control_high"] < 1)


def _cross(axes: Axes, x: float, height: float, look: Look) -> None:
    """Where a value is missing: a cross at ``x``, at a share of the panel's height."""
    axes.plot(x, height, "x", color=look.color, transform=axes.get_xaxis_transform(), zorder=4)


def _y_axis(axes: Axes, values: pd.Series, log: bool, from_zero: bool = True) -> None:
    if not len(values.dropna()):
        axes.text(0.5, 0.5, "no result", transform=axes.transAxes, ha="center", va="center")
        axes.set_yticks([])
    elif log:
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        points = values[values > 0]
        axes.set_ylim(max(low, points.min() / REACH), min(high, points.max() * REACH))
        plain_log_axis(axes.yaxis)
    else:
        if from_zero:
            axes.set_ylim(0, 1.08 * axes.dataLim.y1 or 1)
        whole = (values.dropna() % 1 == 0).all()
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=whole))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _side_by_side(series: Mapping[str, Look], values: pd.Series) -> Iterator[tuple[str, Look, float]]:
    """Each series, with the factor by which it stands beside the others that share a value of a logarithmic axis."""
    values = sorted(set(values))
    spread = 0.02 * math.log(values[-1] / values[0]) if len(values) > 1 else 0.03
    for number, (name, look) in enumerate(series.items()):
        yield name, look, math.exp((number - (len(series) - 1) / 2) * spread)


def _fix(axis: Axis, ticks: list[float]) -> None:
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6f}".rstrip("0").rstrip(".")))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def _thin(axis: Axis) -> None:
    """Leave out labels of a logarithmic axis that would overlap the one before; their ticks stay, as minor ones."""
    if axis.get_scale() != "log":
        return
    renderer = axis.get_figure().canvas.get_renderer()
    axis.get_tightbbox(renderer)  # places the labels
    kept, end = [], -math.inf
    for tick in sorted(axis.get_major_ticks(), key=lambda tick: tick.get_loc()):
        box = tick.label1.get_window_extent(renderer)
        first, last, gap = (box.x0, box.x1, 4) if axis.axis_name == "x" else (box.y0, box.y1, 1)
        if first >= end + gap:
            kept.append(tick.get_loc())
            end = last
    ticks = [tick.get_loc() for tick in axis.get_major_ticks()]
    if len(kept) < len(ticks):
        axis.set_minor_locator(FixedLocator(ticks))
        axis.set_major_locator(FixedLocator(kept))
