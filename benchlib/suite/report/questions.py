"""The questions of the notebooks, each with its figure, its answer in a few sentences, and its table folded away; and
all other figures and tables.
"""

from __future__ import annotations

import html
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from IPython.display import HTML

from benchlib import tables
from benchlib.suite.report.gathered import Gathered

OF_CERTAINTY = ("equivalence", "instrument")
"""The notebooks that ask how far the others can be believed."""

BESIDE = ("claims",)
"""The notebooks that the first page answers for."""


def questions(report: Gathered) -> HTML:
    """A section for each notebook that compares or trains."""
    return _sections(report, [name for name in report.summaries if name not in {*OF_CERTAINTY, *BESIDE}])


def of_certainty(report: Gathered) -> HTML:
    """A section for each notebook that asks how far the others can be believed."""
    return _sections(report, [name for name in report.summaries if name in OF_CERTAINTY])


def others(report: Gathered) -> HTML:
    """By notebook, the figures and tables that its section has not."""
    every = "".join(_others(report, name, report.summaries[name]) for name in report.summaries)
    return HTML(f'<div class="others">{every}</div>' if every else "")


def _others(report: Gathered, name: str, summary: dict[str, Any]) -> str:
    """On paper figures stand where there is room for them, as they do in a paper: so each caption says whose it is, and
    the heading is that of the tables.
    """
    drawn, shown = (name not in BESIDE), (name not in {*BESIDE, *OF_CERTAINTY})  # in its section
    title = summary["title"]
    figures = "".join(_figure(report, summary, path, f"{title}: ") for path in _figures(summary)[drawn:])
    rows = "".join(_table(report, path, table) for path, table in summary["in_report"][shown:])
    heading = html.escape(title)
    if not figures:
        return f"<h4>{heading}</h4>{rows}" if rows else ""
    again = f'<h4 class="on-paper">{heading}</h4>' if rows else ""
    return f'<h4 class="on-screen">{heading}</h4>{figures}{again}{rows}'


def _sections(report: Gathered, names: Iterable[str]) -> HTML:
    every = "".join(_section(report, report.summaries[name], name not in OF_CERTAINTY) for name in names)
    return HTML(every or tables.bullets(["There is no result yet."]).data)


def _section(report: Gathered, summary: dict[str, Any], with_table: bool) -> str:
    answers = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in summary["answers"])
    figures = "".join(_figure(report, summary, path) for path in _figures(summary)[:1])
    folded = "".join(
        f"<details><summary>The numbers</summary>{_table(report, path, shown)}</details>"
        for path, shown in summary["in_report"][:with_table]
    )
    left = len(_figures(summary)) > 1 or len(summary["in_report"]) > with_table
    more = '<p class="more">More of this question is in the <a href="#appendix">appendix</a>.</p>' if left else ""
    return (
        f"<section><h3>{html.escape(summary['title'])}</h3>"
        f'<p class="question">{html.escape(summary["question"])}</p>'
        f'<div class="answer">{figures}<ul>{answers}</ul></div>{folded}{more}</section>'
    )


def _figures(summary: dict[str, Any]) -> list[str]:
    return [path for path in summary["figures"] if path.endswith(".svg")]


def _figure(report: Gathered, summary: dict[str, Any], path: str, of: str = "") -> str:
    """A figure, with links to its files; ``of`` is before its caption."""
    if (why_not := report.why_not(path)) is not None:
        return tables.bullets([f"{path} {why_not}: run again."]).data
    beside = [str(Path(path).with_suffix(kind)) for kind in (".svg", ".pdf", ".csv")]
    there = [one for one in beside if one in {*summary["figures"], *summary["tables"]}]
    caption = f"{of}{summary['captions'][path]}"
    return tables.image((report.folder / path).read_bytes(), caption).data + _links("figure", there)


def _table(report: Gathered, path: str, shown: str) -> str:
    if (why_not := report.why_not(path)) is not None:
        return tables.bullets([f"{path} {why_not}: run again."]).data
    return shown + _links("table", [path])


def _links(what: str, paths: Iterable[str]) -> str:
    links = ", ".join(f'<a href="{path}">{Path(path).suffix[1:].upper()}</a>' for path in paths)
    return f'<p class="links">This {what} as {links}</p>' if links else ""
