"""The forest plot of all ratios of throughput, as HTML: a row for each ratio, with its strip of the plot as SVG.

It is complete as it stands, on paper too. ``report.js`` changes what is here by the same rules (:func:`axis_of`,
:func:`strip`): until a reader asks for another baseline it shows this picture.

The drawing is ours, not a library's. Measured against Vega-Lite, the one that a Python package carries whole
(vl-convert-python 1.9.0, whose ``javascript_bundle()`` is 0.9 MB; 84 MB installed): it builds functions from text,
which this page's policy forbids; its marks take no focus from the keyboard; and without JavaScript its picture would
have to be a second one. Rows of a table with a strip each need none of that, and a screen reader reads them.
"""

from __future__ import annotations

import html
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from benchlib.plotting.style import REACH, Look
from benchlib.suite.report import ratios
from benchlib.suite.report.ratios import Group, Member, Ratio

MANY = 26
"""Rows, with the settings above them, that fit on the first page of a paper beside the board of claims; where there are
more, they take two columns, and the board is below.
"""

MARKS = {
    "o": '<circle r="4.2"/>',
    "s": '<path d="M-3.8-3.8h7.6v7.6h-7.6z"/>',
    "D": '<path d="M0-5.2 5.2 0 0 5.2-5.2 0z"/>',
    "^": '<path d="M0-5 4.8 3.9h-9.6z"/>',
    "v": '<path d="M0 5 4.8-3.9h-9.6z"/>',
    "P": '<path d="M-1.7-4.8h3.4v3.1h3.1v3.4h-3.1v3.1h-3.4v-3.1h-3.1v-3.4h3.1z"/>',
    "X": '<path d="M-4.6-2.3-2.3-4.6 0-2.3 2.3-4.6 4.6-2.3 2.3 0 4.6 2.3 2.3 4.6 0 2.3-2.3 4.6-4.6 2.3-2.3 0z"/>',
    "<": '<path d="M-5 0 3.9-4.8v9.6z"/>',
    ">": '<path d="M5 0-3.9-4.8v9.6z"/>',
    "p": '<path d="M0-5 4.8-1.5 2.9 4h-5.8l-1.9-5.5z"/>',
    "*": '<path d="M0 -5.4 1.4 -1.9 5.1 -1.7 2.2 0.7 3.2 4.4 0 2.3 -3.2 4.4 -2.2 0.7 -5.1 -1.7 -1.4 -1.9z"/>',
}
"""The markers of ``looks``, around the origin, as high as a line of text at most."""

