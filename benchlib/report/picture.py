"""The picture of all ratios, once for each choice of baseline, of which a page shows one; and a figure for a paper."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from html import escape
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.markers import MarkerStyle

from benchlib import tables
from benchlib.plotting import figures, style
from benchlib.plotting.naming import spelled
from benchlib.report import ratios
from benchlib.report.load import join_distinct
from benchlib.stats import frame as tidy

MANY = 26  # rows, with the headings above them, that fit on the first page of a paper beside the claims
APART = 15  # per cent of the width that two ticks are apart at least

# The columns by which a reader can choose among the rows, and the signs beside colours, which alone say nothing.
FILTERS = ("workload", "framework", "environment", "mode", "device", "batch_size", "lane", "precision")
GLYPHS = {"faster": "↑", "slower": "↓", "same": "=", "open": "○", "none": "–", "reproduced": "✓", "not-reproduced": "✗"}

Row = dict[str, Any]  # of a frame, see benchlib.report.ratios


def definitions(every: pd.DataFrame) -> str:
    """Draw the marks that the pictures of a page use, once for all of them, and the hatching of an A/A."""
    symbols = ""
    for marker in sorted({style.subject_look(*names).marker for names in every[tidy.SUBJECT].to_numpy()}):
        path = MarkerStyle(marker)
        corners = path.get_path().transformed(path.get_transform()).to_polygons()[0]  # as high as a line of text
        points = " ".join(f"{7.6 * x:.1f} {-7.6 * y:.1f}" for x, y in corners)
        symbols += f'<symbol id="mark-{ord(marker)}" overflow="visible"><path d="M{points}z"/></symbol>'
    hatch = '<pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
    hatch += '<path d="M0 0V5" class="hatching"/></pattern>'
    return f'<svg class="definitions" width="0" height="0" aria-hidden="true">{symbols}<defs>{hatch}</defs></svg>'


def glyph(name: str) -> str:
    """Return the sign of the verdict on a ratio, or on a claim's cases."""
    return f'<span class="glyph" aria-hidden="true">{GLYPHS[name]}</span>'


def pictures(every: pd.DataFrame) -> str:
    """Draw all ratios, relative to their measured baselines, and to each subject that a reader may choose."""
    views = {"as measured": View(ratios.relative_to(every), ratios.usual_baseline(every))}
    for subject in every["baseline_subject"].value_counts().index:
        views[spelled(subject)] = View(ratios.relative_to(every, subject), subject)
    parts = (
        f'<input type="radio" name="baseline" id="baseline-{number}"{"" if number else " checked"}>'
        f'<label for="baseline-{number}">{escape(name)}</label><div class="view">{view.html()}</div>'
        for number, (name, view) in enumerate(views.items())
    )
    return f'<div class="views" role="group" aria-label="Relative to"><b>Relative to</b>{"".join(parts)}</div>'


