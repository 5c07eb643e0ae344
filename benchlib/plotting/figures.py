"""The style of all figures, and the panels they are made of.

Made for print: a figure is one column (3.5 in) or one page (7.2 in) wide with text of 8 points. Colour-blind readers
can tell the colours apart, and every colour has a marker and a line style of its own.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

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
from matplotlib.style import context
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from benchlib import tables
from benchlib.plotting.style import REACH, Look, assign_looks
from benchlib.stats.comparison import NO_DIFFERENCE, same_within

COLUMN, PAGE = 3.5, tables.PAGE  # inches: a figure is as wide as one column, or as the page
KINDS = ("png", "svg", "pdf")  # files of a figure: for a page (300 dpi), for the report, for a paper
UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same figure gives the same bytes
FONT_SIZE = 8  # points, the least that journals take
LABEL, WIDEST = 42, 70  # characters of a line of a label: the forest plot's, for 40 % of the page, and others'
NEAREST = 1e-4  # of the tolerance: a smaller difference is rounding, and is drawn at the left edge
GREY = "0.45"
PALE = "#e3eef7"  # of the band within the margin of 1
LINE = {"color": "0.2", "linewidth": 0.8}

STYLE = {
    **sns.axes_style("ticks"),
    **dict.fromkeys(("axes.labelsize", "axes.titlesize", "font.size", "legend.fontsize"), FONT_SIZE),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), FONT_SIZE),
    **dict.fromkeys(("axes.spines.right", "axes.spines.top", "legend.frameon"), False),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 0.6),
    "axes.grid": True,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],  # comes with matplotlib: the same figure on every machine
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.1,
    "lines.markersize": 4.5,
    "pdf.fonttype": 42,  # text stays text
    "svg.hashsalt": "benchlib",  # the same figure gives the same file
    "xtick.minor.size": 2,
    "ytick.minor.size": 2,
}

styled = context(["default", STYLE])
"""A decorator: draw in the style of all figures, whatever a user's matplotlibrc says."""

Legend = tuple[str, Line2D | Patch]  # an entry: its text, and the mark before it


def _mark(**style: object) -> Line2D:
    return Line2D([], [], **{"color": "0.2", "linestyle": "", **style})


STRIPES = (0, (0.2, 0.2))  # of a line as wide as a band: hatched in effect
CONTROL = ("A/A control: the baseline against itself (95 % interval)", Patch(color=GREY, alpha=0.35, linewidth=0))
RESTLESS = (
    "A/A excludes 1: no ratio is surer than that",
    Patch(facecolor="none", edgecolor=GREY, alpha=0.6, hatch="||||||", linewidth=0),
)
UNDECIDED = ("no difference shown", _mark(color=GREY, marker="o", markerfacecolor="white"))
NO_RATIO = ("no ratio (failed, disturbed, or models differ)", _mark(marker="x"))
CENSORED = (
    "threshold not reached: how far the run got",
    _mark(marker="^", markerfacecolor="none", markersize=6),
)
THRESHOLD = ("threshold", Line2D([], [], linestyle=":", **LINE))
COMPARED = ("a quantity that is compared", _mark(color=GREY, marker="|", markersize=6))
FARTHEST = ("the one that is farthest", _mark(color=GREY, marker="o"))
DIVERGED = ("loss no longer finite", _mark(marker="x"))
DISTURBED = ("disturbed", _mark(marker="x"))
"""Legend entries beside the series'."""


def ordered_looks(names: Iterable[str]) -> dict[str, Look]:
    """Looks for names that have an order (learning rates): colours go from dark to light with it."""
    names = list(dict.fromkeys(names))
    shades = mpl.colormaps["viridis"](np.linspace(0.0, 0.85, max(len(names), 2)))
    return {name: replace(look, color=tuple(shades[i])) for i, (name, look) in enumerate(assign_looks(names).items())}


@styled
def panels(rows: int, columns: int, height: float, width: float = PAGE) -> tuple[Figure, list[Axes]]:
    """A figure of ``rows`` x ``columns`` panels, each row ``height`` inches high; the panels row by row."""
    figure = Figure(figsize=(width, rows * height + 0.35), layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06, wspace=0.04, hspace=0.04)
    return figure, list(figure.subplots(rows, columns, squeeze=False).flat)