GLYPHS = {
    "faster": '<path d="M0-5.2 4.8-.2h-3.1v5.2h-3.4v-5.2h-3.1z"/>',
    "slower": '<path d="M0 5.2 4.8 .2h-3.1v-5.2h-3.4v5.2h-3.1z"/>',
    "same": '<path d="M-4.5-3.2h9v2.2h-9zM-4.5 1h9v2.2h-9z"/>',
    "open": '<circle r="3.8" class="hollow"/>',
    "none": '<path d="M-4-.9h8v1.8h-8z"/>',
    "reproduced": '<path d="M-4.8 0-1.6 3.9 5-3.6 3.6-4.9-1.7 1.3-3.5-1.2z"/>',
    "not-reproduced": MARKS["X"],
}
"""The shape of what a ratio, or a claim's cases, show: beside its colour, and never red or green."""


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis of ratios."""

    low: float
    high: float
    ticks: list[float]

    def percent(self, ratio: float) -> float:
        """Where a ratio is, of the width; what is beyond an end is at that end."""
        share = math.log(ratio / self.low) / math.log(self.high / self.low)
        return round(100 * min(max(share, 0.0), 1.0), 2)


def axis_of(shown: Iterable[Ratio], margins: Iterable[float]) -> Axis:
    """An axis on which 1, all margins and all estimates are; intervals that end far from these run out of it."""
    known = [one.interval for one in shown if one.kind != ratios.NONE]
    points = [1.0, *(one.estimate for one in known)]
    near = [end for margin in margins for end in (1 - margin, 1 + margin)]
    ends = [*points, *near, *(end for one in known for end in (one.low, one.high) if math.isfinite(end))]
    low, high = max(min(ends), min(points) / REACH), min(max(ends), max(points) * REACH)
    room = max((high / low) ** 0.05, 1.03)
    axis = Axis(low / room, high * room, [])
    return replace(axis, ticks=_ticks(axis))


APART = 15
"""Per cent of the width that two ticks are apart at least."""


def _ticks(axis: Axis) -> list[float]:
    """Plain, round numbers within the ends: at least three where they allow it, and no nearer than can be read."""
    decades = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
    ticks: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), tuple(1 + tenth / 10 for tenth in range(90))):
        every = [float(f"{step * 10.0**decade:.6g}") for decade in decades for step in steps]
        ticks = [tick for tick in every if axis.low <= tick <= axis.high]
        if len(ticks) >= 3:
            break
    kept = [1.0]
    for tick in ticks:
        if all(abs(axis.percent(tick) - axis.percent(other)) >= APART for other in kept):
            kept.append(tick)
    return sorted(kept)


def picture(every: Sequence[Group]) -> str:
    """The plot of all ratios, relative to the baselines that they were measured with, by workload."""
    if not any(group.ratios for group in every):
        return '<p class="nothing">No ratio of throughput has been measured yet.</p>'
    shown = [ratio for group in every for ratio in group.relative_to(0).values()]
    axis = axis_of(shown, {group.margin for group in every})
    usual = usual_baseline(every)
    by_workload = itertools.groupby(enumerate(every), lambda pair: pair[1].workload)
    lane = _lane(every)
    workloads = "".join(_workload(name, list(own), axis, usual, lane) for name, own in by_workload)
    many = len(shown) + workloads.count('class="setting"') > MANY
    return (
        f'<div class="forest{" many" * many}" data-usual="{html.escape(usual)}">'
        f"{_axis_row(axis)}{_axis_row(axis) * many}{workloads}</div>"
        f'<script type="application/json" id="benchlib-ratios">{_embedded(ratios.as_json(every))}</script>'
    )


def definitions() -> str:
    """The shapes that the pictures of a page use, once for all of them."""
    marks = "".join(
        f'<symbol id="mark-{ord(name)}" overflow="visible"><g transform="scale(.85)">{path}</g></symbol>'
        for name, path in MARKS.items()
    )
    glyphs = "".join(f'<symbol id="glyph-{name}" overflow="visible">{path}</symbol>' for name, path in GLYPHS.items())
    hatch = (
        '<pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">'
        '<path d="M0 0V5" class="hatching"/></pattern>'
    )
    arrows = (
        '<symbol id="arrow-left" overflow="visible"><path d="M0 0 6-3.5v7z"/></symbol>'
        '<symbol id="arrow-right" overflow="visible"><path d="M0 0-6-3.5v7z"/></symbol>'
    )
    shapes = f"{marks}{glyphs}{arrows}<defs>{hatch}</defs>"
    return f'<svg class="definitions" width="0" height="0" aria-hidden="true">{shapes}</svg>'


def legend(every: Sequence[Group]) -> str:
    """What the shapes and bands of the plot stand for, as far as they are there; hidden, those of other baselines."""
    shown = {ratio.kind for group in every for ratio in group.relative_to(0).values()}
    words = {
        "faster": "faster",
        "slower": "slower",
        "same": f"the same within {_margins(every)}",
        "open": "no difference shown: open mark",
        "none": "no ratio",
    }
    entries = [
        f'<span class="verdict {kind}" data-kind="{kind}"{"" if kind in shown else " hidden"}>'
        f"{glyph(kind)}{text}</span>"
        for kind, text in words.items()
    ]
    band = '<svg class="swatch" aria-hidden="true"><rect width="100%" height="100%" class="{}"/></svg>'
    entries.append(
        f'<span>{band.format("control")}A/A: <span class="of-control">the baseline</span> against itself</span>'
    )
    if any(group.restless for group in every):
        entries.append(f"<span>{band.format('control restless')}A/A excludes 1: believe nothing of that size</span>")
    entries.append(f"<span>{band.format('margin')}within {_margins(every)} of 1</span>")
    if lane := _lane(every):
        entries.append(f'<span class="for-many">where no lane is named: {html.escape(lane)}</span>')
    return f'<p class="legend">{"".join(entries)}</p>'


def _margins(every: Iterable[Group]) -> str:
    return " or ".join(f"{100 * margin:g} %" for margin in sorted({group.margin for group in every}))


def glyph(kind: str) -> str:
    """The shape of a verdict, in the text's colour."""
    return f'<svg class="glyph" viewBox="-6 -6 12 12" aria-hidden="true"><use href="#glyph-{kind}"/></svg>'


