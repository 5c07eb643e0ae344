"""The report's first page, for a reader who has twenty seconds: all ratios as one picture, the published claims as a
board, and three sentences, of which the first is the lead.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
from IPython.display import HTML

from benchlib import tables
from benchlib.equivalence.certificate import DIFFERENT, NOT_CHECKED
from benchlib.literature.verdicts import NO_DIFFERENCE, NOT_MEASURED, NOT_REPRODUCED, REPRODUCED
from benchlib.stats.comparison import FASTER, SLOWER
from benchlib.suite.report import forest, ratios
from benchlib.suite.report.certainty import controls, resolved
from benchlib.suite.report.gathered import Gathered
from benchlib.suite.report.glance import compared, machines, places
from benchlib.suite.report.ratios import Group, Ratio

UNDECIDED = "undecided: in some cases neither a difference nor sameness is shown"
"""Of a claim of which *no difference shown* would say too much (``verdicts.undecided``)."""

IN_PART = "not measured in full"
"""Of a claim of which something was measured here, but not all that its verdict needs."""

SHAPES = {
    REPRODUCED: "reproduced",
    NOT_REPRODUCED: "not-reproduced",
    NO_DIFFERENCE: "open",
    UNDECIDED: "open",
    IN_PART: "none",
    NOT_MEASURED: "none",
}
"""By a claim's verdict, its shape, in the order of the board."""

RATIOS = "report_ratios"
"""The name of the table of all ratios, relative to every choice of baseline, and of their figure."""

MANY = 3  # frameworks of which a sentence tells each one's largest effects


def picture(report: Gathered) -> HTML:
    """The first page; writes the table and the figure of all ratios, which ``benchlib trace`` reads."""
    of_notebooks = ratios.groups(report)
    every = ratios.once(of_notebooks)
    files = _files(report, of_notebooks, every) if every else []
    lead, *others = (f"<p>{html.escape(one)}</p>" for one in (who(every), how_sure(report, every), on_what(report)))
    usual = forest.usual_baseline(every)
    caption = (
        f'Throughput relative to <span class="relative-to">{html.escape(usual)}</span> (or to what stands behind vs), '
        "with 95 % intervals over processes; right of the line (the axis is logarithmic) is faster. "
        f"On {html.escape(', and on '.join(machines(report)))}."
        if every
        else ""
    )
    links = "".join(f' <a href="{path}">{Path(path).suffix[1:].upper()}</a>' for path in files)
    return HTML(
        f"{forest.definitions()}"
        f'<div class="first-page"><section class="ratios" aria-label="All ratios of throughput">'
        f"<h2>Who is faster, and how sure that is</h2>"
        f'<p class="caption">{caption}{links}</p>{forest.legend(every) if every else ""}'
        f"{forest.picture(every)}</section>{board(report)}"
        f'<section class="sentences lead" aria-label="In a sentence">{lead}</section>'
        f'<section class="sentences" aria-label="How sure, on what">{"".join(others)}</section></div>'
    )


def _files(report: Gathered, of_notebooks: Sequence[Group], every: Sequence[Group]) -> list[str]:
    """Write the table, in which a ratio that two notebooks have stands twice, so that either's key leads to it, and the
    figure; their paths.
    """
    from benchlib.plotting import figures  # matplotlib takes long to import: not for nothing
    from benchlib.suite.report import forest_figure

    (report.folder / "tables").mkdir(parents=True, exist_ok=True)
    ratios.table(of_notebooks).to_csv(report.folder / "tables" / f"{RATIOS}.csv", index=False)
    figures.save(forest_figure.draw(every), report.folder / "figures", RATIOS)
    return [f"tables/{RATIOS}.csv", f"figures/{RATIOS}.svg", f"figures/{RATIOS}.pdf"]


def board(report: Gathered) -> str:
    """The published claims by verdict."""
    head = "<h2>What was published, and what comes out here</h2>"
    if "claims" not in report.summaries:
        return f'<aside class="board">{head}<p>The claims have not been judged yet.</p></aside>'
    frame = pd.DataFrame(**report.summaries["claims"]["verdicts"])
    frame["verdict"] = frame["verdict"].mask(frame["undecided"], UNDECIDED)
    frame["verdict"] = frame["verdict"].mask((frame["verdict"] == NOT_MEASURED) & (frame["here"] != ""), IN_PART)
    parts = [part for verdict in SHAPES for part in _of_verdict(verdict, frame[frame["verdict"] == verdict])]
    return f'<aside class="board">{head}{"".join(parts)}</aside>'


def who(every: Sequence[Group]) -> str:
    """Which framework is faster than the usual baseline's on what, and by how much at most."""
    of_frameworks = dict(_by_framework(every))
    if not of_frameworks:
        return "No ratio between frameworks has been measured yet."
    usual = _framework(forest.usual_baseline(every), every)
    return "; ".join(_clause(name, shown, usual, len(of_frameworks)) for name, shown in of_frameworks.items()) + "."