def intervals(
    axes: Axes,
    rows: pd.DataFrame,
    looks: Mapping[str, Look],
    at: Iterable[float],
    *,
    margin: float | None = None,
    upright: bool = False,
    joined: bool = False,
    beside: Mapping[str, float] | None = None,
    band: float = 7,
) -> None:
    """Each row's estimate with its interval at its place on the panel's other axis, in the look of its ``hue``.

    With a ``margin`` these are ratios. Then there is a line at 1, and a pale band within the margin of 1. A grey band,
    ``band`` points wide, is the interval of each A/A control, striped where it excludes 1. A ratio that shows no
    difference has an open grey marker. A row without an estimate is a cross (``upright``), or says why. Of a hue the
    places are multiplied by ``beside``, so that none hides another.
    """
    rows = rows.assign(at=list(at))
    if margin is not None:
        (axes.axhline if upright else axes.axvline)(1, zorder=1.5, **LINE)
        (axes.axhspan if upright else axes.axvspan)(1 - margin, 1 + margin, color=PALE, linewidth=0, zorder=0)
        controls = rows[["at", "control_low", "control_high"]].drop_duplicates()
        for of, line in ((controls[~_excludes_1(controls)], "-"), (controls[_excludes_1(controls)], STRIPES)):
            strokes = axes.vlines if upright else axes.hlines
            strokes(*of.to_numpy().T, color=GREY, alpha=0.35, linewidth=band, linestyles=[line], zorder=1)
    rows["at"] *= rows["hue"].map(beside or {}).fillna(1)
    for hue, own in rows.dropna(subset="estimate").groupby("hue", sort=False):
        look, error = looks[hue], np.abs(own[["low", "high"]].sub(own["estimate"], axis=0).to_numpy(float).T)
        points = own[["at", "estimate"] if upright else ["estimate", "at"]].to_numpy(float)
        axes.plot(*points.T, look.marker, color=look.color, linestyle=look.line if joined else "", zorder=3)
        bars = {"yerr" if upright else "xerr": error, "linestyle": "none"}
        axes.errorbar(*points.T, **bars, color=look.color, capsize=2, zorder=3)
        if "verdict" in own:
            undecided = points[(own["verdict"] == NO_DIFFERENCE).to_numpy()]
            axes.plot(*undecided.T, look.marker, color=GREY, markerfacecolor="white", linestyle="", zorder=4)
    for _, row in rows[rows["estimate"].isna() & rows["hue"].notna()].iterrows():
        if upright:
            draw_cross(axes, row["at"], 0.04, looks[row["hue"]])
        else:
            why, edge = row.get("why"), axes.get_yaxis_transform()
            why = tables.MISSING if pd.isna(why) else why
            axes.annotate(why, (0, row["at"]), (4, 0), edge, textcoords="offset points", va="center")


def row_panel(
    axes: Axes,
    rows: pd.DataFrame,
    looks: Mapping[str, Look],
    labels: Sequence[str],
    xlabel: str,
    margin: float | None = None,
    at: Sequence[float] | None = None,
    band: float = 9,
    with_ends: bool = False,
) -> None:
    """The intervals of rows from the top down with their ``labels``, and at the right their numbers, ``with_ends`` or
    without. With a ``margin`` they are ratios on a logarithmic axis; without, bars from 0. A stroke stands at a row's
    ``target``, if it has one.
    """
    _rows(axes, labels, xlabel, at)
    at = range(len(rows)) if at is None else at
    known = rows["estimate"].dropna()
    if margin is None:
        axes.barh(at, rows["estimate"].fillna(0), 0.6, color=[looks[hue].color for hue in rows["hue"]], alpha=0.3)
        most = 1.1 * (known.max() if len(known) else 1)
        axes.set_xlim(0, np.nanmax([most, *(1.05 * rows["high"]).clip(upper=2 * most)]) or 1)
        axes.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    else:
        axes.set_xscale("log")
        ratio_axis(axes.xaxis, [*known, *rows.get("target", [])], interval_ends(rows, margin))
    intervals(axes, rows, looks, at, margin=margin, band=band)
    for place, row in zip(at, rows.to_dict("records"), strict=True):
        if pd.notna(target := row.get("target")):
            axes.plot([target, target], [place - 0.35, place + 0.35], color="0.2", linewidth=1)
        if pd.notna(row["estimate"]):
            number = (tables.interval if margin is None else tables.ratio)(row["estimate"], row["low"], row["high"])
            _draw_text_beside(axes, place, number if with_ends else number.partition(" ")[0])


@styled
def forest(rows: pd.DataFrame, looks: Mapping[str, Look], xlabel: str, margin: float, width: float = PAGE) -> Figure:
    """All ratios in one picture: a row for each, with its ``label`` and, at the right, its interval in numbers.

    ``rows`` are as of :func:`intervals`: label, hue, estimate, low, high, control_low, control_high, verdict, why. A
    row without a ``hue`` is a heading.
    """
    labels = [textwrap.fill(label, LABEL) for label in rows["label"]]
    heights = np.array([0.05 + 0.13 * (1 + label.count("\n")) for label in labels])
    middles = heights.cumsum() - heights / 2
    figure, (axes,) = panels(1, 1, height=0.5 + heights.sum(), width=width)
    row_panel(axes, rows, looks, labels, xlabel, margin, middles, band=72 * 0.15, with_ends=True)
    axes.set_ylim(heights.sum(), 0)
    for text, hue in zip(axes.get_yticklabels(), rows["hue"], strict=True):
        text.set_fontweight("bold" if pd.isna(hue) else "normal")
    return finish(figure, {}, ratio_legend(rows[rows["hue"].notna()], margin, crosses=False))