def mark(look: Look) -> str:
    """A subject's marker in its colour, as in every figure."""
    return (
        f'<svg class="mark" viewBox="-6 -6 12 12" aria-hidden="true" style="color:{color(look)}">'
        f'<use href="#mark-{ord(look.marker)}"/></svg>'
    )


def color(look: Look) -> str:
    """A look's colour as CSS writes it."""
    return "#" + "".join(f"{round(255 * part):02x}" for part in look.color)


def strip(ratio: Ratio | None, group: Group, look: Look, axis: Axis) -> str:
    """What of the plot is in the row of a ratio: margin, A/A, the line at 1, the interval, the mark; the mark is open
    where nothing is shown, and an interval that goes on beyond an end has an arrow there.
    """
    at = axis.percent
    parts = [_band("margin", at(1 - group.margin), at(1 + group.margin))]
    if math.isfinite(group.control.low):
        kind = "control restless" if group.restless else "control"
        parts.append(_band(kind, at(group.control.low), at(group.control.high)))
    parts.append(f'<line class="one" x1="{at(1):g}%" x2="{at(1):g}%" y1="0" y2="100%"/>')
    if ratio is not None and ratio.kind != ratios.NONE:
        interval = ratio.interval
        if math.isfinite(interval.low):
            ends = f'x1="{at(interval.low):g}%" x2="{at(interval.high):g}%"'
            parts.append(f'<line class="interval" {ends} y1="50%" y2="50%"/>')
            if interval.low < axis.low:
                parts.append('<use class="arrow" href="#arrow-left" x="0" y="50%"/>')
            if interval.high > axis.high:
                parts.append('<use class="arrow" href="#arrow-right" x="100%" y="50%"/>')
        place = f'x="{at(interval.estimate):g}%" y="50%"'
        parts.append(f'<use class="point" href="#mark-{ord(look.marker)}" {place} style="color:{color(look)}"/>')
    return f'<svg class="strip" aria-hidden="true">{"".join(parts)}</svg>'


def _band(kind: str, start: float, end: float) -> str:
    return f'<rect class="{kind}" x="{start:g}%" width="{round(end - start, 2):g}%" height="100%"/>'


def versus(member: Member, baseline: Member, usual: str) -> str:
    """What a member is compared with, where that is not the usual subject in the same setting."""
    own = {text for text, _ in member.details}
    parts = [baseline.subject] if baseline.subject != usual else []
    parts += [text for text, _ in baseline.details if text not in own]
    return ", ".join(parts)


def headings(about: str, own: Sequence[Group]) -> tuple[str, list[str]]:
    """What comparisons are ``about``, with their setting and notebook if all have the same; and for each of them what
    it has of its own of these.
    """
    setting, title = (len(set(texts)) == 1 for texts in ([one.setting for one in own], [one.title for one in own]))
    common = _heading(_heading(about, own[0].setting * setting, ", "), own[0].title * title)
    return common, [_heading(one.setting * (not setting), one.title * (not title)) for one in own]


def _heading(first: str, second: str, between: str = " · ") -> str:
    return between.join(filter(None, (first, second)))


