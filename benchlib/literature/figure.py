"""The figure of the claims: ratios in the direction of each claim, beside the published ones, on pages."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchlib.literature.verdicts import CONTRADICTS, OPEN, SUPPORTS, Case, Judged
from benchlib.plotting import figures
from benchlib.plotting.style import Look

SLOT, LINE, GAP = 0.045, 0.11, 0.07
"""Inches of the figure: for a case among others in its row, for a line of a row's label, and between rows."""

LABEL, LABEL_SIZE = 62, 6.5  # characters of a line of a label; points
HIGHEST = 8.0  # inches of a figure's rows: with axis and legend it then fits a page

LOOKS = {
    SUPPORTS: Look("#23307d", "o", "-"),
    CONTRADICTS: Look("#7a5200", "X", "-"),
    OPEN: Look(figures.GREY, "s", "-"),
}
"""The colours of the report's verdicts: none is a framework's."""

CAPTION = (
    "What was measured here for each claim about a ratio, with 95 % intervals: right of the line is on the claim's "
    "side. Cases that differ in one thing share a row, with their number, in the order of their table. Open diamonds: "
    "the published ratio, of other hardware and versions. An arrow: the interval goes on. Where the A/A control "
    "excludes 1, the ratio is not believed and leaves its claim open. An interval that lies within the pale band shows "
    "no difference to speak of, which contradicts the claim."
)


@dataclass(frozen=True)
class Row:
    """Cases of a claim that stand together: all of one group."""

    claim: str
    cases: list[Case]

    @property
    def label(self) -> str:
        first = self.cases[0]
        of = first.of if len(self.cases) == 1 else f"{first.group} ({len(self.cases)})"
        return textwrap.fill(f"{self.claim}  {of}", LABEL)

    @property
    def height(self) -> float:
        return max(SLOT * len(self.cases), LINE * (1 + self.label.count("\n"))) + GAP


@figures.styled
def draw(judged: list[Judged]) -> dict[str, tuple[str, Figure]]:
    """By name, as :func:`rows`, a caption and the figure."""
    every = rows(judged)
    parts = [f" Part {number} of {len(every)}." if len(every) > 1 else "" for number in range(1, len(every) + 1)]
    return {name: _page(of_page, part) for (name, of_page), part in zip(every.items(), parts, strict=True)}


def rows(judged: list[Judged]) -> dict[str, list[Row]]:
    """What each figure shows: ``ratios``; where the rows are more than fit on a page, ``ratios_2`` and so on."""
    pages = _pages([_rows(one) for one in judged])
    return {f"ratios_{number}" if number > 1 else "ratios": page for number, page in enumerate(pages, start=1)}


def _rows(one: Judged) -> list[Row]:
    groups: dict[str, list[Case]] = {}
    for case in one.outcome.cases:
        if case.ratio is not None and math.isfinite(case.ratio.estimate):
            groups.setdefault(case.group, []).append(case)
    return [Row(one.claim.id, cases) for cases in groups.values()]


def _pages(claims: list[list[Row]]) -> list[list[Row]]:
    """The rows of each figure, from those of each claim: a claim that does not fit begins the next."""
    pages: list[list[Row]] = [[]]
    for rows in claims:
        for number, row in enumerate(rows):
            together = [row] if number else rows
            if pages[-1] and sum(one.height for one in [*pages[-1], *together]) > HIGHEST:
                pages.append([])
            pages[-1].append(row)
    return [page for page in pages if page]


def _page(rows: list[Row], part: str) -> tuple[str, Figure]:
    total = sum(row.height for row in rows)
    figure, (axes,) = figures.panels(1, 1, height=0.5 + total)
    shown = [case for row in rows for case in row.cases]
    axes.set(xscale="log", xlabel="ratio in the direction of the claim", ylim=(total, 0))
    axes.axvline(1, color="0.2", linewidth=0.8)
    published = [case.published for case in shown if case.published]
    ends = [end for case in shown for end in (case.ratio.low, case.ratio.high)]
    figures.ratio_axis(axes.xaxis, [*published, *(case.ratio.estimate for case in shown)], ends)
    middles, top = [], 0.0
    for before, row in zip([None, *rows], rows, strict=False):
        middles.append(top + row.height / 2)
        within = (1 - row.cases[0].margin, 1 + row.cases[0].margin)
        axes.fill_betweenx([top, top + row.height], *within, color=figures.PALE, linewidth=0, zorder=-1)
        if before and before.claim != row.claim:
            axes.axhline(top, color="0.8", linewidth=0.6, zorder=0)
        for number, case in enumerate(row.cases):
            place = middles[-1] + SLOT * (number - (len(row.cases) - 1) / 2)
            _draw_case(axes, case, place, LOOKS[case.bears], small=len(row.cases) > 1)
        for value in {case.published for case in row.cases if case.published}:
            axes.plot(value, middles[-1], "D", color="0.2", markerfacecolor="none", markersize=6, zorder=2)
        top += row.height
    axes.set_yticks(middles, [row.label for row in rows])
    axes.tick_params(axis="y", length=0, labelsize=LABEL_SIZE)
    axes.grid(axis="y", visible=False)
    extra = [figures.PUBLISHED] if published else []
    extra += [figures.CONTROL] if any(case.control for case in shown) else []
    extra += [figures.margin_legend(margin) for margin in sorted({case.margin for case in shown})]
    return f"{CAPTION}{part}", figures.finish(figure, LOOKS, extra)


def _draw_case(axes: Axes, case: Case, place: float, look: figures.Look, small: bool) -> None:
    """A point with its interval, and the A/A of its comparison behind it."""
    if case.control is not None:
        half, band = (
            SLOT / 2 if small else LINE / 2,
            {"color": figures.GREY, "alpha": 0.35, "linewidth": 0, "zorder": 0},
        )
        axes.fill_betweenx([place - half, place + half], case.control.low, case.control.high, **band)
    width, size = (0.8, 2.4) if small else (1.1, 4.5)
    point = {"color": look.color, "markersize": size, "markeredgewidth": 0}
    axes.plot([case.ratio.low, case.ratio.high], [place, place], color=look.color, linestyle="-", linewidth=width)
    axes.plot(case.ratio.estimate, place, look.marker, **point)
    low, high = axes.get_xlim()
    if case.ratio.low < low:
        axes.plot(low, place, "<", clip_on=False, **point)
    if case.ratio.high > high:
        axes.plot(high, place, ">", clip_on=False, **point)