def dot_panel(
    axes: Axes,
    frame: pd.DataFrame,
    series: Mapping[str, Look],
    x: str,
    xlabel: str,
    rows: str,
    named: str | None = None,
) -> None:
    """Points over a logarithmic axis with a line at 1, in a row for each value of ``rows`` from the top down. A value
    less than ``NEAREST``, or infinite, is drawn at the edges.

    With ``named`` they are many: all are grey strokes but the farthest of each row, whose ``named`` and value stand
    beside the panel.
    """
    names = list(dict.fromkeys(frame[rows]))
    _rows(axes, names, xlabel)
    axes.set_xscale("log")
    axes.axvline(1, **LINE)
    far = frame[x].fillna(math.inf)  # nan is not near
    most = max([2.0, *far[np.isfinite(far)]]) * 2
    axes.set_xlim(NEAREST, most)
    plain_log_axis(axes.xaxis)
    frame = frame.assign(far=far, at=far.clip(NEAREST, most), place=frame[rows].map(names.index))
    marked = frame.reset_index(drop=True)
    if named:
        axes.plot(frame["at"], frame["place"], "|", color=GREY, markersize=6, markeredgewidth=0.8, clip_on=False)
        marked = marked.loc[marked.groupby("place")["far"].idxmax()]
    for _, row in marked.iterrows():
        look = series[row["hue"]]
        axes.plot(row["at"], row["place"], look.marker, color=look.color, zorder=4, clip_on=False)
        if named:
            _draw_text_beside(axes, row["place"], f"{tables.number(row['far'], 2)} {row[named]}")


def value_axis(axes: Axes, values: Iterable[float], ticks: Iterable[float] | None = None) -> None:
    """Make the x axis logarithmic, with plain numbers at the values; at ``ticks`` if given, round ones if empty."""
    values = sorted(set(values))
    pad = (values[-1] / values[0]) ** 0.08 if len(values) > 1 else 1.12
    axes.set(xscale="log", xlim=(values[0] / pad, values[-1] * pad))
    ticks = values if ticks is None else list(ticks)
    _fix_ticks(axes.xaxis, ticks) if ticks else plain_log_axis(axes.xaxis)


def ratio_axis(axis: Axis, points: Iterable[float], ends: Iterable[float]) -> None:
    """Limits and plain numbers for a logarithmic axis of ratios. All ``points`` and 1 are on it; an interval that ends
    far from them runs out. A band that is to be seen is among the ``ends``.
    """
    points = [1.0, *(point for point in points if math.isfinite(point))]
    ends = [*points, *(end for end in ends if math.isfinite(end))]
    low, high = max(min(ends), min(points) / REACH), min(max(ends), max(points) * REACH)
    room = max((high / low) ** 0.08, 1.03)
    set_limits = axis.axes.set_xlim if axis.axis_name == "x" else axis.axes.set_ylim
    set_limits(low / room, high * room)
    plain_log_axis(axis)


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
    _fix_ticks(axis, ticks)


@styled
def finish(figure: Figure, series: Mapping[str, Look], extra: Sequence[Legend] = ()) -> Figure:
    """Add a legend of the series and of ``extra`` above the panels. Write products as their makers do, and thin out
    ticks whose labels would overlap.
    """
    lines = (Line2D([], [], color=look.color, marker=look.marker, linestyle=look.line) for look in series.values())
    if entries := [*zip(series, lines, strict=True), *extra]:
        _add_legend(figure, entries)
    for text in figure.findobj(Text):
        text.set_text(tables.spelled(text.get_text()))
    figure.draw_without_rendering()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            _thin_labels(axis)
    return figure


def _add_legend(figure: Figure, entries: Sequence[Legend]) -> None:
    names, handles = zip(*entries, strict=True)
    width = figure.get_figwidth() * figure.dpi
    for columns in range(min(len(names), 6), 0, -1):
        place = {"loc": "outside upper left", "ncols": columns, "handlelength": 2.6, "columnspacing": 1.6}
        legend = figure.legend(handles, names, **place)
        if columns == 1 or legend.get_window_extent(figure.canvas.get_renderer()).width <= 0.98 * width:
            break
        legend.remove()
    figure.set_figheight(figure.get_figheight() + 0.17 * (math.ceil(len(names) / columns) - 1))


