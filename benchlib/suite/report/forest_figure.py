"""The forest plot of all ratios as a figure for a paper: the picture of the report's first page, in the style of all
figures.
"""

from __future__ import annotations

import itertools
import math
import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchlib.suite import figures
from benchlib.suite.report import forest, ratios
from benchlib.suite.report.ratios import Group, Ratio

LINE, GAP, LABEL = 0.125, 0.05, 44
"""Inches of a line of a row's label, and between rows; characters of such a line."""

HATCH = "/////"
"""Over an A/A control that excludes 1."""


@figures.styled
def draw(every: Sequence[Group]) -> Figure:
    """A row for each ratio, relative to what it was measured with, by workload."""
    usual = forest.usual_baseline(every)
    labels: dict[int, str] = {}
    rows: list[tuple[int, Group, Ratio]] = []
    for name, own in itertools.groupby(every, lambda group: group.workload):
        labels[len(labels)] = name
        for group in own:
            for ratio in group.relative_to(0).values():
                rows.append((len(labels), group, ratio))
                labels[len(labels)] = _label(group, ratio, usual)
    heads, count = set(labels) - {place for place, *_ in rows}, len(labels)
    lines = 1 + max(label.count("\n") for label in labels.values())
    figure, (axes,) = figures.panels(1, 1, height=0.5 + (GAP + LINE * lines) * count)
    axes.set(xscale="log", xlabel=f"throughput relative to {usual}", ylim=(count - 0.4, -0.6))
    axes.axvline(1, color="0.2", linewidth=0.8, zorder=1.5)
    for place, group, ratio in rows:
        _draw_row(axes, place, group, ratio)
    axes.set_yticks(list(labels), list(labels.values()))
    for place, label in zip(labels, axes.get_yticklabels(), strict=True):
        label.set_fontweight("bold" if place in heads else "normal")
    axes.grid(axis="y", visible=False)
    axes.tick_params(axis="y", length=0)
    known = [ratio.interval for *_, ratio in rows if ratio.kind != ratios.NONE]
    margins = [end for group in every for end in (1 - group.margin, 1 + group.margin)]
    ends = [end for one in known for end in (one.low, one.high)]
    figures.ratio_axis(axes.xaxis, [one.estimate for one in known], [*ends, *margins])
    return figures.finish(figure, {}, [figures.CONTROL, figures.margin_legend(every[0].margin)])


def _label(group: Group, ratio: Ratio, usual: str) -> str:
    member, against = group.members[ratio.of], forest.versus(group.members[ratio.of], group.members[0], usual)
    return textwrap.fill(f"{member.subject}, {member.apart}{f' vs {against}' if against else ''}", LABEL)


def _draw_row(axes: Axes, place: int, group: Group, ratio: Ratio) -> None:
    half, look = (place - 0.5, place + 0.5), group.members[ratio.of].look
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
