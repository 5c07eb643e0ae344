"""The forest plot of all ratios as a figure for a paper: the picture of the report's first page, in the style of all
figures.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchlib.plotting import figures
from benchlib.suite.report import forest, ratios
from benchlib.suite.report.ratios import Group, Ratio

LINE, GAP, LABEL = 0.125, 0.05, 44
"""Inches of a line of a row's label, and between rows; characters of such a line."""

HEADING = {"fontstyle": "italic", "color": figures.GREY}
"""How the setting of the ratios below it is written."""

HATCH = "/////"
"""Over an A/A control that excludes 1."""


@figures.styled
def draw(every: Sequence[Group]) -> Figure:
    """A row for each ratio, relative to what it was measured with, by workload."""
    usual = forest.usual_baseline(every)
    rows = [row for _, own in itertools.groupby(every, lambda group: group.workload) for row in _rows([*own], usual)]
    heights = [GAP + LINE * (1 + label.count("\n")) for label, *_ in rows]
    total, middles = sum(heights), [sum(heights[:place]) + height / 2 for place, height in enumerate(heights)]
    figure, (axes,) = figures.panels(1, 1, height=0.5 + total)
    axes.set(xscale="log", xlabel=f"throughput relative to {usual}", ylim=(total, 0))
    axes.axvline(1, color="0.2", linewidth=0.8, zorder=1.5)
    for middle, height, (*_, ratio) in zip(middles, heights, rows, strict=True):
        if ratio is not None:
            _draw_row(axes, middle, height, *ratio)
    axes.set_yticks(middles, [label for label, *_ in rows])
    for text, (_, style, _) in zip(axes.get_yticklabels(), rows, strict=True):
        text.set(**style)
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    known = [row[-1][1].interval for row in rows if row[-1] and row[-1][1].kind != ratios.NONE]
    margins = [end for group in every for end in (1 - group.margin, 1 + group.margin)]
    ends = [end for one in known for end in (one.low, one.high)]
    figures.ratio_axis(axes.xaxis, [one.estimate for one in known], [*ends, *margins])
    return figures.finish(figure, {}, [figures.CONTROL, figures.margin_legend(every[0].margin)])


def _rows(own: Sequence[Group], usual: str) -> Iterator[tuple[str, dict[str, str], tuple[Group, Ratio] | None]]:
    """Of a workload: its name, each setting, and the ratios below; each with its label, and how that is written."""
    about, apart = forest.headings(own[0].workload, own)
    yield textwrap.fill(about, LABEL), {"fontweight": "bold"}, None
    for heading, groups in itertools.groupby(zip(apart, own, strict=True), lambda pair: pair[0]):
        if heading:
            yield textwrap.fill(heading, LABEL), HEADING, None
        yield from (
            (_label(group, one, usual), {}, (group, one))
            for _, group in groups
            for one in group.relative_to(0).values()
        )


def _label(group: Group, ratio: Ratio, usual: str) -> str:
    member, against = group.members[ratio.of], forest.versus(group.members[ratio.of], group.members[0], usual)
    label = ", ".join(filter(None, (member.subject, group.apart(ratio.of))))
    return textwrap.fill(f"{label} vs {against}" if against else label, LABEL)


def _draw_row(axes: Axes, place: float, height: float, group: Group, ratio: Ratio) -> None:
    half, look = (place - height / 2, place + height / 2), group.members[ratio.of].look
    band = {"linewidth": 0, "zorder": 0}
    axes.fill_betweenx(half, 1 - group.margin, 1 + group.margin, color=figures.PALE, **band)
    if math.isfinite(group.control.low):
        restless = {"hatch": HATCH, "facecolor": "none", "edgecolor": figures.GREY} if group.restless else {}
        shade = restless or {"color": figures.GREY, "alpha": 0.35}
        axes.fill_betweenx(half, group.control.low, group.control.high, **band | shade)
    right = {"xycoords": ("axes fraction", "data"), "xytext": (4, 0), "textcoords": "offset points", "va": "center"}
    axes.annotate(ratio.text, (1, place), **right)
    if ratio.kind == ratios.NONE:
        return
    is_open = ratio.kind == "open"
    color = figures.GREY if is_open else look.color
    axes.plot([ratio.interval.low, ratio.interval.high], [place, place], color=color, zorder=3)
    face = {"markerfacecolor": "white"} if is_open else {}
    axes.plot(ratio.interval.estimate, place, look.marker, color=color, zorder=4, **face)
