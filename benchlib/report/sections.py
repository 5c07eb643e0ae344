"""The parts of the page that show what notebooks gave: a question each, findings, notes, what is missing or failed."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import HTML

from benchlib import tables
from benchlib.report.load import Results
from benchlib.report.setting import places


def questions(results: Results, names: Iterable[str], with_table: bool = True) -> HTML:
    """Show each of these notebooks with its question, figure, answer and folded table."""
    every = [_question(results, name, with_table) for name in names if name in results.summaries]
    return HTML("".join(every) or tables.bullets(["There is no result yet."]).data)


def rest(results: Results, but: Iterable[str], without_table: Iterable[str]) -> HTML:
    """Show all findings of each notebook, and the figures and tables that its question does not show; all of those of
    the notebooks ``but``, which have none.
    """
    parts = []
    for name, summary in results.summaries.items():
        # On paper figures stand where there is room: each caption says whose it is.
        drawn, shown = int(name not in but), int(name not in {*but, *without_table})
        figures = "".join(_figure(results, summary, path, f"{summary['title']}: ") for path in _drawn(summary)[drawn:])
        rows = "".join(_table(results, *one) for one in summary["in_report"][shown:])
        parts.append(f"<h4>{escape(summary['title'])}</h4>{tables.bullets(summary['findings']).data}{figures}{rows}")
    return HTML(f'<div class="others">{"".join(parts)}</div>')


def notes(results: Results) -> HTML:
    """Show what makes numbers less sure than they look, and what is special of data and machine."""
    said: dict[str, list[str]] = {}
    for summary in results.summaries.values():
        for sentence in (*summary["warnings"], *summary["notes"]):
            said.setdefault(sentence, []).append(summary["title"])
    each = [f"{sentence} ({', '.join(titles)})" for sentence, titles in said.items()]
    return tables.bullets(each or ["There is nothing to note."])


def missing(results: Results) -> HTML:
    """Name what failed, has not run, is stale, damaged or gone, and what cannot be measured here."""
    told = [f"{name}: {reason}" for name, reason in results.missing.items()]
    told += [f"{name}: this result is stale ({why}); run again to measure." for name, why in results.stale.items()]
    told += results.wrong
    if len(machines := places(results)) > 1:
        told.append(f"These are results of {len(machines)} machines; do not compare them: {' | '.join(machines)}.")
    for name, summary in results.summaries.items():
        if summary["failed"]:
            told.append(f"{name}: {len(summary['failed'])} measurements failed (see What failed).")
        if not (summary["conditions"] or summary["certificates"] or "verdicts" in summary):
            told.append(f"{name}: nothing was measured. {' '.join(summary['findings'])}")
    return tables.bullets(told or ["Every notebook has run, and nothing failed."])


def failures(results: Results) -> HTML:
    """Show every measurement that failed."""
    return tables.failed(pd.DataFrame(list(results.each("failed"))))


def _question(results: Results, name: str, with_table: bool) -> str:
    summary = results.summaries[name]
    answers = "".join(f"<li>{escape(sentence)}</li>" for sentence in summary["answers"])
    figures = "".join(_figure(results, summary, path) for path in _drawn(summary)[:1])
    table = "".join(_table(results, *one) for one in summary["in_report"][:with_table])
    folded = f"<details><summary>The numbers</summary>{table}</details>" if table else ""
    return (
        f'<section><h3>{escape(summary["title"])}</h3><p class="question">{escape(summary["question"])}</p>'
        f'<div class="answer">{figures}<ul>{answers}</ul></div>{folded}</section>'
    )


def _drawn(summary: dict[str, Any]) -> list[str]:
    return [path for path in summary["figures"] if path.endswith(".svg")]


def _figure(results: Results, summary: dict[str, Any], path: str, of: str = "") -> str:
    """Show a figure with links to its files; ``of`` is before its caption."""
    if (why := results.why_not(path)) is not None:
        return tables.bullets([f"{path} {why}: run again."]).data
    beside = [str(Path(path).with_suffix(kind)) for kind in (".svg", ".pdf", ".csv")]
    there = [one for one in beside if one in {*summary["figures"], *summary["tables"]}]
    shown = tables.image((results.folder / path).read_bytes(), f"{of}{summary['captions'][path]}")
    return shown.data + _links("figure", there)


def _table(results: Results, path: str, shown: str) -> str:
    why = results.why_not(path)
    return shown + _links("table", [path]) if why is None else tables.bullets([f"{path} {why}: run again."]).data


def _links(what: str, paths: Iterable[str]) -> str:
    links = ", ".join(f'<a href="{path}">{Path(path).suffix[1:].upper()}</a>' for path in paths)
    return f'<p class="links">This {what} as {links}</p>'