class View:
    """Some ratios relative to one baseline, on a logarithmic axis: intervals that end far from all points run out."""

    def __init__(self, shown: pd.DataFrame, baseline: str) -> None:
        self.rows: list[Row] = shown.to_dict("records")
        self.baseline = baseline
        axis = Figure().subplots(subplot_kw={"xscale": "log"}).xaxis
        margins = [end for margin in set(shown["margin"]) for end in (1 - margin, 1 + margin)]
        ends = [*shown["low"].dropna(), *shown["high"].dropna(), *margins]
        figures.ratio_axis(axis, shown["estimate"].dropna(), ends)
        self.low, self.high = axis.get_view_interval()
        self.ticks = [1.0]
        for tick in axis.get_ticklocs():
            if all(abs(self.percent(tick) - self.percent(other)) >= APART for other in self.ticks):
                self.ticks.append(float(tick))

    def percent(self, ratio: float) -> float:
        """Return the place of a ratio, in per cent of the width; one beyond an end is at that end."""
        share = math.log(ratio / self.low) / math.log(self.high / self.low)
        return round(100 * min(max(share, 0.0), 1.0), 2)

    def html(self) -> str:
        """Draw it with its caption and legend."""
        workloads = "".join(self._workload(name, [*own]) for name, own in _group_by("workload", self.rows))
        many = len(self.rows) + workloads.count('class="setting"') > MANY
        ticks = "".join(f'<span style="left:{self.percent(tick):g}%">{tick:,.6g}</span>' for tick in self.ticks)
        axis = (
            '<div class="axis" aria-hidden="true"><span class="sides"><span>← slower</span><span>faster →</span></span>'
            f'<span class="ticks">{ticks}</span></div>'
        )
        return (
            f'<p class="caption">Throughput divided by that of <b>{escape(spelled(self.baseline))}</b>, or of the '
            f"subject after “vs”. The lines are 95 % intervals over processes.</p>{_legend(self.rows)}"
            f'<div class="forest{" many" * many}">{axis}{axis * many}{workloads}</div>'
        )

    def label(self, row: Row) -> tuple[str, str]:
        """Return the subject of a row, and the words that tell it from others: its own details, and its baseline."""
        other = "" if row["baseline_subject"] == self.baseline else spelled(row["baseline_subject"])
        versus = ", ".join(filter(None, (other, row["baseline_apart"])))
        return spelled(row["subject"]), " ".join(filter(None, (row["apart"], f"vs {versus}" if versus else "")))

    def _workload(self, name: str, rows: list[Row]) -> str:
        first, *others = parts = [(heading, [*own]) for heading, own in _group_by("heading", rows)]
        about = ", ".join([f"on {join_distinct(row['data'] for row in rows)}", *([] if others else [first[0]])])
        bodies = ""
        for heading, own in parts:
            head = f'<tr class="setting"><th scope="rowgroup" colspan="3">{escape(heading)}</th></tr>' if others else ""
            bodies += f"<tbody>{head}{''.join(map(self._row, own))}</tbody>"
        heads = "".join(f'<th scope="col">{text}</th>' for text in ("condition", "plot", "throughput ratio"))
        return (
            f'<table class="workload"><caption>{escape(name)} <small>{escape(about)}</small></caption>'
            f"<colgroup><col><col><col></colgroup><thead><tr>{heads}</tr></thead>{bodies}</table>"
        )

    def _row(self, row: Row) -> str:
        (who, apart), kind = self.label(row), row["kind"]
        look = style.subject_look(*(row[name] for name in tidy.SUBJECT))
        color = "".join(f"{round(255 * part):02x}" for part in look.color)
        mark = f'href="#mark-{ord(look.marker)}" style="color:#{color}"'
        choices = row | {"framework": spelled(row["framework"]), "environment": row["home"]}
        data = "".join(f' data-{name}="{escape(str(choices[name]))}"' for name in FILTERS)
        facts = "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in _facts(row).items() if text)
        number = "" if kind == "none" else tables.ratio(row["estimate"], row["low"], row["high"])
        says = f"<span{' class=unseen' if number else ''}>{escape(row['says'])}</span>"
        return (
            f'<tr class="{kind}"{data}><th scope="row"><svg class="mark" viewBox="-6 -6 12 12" aria-hidden="true">'
            f"<use {mark}/></svg>{escape(who)} <small>{escape(apart)}</small></th><td>{self._strip(row, mark)}</td>"
            f'<td class="verdict {kind}"><details class="behind"><summary>{glyph(kind)}{number} {says}</summary>'
            f"<dl>{facts}</dl></details></td></tr>"
        )

    def _strip(self, row: Row, mark: str) -> str:
        """Draw the plot of a row: margin, A/A, the line at 1, the interval and the mark; an arrow where it goes on."""
        at, parts = self.percent, []
        bands = {"margin": (1 - row["margin"], 1 + row["margin"])}
        if pd.notna(row["control_low"]):
            bands["control restless" if row["restless"] else "control"] = (row["control_low"], row["control_high"])
        for kind, (low, high) in bands.items():
            parts.append(f'<rect class="{kind}" x="{at(low)}%" width="{at(high) - at(low):.2f}%" height="100%"/>')
        parts.append(f'<line class="one" x1="{at(1)}%" x2="{at(1)}%" y1="0" y2="100%"/>')
        if pd.notna(row["low"]):
            parts.append(f'<line class="interval" x1="{at(row["low"])}%" x2="{at(row["high"])}%" y1="50%" y2="50%"/>')
            arrows = {0: "◂" if row["low"] < self.low else "", 100: "▸" if row["high"] > self.high else ""}
            parts += [f'<text class="arrow" x="{x}%" y="50%">{arrow}</text>' for x, arrow in arrows.items() if arrow]
        if row["kind"] != "none":
            parts.append(f'<use class="point" {mark} x="{at(row["estimate"])}%" y="50%"/>')
        return f'<svg class="strip" aria-hidden="true">{"".join(parts)}</svg>'


def _facts(row: Row) -> dict[str, str]:
    """Return the facts behind a ratio, by their names."""
    control = tables.ratio(row["control"], row["control_low"], row["control_high"])
    return {
        "condition": spelled(row["label"]),
        "relative to": spelled(row["baseline_label"]),
        "verdict": ": ".join(one for one in (row["says"], row["reason"], row["caveat"]) if pd.notna(one)),
        "A/A": control if pd.notna(row["control"]) else f"none: {row['control_why']}",
        "pairs": str(row["processes"]),
        "ended": "" if pd.isna(row["ended"]) else row["ended"],
        "behind it": f"benchlib trace tables/report_ratios.csv {row['key']}",
    }


def _group_by(name: str, rows: list[Row]) -> Iterator[tuple[str, Iterator[Row]]]:
    return itertools.groupby(rows, key=lambda row: row[name])


def _legend(rows: list[Row]) -> str:
    margin = " or ".join(f"{100 * one:g} %" for one in sorted({row["margin"] for row in rows}))
    verdicts = {"faster": "faster", "slower": "slower", "same": f"the same within {margin}"}
    verdicts |= {"open": "no difference shown", "none": "no ratio"}
    bands = {"control": "A/A: the baseline against itself", "margin": f"within {margin} of 1"}
    if any(row["restless"] for row in rows):
        bands["control restless"] = "A/A excludes 1: do not trust a difference of that size"
    kinds = [kind for kind in verdicts if kind in {row["kind"] for row in rows}]
    entries = [f'<span class="verdict {kind}">{glyph(kind)}{verdicts[kind]}</span>' for kind in kinds]
    swatch = '<svg class="swatch" aria-hidden="true"><rect width="100%" height="100%" class="{}"/></svg>'
    entries += [f"<span>{swatch.format(kind)}{text}</span>" for kind, text in bands.items()]
    return f'<p class="legend">{"".join(entries)}</p>'


def figure(every: pd.DataFrame) -> Figure:
    """Draw all ratios, relative to their measured baselines, for a paper."""
    shown = ratios.relative_to(every)
    view, rows = View(shown, ratios.usual_baseline(every)), []
    for workload, own in _group_by("workload", view.rows):
        for heading, of in _group_by("heading", [*own]):
            rows.append({"label": f"{workload}, {heading}"})
            rows += [{**one, "label": ", ".join(filter(None, view.label(one))), "hue": one["subject"]} for one in of]
    looks = style.subject_looks(shown.assign(hue=shown["subject"]))
    xlabel = f"throughput relative to {spelled(view.baseline)}"
    return figures.forest(pd.DataFrame(rows), looks, xlabel, shown["margin"].min())
