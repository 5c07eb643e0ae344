"""The parts of the page that show notebooks' results: a question each, findings, notes, missing and failed ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from html import escape
from pathlib import Path
from typing import Any

from IPython.display import HTML

from benchlib import tables
from benchlib.report.load import Results
from benchlib.report.setting import places
from benchlib.stats.planner import PRECISION


def questions(results: Results, names: Iterable[str], with_table: bool = True) -> HTML:
    """Show each of these notebooks with its question, figure, answer and folded table."""
    every = [_question(results, results.summaries[name], with_table) for name in names if name in results.summaries]
    return HTML("".join(every) or tables.bullets(["There is no result yet."]).data)


def _question(results: Results, summary: dict[str, Any], with_table: bool) -> str:
    figures, shown = _parts(results, summary)
    answers = "".join(f"<li>{escape(sentence)}</li>" for sentence in summary["answers"])
    folded = "".join(f"<details><summary>The numbers</summary>{table}</details>" for table in shown[:with_table])
    return (
        f'<section><h3>{escape(summary["title"])}</h3><p class="question">{escape(summary["question"])}</p>'
        f'<div class="answer">{"".join(figures[:1])}<ul>{answers}</ul></div>{folded}</section>'
    )


def rest(results: Results, with_table: Collection[str], without: Collection[str]) -> HTML:
    """Show all findings, and the figures and tables that were not shown with the questions, ``with_table`` or not."""
    parts = []
    for name, summary in results.summaries.items():
        title, table = summary["title"], int(name in with_table)
        # On paper figures stand where there is room: each caption says whose it is.
        figures, shown = _parts(results, summary, f"{title}: ")
        findings = tables.bullets(summary["findings"]).data
        parts += [f"<h4>{escape(title)}</h4>{findings}", *figures[table or name in without :], *shown[table:]]
    return HTML(f'<div class="others">{"".join(parts)}</div>')


def _parts(results: Results, summary: dict[str, Any], of: str = "") -> tuple[list[str], list[str]]:
    """Return the figures and the tables of a notebook, each with links to its files; ``of`` is before captions."""
    files, shown = {*summary["figures"], *summary["tables"]}, dict(summary["in_report"])
    drawn = [path for path in summary["figures"] if path.endswith(".svg")]
    parts: dict[str, str] = {}
    for path in (*drawn, *shown):
        if why := results.changed.get(path, "" if (results.folder / path).is_file() else "is gone"):
            parts[path] = tables.bullets([f"{path} {why}: run again."]).data
            continue
        caption = f"{of}{summary['captions'].get(path, '')}"
        part = shown.get(path) or tables.image((results.folder / path).read_bytes(), caption).data
        beside = [str(Path(path).with_suffix(kind)) for kind in (".svg", ".pdf", ".csv")]
        links = ", ".join(f'<a href="{one}">{one[-3:].upper()}</a>' for one in beside if one in files)
        parts[path] = f'{part}<p class="links">As {links}</p>'
    return [parts[path] for path in drawn], [parts[path] for path in shown]


def notes(results: Results) -> HTML:
    """Show the reasons why numbers are less sure than they look, and special facts of data and machine."""
    said: dict[str, list[str]] = {}
    for summary in results.summaries.values():
        for sentence in (*summary["warnings"], *summary["notes"]):
            said.setdefault(sentence, []).append(summary["title"])
    each = [f"{sentence} ({', '.join(titles)})" for sentence, titles in said.items()]
    compared = results.rows("throughput_ratio").drop_duplicates(["notebook", "part"])
    if short := int((compared["ended"].fillna(PRECISION) != PRECISION).sum()):
        each.insert(0, f"{short} of {len(compared)} comparisons ended before they were as sharp as was asked for.")
    return tables.bullets(each or ["There is nothing to note."])


def missing(results: Results) -> HTML:
    """Name the results that failed, have not run, are stale, damaged or gone, or cannot be measured here."""
    items = [f"{name}: {reason}" for name, reason in results.missing.items()]
    items += [f"{name}: this result is stale ({why}); run again to measure." for name, why in results.stale.items()]
    items += results.wrong
    if len(machines := places(results)) > 1:
        items.append(f"These are results of {len(machines)} machines; do not compare them: {' | '.join(machines)}.")
    for name, summary in results.summaries.items():
        if summary["failed"]:
            items.append(f"{name}: {len(summary['failed'])} measurements failed (see What failed).")
        if not (summary["conditions"] or summary["certificates"] or "verdicts" in summary):
            items.append(f"{name}: {' '.join(summary['findings'])}")
    return tables.bullets(items or ["Every notebook has run, and nothing failed."])