def how_sure(report: Gathered, every: Sequence[Group]) -> str:
    """What identical processes show, how many ratios show nothing, and how many models are the same."""
    parts = []
    if by_notebook := controls(report):
        seen = resolved(pd.concat(by_notebook.values()).drop_duplicates())
        parts.append(
            "what identical processes show (A/A) says how small a difference can be seen: "
            f"{seen['half_width_median']:.0f} % in the median comparison, {seen['half_width_largest']:.0f} % in the "
            "least sure"
        )
    if restless := sum(group.restless for group in every):
        parts.append(f"in {restless} of {len(every)} comparisons they differ by more than chance: believe these least")
    shown = [ratio for group in every for ratio in group.relative_to(0).values()]
    if unclear := sum(ratio.kind == "open" for ratio in shown):
        parts.append(f"{unclear} of {len(shown)} ratios show neither a difference nor that there is none")
    if certificates := report.certificates:
        count = Counter(one.verdict for one in certificates)
        count_same = sum(one.same for one in certificates)
        same = f"of {len(certificates)} models (each framework, mode and size) {count_same} were shown to be the same"
        without = {"differ": count[DIFFERENT], "could not be checked": count[NOT_CHECKED]}
        told = " and ".join(f"{number} {what}" for what, number in without.items() if number)
        parts.append(f"{same}, {told} and have no ratio" if told else same)
    text = "; ".join(parts) or "nothing is known yet of how sure it is"
    return f"{text[0].upper()}{text[1:]}."


def on_what(report: Gathered) -> str:
    """The machine, the versions, the data; what failed, is missing, stale or still to come."""
    _, *what = compared(report)
    lines = [*places(report), *what]
    failed = sum(summary["failures"] for summary in report.summaries.values())
    lines.append(f"{len(report.measured):,} processes{f', {failed} failed' if failed else ''}")
    if missing := [*report.missing, *(["damaged files"] if report.wrong or report.lost else [])]:
        lines.append(f"missing: {', '.join(missing)}")
    if report.stale:
        lines.append(f"stale, of before: {', '.join(report.stale)}")
    return f"On {'; '.join(lines)}."


def _of_verdict(verdict: str, rows: pd.DataFrame) -> Iterator[str]:
    if not len(rows):
        return
    shape = SHAPES[verdict]
    head = f'<h3 class="claims {shape}">{forest.glyph(shape)}{len(rows)} {verdict}</h3>'
    yield head
    if verdict == NOT_MEASURED:
        yield f'<p class="claims">{", ".join(map(html.escape, rows["claim"]))}</p>'
        return
    here = "Here not " if verdict == IN_PART else "Here: "
    items = "".join(
        f"<li><b>{html.escape(row.claim)}</b> {html.escape(row.says)} "
        f'<small>{html.escape(row.published_on)}<span class="here">. {html.escape(here + row.here)}</span></small></li>'
        for row in rows.itertuples()
    )
    yield f'<ul class="claims">{items}</ul>'


def _by_framework(every: Sequence[Group]) -> Iterator[tuple[str, list[tuple[Group, Ratio]]]]:
    """By framework, its ratios relative to the framework of the usual baseline."""
    usual = _framework(forest.usual_baseline(every), every)
    pairs = [
        (group.members[ratio.of].choices["framework"], (group, ratio))
        for group in every
        if group.members[0].choices["framework"] == usual
        for ratio in group.relative_to(0).values()
    ]
    for name in dict.fromkeys(name for name, _ in pairs if name != usual):
        yield name, [pair for of, pair in pairs if of == name]


def _framework(subject: str, every: Sequence[Group]) -> str:
    return next((one.choices["framework"] for group in every for one in group.members if one.subject == subject), "")


def _clause(name: str, shown: list[tuple[Group, Ratio]], usual: str, frameworks: int) -> str:
    """How often a framework is shown to be what; of few frameworks, with the largest effects."""
    kinds = Counter(ratio.kind for _, ratio in shown)
    told = []
    for verdict in sorted((FASTER, SLOWER), key=lambda one: -kinds[one]):
        if kinds[verdict]:
            where = f" (most on {_most(shown, verdict)})" if frameworks <= MANY else ""
            told.append(f"{verdict} in {kinds[verdict]}{where}")
    others = {"as fast": ratios.SAME, "not told apart": "open", "without a ratio": ratios.NONE}
    told += [f"{words} in {kinds[kind]}" for words, kind in others.items() if kinds[kind]]
    return f"{name} against {usual}, {len(shown)} ratios: {', '.join(told)}"


def _most(shown: list[tuple[Group, Ratio]], verdict: str) -> str:
    """The largest effect of a verdict: on which workload, and how many times."""
    pick = max if verdict == FASTER else min
    group, ratio = pick(
        ((group, ratio) for group, ratio in shown if ratio.kind == verdict), key=lambda pair: pair[1].interval.estimate
    )
    value = ratio.interval.estimate
    times = value if verdict == FASTER else 1 / value
    return f"{group.workload}, {tables.number(times, 2 if times >= 1.095 else 3)} times"