def usual_baseline(every: Sequence[Group]) -> str:
    """The subject that most ratios are relative to."""
    subjects = [group.members[0].subject for group in every for _ in group.relative_to(0)]
    return max(dict.fromkeys(subjects), key=subjects.count, default="")


def _axis_row(axis: Axis) -> str:
    ticks = "".join(f'<span style="left:{axis.percent(tick):g}%">{_plain(tick)}</span>' for tick in axis.ticks)
    return (
        '<div class="axis" aria-hidden="true"><span class="sides"><span>← slower</span><span>faster →</span></span>'
        f'<span class="ticks">{ticks}</span></div>'
    )


def _plain(tick: float) -> str:
    return f"{tick:,.6f}".rstrip("0").rstrip(".")


def _lane(every: Sequence[Group]) -> str:
    """The lane that most members have, which goes without saying where there is no room."""
    lanes = Counter(member.choices["lane"] for group in every for member in group.members)
    return max(lanes, key=lanes.get)


def _who(member: Member, lane: str) -> str:
    """A member's subject, in which its lane is marked where that goes without saying."""
    text, _, last = member.subject.rpartition(" ")
    if last != lane:
        return html.escape(member.subject)
    return f'{html.escape(text)} <span class="unsaid">{html.escape(lane)}</span>'


def _workload(name: str, numbered: list[tuple[int, Group]], axis: Axis, usual: str, lane: str) -> str:
    data = ", ".join(filter(None, dict.fromkeys(group.task.partition(" on ")[2] for _, group in numbered)))
    about, apart = headings(f"on {data}" if data else "", [group for _, group in numbered])
    pairs = itertools.groupby(zip(apart, numbered, strict=True), lambda pair: pair[0])
    bodies = "".join(_body(heading, [of for _, of in own], axis, usual, lane) for heading, own in pairs)
    heads = "".join(f'<th scope="col">{text}</th>' for text in ("condition", "plot", "throughput ratio", "verdict"))
    return (
        f'<div class="of-workload"><table class="workload" data-workload="{html.escape(name)}">'
        f"<caption>{html.escape(name)} <small>{html.escape(about)}</small></caption>"
        f"<colgroup><col><col><col><col></colgroup><thead><tr>{heads}</tr></thead>{bodies}</table></div>"
    )


def _body(heading: str, numbered: list[tuple[int, Group]], axis: Axis, usual: str, lane: str) -> str:
    """The rows of comparisons in one setting, below it, where that is not the whole workload's."""
    rows = "".join(
        _row(number, place, group, axis, usual, lane)
        for number, group in numbered
        for place in range(len(group.members))
    )
    head = f'<tr class="setting"><th scope="rowgroup" colspan="4">{html.escape(heading)}</th></tr>' if heading else ""
    return f"<tbody>{head}{rows}</tbody>"


def _row(number: int, place: int, group: Group, axis: Axis, usual: str, lane: str) -> str:
    member, ratio = group.members[place], group.relative_to(0).get(place)
    kind = ratio.kind if ratio else ratios.NONE
    against = versus(member, group.members[0], usual) if place else ""
    beside = f" <i>vs {html.escape(against)}</i>" if against else ""
    who = f"{mark(member.look)}{_who(member, lane)} <small>{html.escape(group.apart(place))}{beside}</small>"
    start = f'<tr class="{kind}" data-group="{number}" data-member="{place}"'
    if not place:  # what the others are relative to: there until a reader compares with another
        return f'{start} hidden><th scope="row">{who}</th><td></td><td></td><td></td></tr>'
    numbers = html.escape(ratio.text if ratio and ratio.kind != ratios.NONE else "")
    verdict = html.escape(ratio.verdict if ratio else "")
    return (
        f"{start}>"
        f'<th scope="row">{who}</th>'
        f"<td>{strip(ratio, group, member.look, axis)}</td><td>{numbers}</td>"
        f'<td class="verdict {kind}">{glyph(kind)}<span>{verdict}</span></td></tr>'
    )


def _embedded(text: str) -> str:
    """JSON as a page can hold it: no text may look like the end of the element."""
    return text.replace("<", "\\u003c")