def margin_text(margin: float) -> str:
    """The caption's sentence on the band within the margin of 1."""
    return f"An interval that lies within the pale band is {same_within(margin)}."


def ratio_legend(rows: pd.DataFrame, margin: float, crosses: bool = True) -> list[Legend]:
    """The legend entries that a figure of ratios needs; ``crosses``: where one is missing there is a cross."""
    undecided = "verdict" in rows and (rows["verdict"] == NO_DIFFERENCE).any()
    missing = crosses and rows["estimate"].isna().any()
    more = {RESTLESS: _excludes_1(rows).any(), UNDECIDED: undecided, NO_RATIO: missing}
    band = (same_within(margin), Patch(color=PALE, linewidth=0))
    return [CONTROL, band, *(entry for entry, needed in more.items() if needed)]


@styled
def svg(figure: Figure) -> bytes:
    """The figure as SVG text."""
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata=UNDATED["svg"])
    return file.getvalue()


@styled
def save(figure: Figure, folder: Path, name: str) -> list[Path]:
    """Write ``folder/name`` in each of ``KINDS``."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {kind: folder / f"{name}.{kind}" for kind in KINDS}
    for kind, path in paths.items():
        figure.savefig(path, dpi=300, metadata=UNDATED.get(kind))
    return [*paths.values()]


def _rows(axes: Axes, labels: Sequence[str], xlabel: str, at: Sequence[float] | None = None) -> None:
    """A row for each label from the top down."""
    axes.set(xlabel=xlabel, ylim=(len(labels) - 0.4, -0.6))
    of_rows = [one if "\n" in one else textwrap.fill(one, WIDEST) for one in map(tables.spelled, labels)]
    axes.set_yticks(range(len(labels)) if at is None else at, of_rows)
    axes.tick_params(axis="y", length=0, grid_alpha=0)


def row_names(axes: Axes) -> list[str]:
    """The labels at the left of the rows of a panel that has rows."""
    named = isinstance(axes.yaxis.get_major_locator(), FixedLocator) and axes.get_yscale() == "linear"
    return [text.get_text() for text in axes.get_yticklabels()] if named else []


def shares(checks: pd.DataFrame, difference: str = "difference") -> list[float]:
    """Differences over their tolerances, of a certificate's table; where that is 0, any difference is too much."""
    pairs = zip(checks[difference], checks["tolerance"], strict=True)
    return [0.0 if one == 0 else one / allowed if allowed else math.inf for one, allowed in pairs]


def _draw_text_beside(axes: Axes, place: float, text: str) -> None:
    """A text at the right of a row."""
    where = {"xycoords": axes.get_yaxis_transform(), "xytext": (4, 0), "textcoords": "offset points"}
    axes.annotate(text, (1, place), va="center", annotation_clip=False, **where)


def interval_ends(rows: pd.DataFrame, margin: float) -> list[float]:
    """The ends of the intervals of ratios, of their controls', and of the margin."""
    every = [end for name in ("low", "high", "control_low", "control_high") for end in rows[name]]
    return [*every, 1 - margin, 1 + margin]


def _excludes_1(rows: pd.DataFrame) -> pd.Series:
    """Does the A/A control say that identical processes differ?"""
    return (rows["control_low"] > 1) | (rows["control_high"] < 1)


def draw_cross(axes: Axes, x: float, height: float, look: Look) -> None:
    """Draw a cross for a missing value at ``x``, at a share of the panel's height."""
    axes.plot(x, height, "x", color=look.color, transform=axes.get_xaxis_transform(), zorder=4)


def y_axis(axes: Axes, values: pd.Series, log: bool, from_zero: bool = True) -> None:
    """Limits and plain numbers of a panel's y axis."""
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


def side_by_side(series: Iterable[str], values: pd.Series) -> dict[str, float]:
    """For each series the factor by which it stands beside the others that share a value of a logarithmic axis."""
    low, high, names = values.min(), values.max(), list(series)
    spread = 0.02 * math.log(high / low) if low < high else 0.03
    return {name: math.exp((number - (len(names) - 1) / 2) * spread) for number, name in enumerate(names)}


def _fix_ticks(axis: Axis, ticks: list[float]) -> None:
    axis.set_major_locator(FixedLocator(ticks))
    digits = ",.6f"[int(max(ticks) < 10_000) :]  # a year has no comma
    axis.set_major_formatter(FuncFormatter(lambda value, _: format(value, digits).rstrip("0").rstrip(".")))
    axis.set_minor_locator(NullLocator())


def _thin_labels(axis: Axis) -> None:
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
