"""What the notebooks gave: verdicts, findings, figures and tables; what is missing or failed; and every measurement."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from IPython.display import HTML

from benchlib import tables
from benchlib.stats.frame import IMPOSSIBLE, NOT_COMPARED
from benchlib.stats.planner import PRECISION
from benchlib.store import frame as frame_of
from benchlib.suite.report.gathered import Gathered, distinct
from benchlib.suite.report.setting import PLACE, listed, place
from benchlib.tables import span_text


def verdicts(report: Gathered) -> HTML:
    """The verdicts on the published claims."""
    if "claims" not in report.summaries:
        return tables.bullets(["The claims have not been judged: run again."])
    frame = pd.DataFrame(**report.summaries["claims"]["verdicts"])
    doubts = frame[frame["doubt"] != tables.MISSING]
    sentences = doubts["claim"] + ", in doubt: " + doubts["doubt"]
    caption = "Each claim, what it was published of, and the verdict on this machine."
    shown = tables.html(frame.drop(columns=["verdict", "undecided", "here", "doubt"]), caption)
    return HTML(shown.data + tables.bullets(sentences).data)


def findings(report: Gathered) -> HTML:
    """All findings of each notebook."""
    sections = (
        f"<h4>{html.escape(summary['title'])}</h4>{tables.bullets(summary['findings']).data}"
        for summary in report.summaries.values()
    )
    return HTML("".join(sections))


def notes(report: Gathered) -> HTML:
    """What makes numbers less sure than they look, and what a reader has to know of data and machine: each once, with
    the notebooks that say it.
    """
    said: dict[str, list[str]] = {}
    for summary in report.summaries.values():
        for sentence in (*summary["warnings"], *summary["notes"]):
            said.setdefault(sentence, []).append(summary["title"])
    each = [f"{sentence} ({', '.join(titles)})" for sentence, titles in said.items()]
    return tables.bullets([*_unfinished(report), *each] or ["There is nothing to note."])


def missing(report: Gathered) -> HTML:
    """Notebooks that failed, have not run or are stale, or had nothing to measure; what cannot be run here; files that
    are damaged or gone, and how many measurements failed.
    """
    wrong, left = [*_missing(report)], [*_not_here(report)]
    nothing = "Every notebook has run, and nothing failed of what can be measured here."
    return tables.bullets([*(wrong or [nothing]), *left])


def failures(report: Gathered) -> HTML:
    """Every measurement that failed."""
    return tables.failed(pd.DataFrame([row for summary in report.summaries.values() for row in summary["failed"]]))


def again(report: Gathered) -> HTML:
    """A row for each comparison and training run: its key, under which its measurements lie on disk."""
    measured = frame_of(report.measured)
    if not len(measured):
        return tables.bullets(["There are no measurements."])
    groups = measured.groupby(["kind", "group"], sort=False)
    frame = pd.DataFrame(
        {
            "conditions": groups["label"].agg(lambda labels: " | ".join(dict.fromkeys(labels))),
            "processes": groups.size(),
            "seeds": groups["seed"].agg(listed),
        }
    ).reset_index()
    path = Path("tables", "measurements.csv")
    measured.to_csv(report.folder / path, index=False)
    caption = (
        f"All measurements of this report; {path} has a row for each process, with versions, knobs and code. "
        "Seeds are those of dropout; a comparison's weights and batches have seed 0, a training run's have its own."
    )
    return tables.html(frame, caption)


def _unfinished(report: Gathered) -> Iterator[str]:
    """How many comparisons ended before their intervals were as narrow as was asked for."""
    every = pd.concat(
        [
            frame.drop_duplicates("part")[["ended", "half_width_percent"]]
            for frame in report.frames.values()
            if len(frame)
        ]
        or [pd.DataFrame(columns=["ended", "half_width_percent"])]
    ).dropna()
    short = every[every["ended"] != PRECISION]
    if len(short):
        widths = span_text(list(short["half_width_percent"]), 2)
        yield (
            f"{len(short)} of {len(every)} comparisons ended before their intervals were as narrow as was asked for: "
            f"half-widths of {widths} %. More minutes make them narrower; the notebooks say how many it would take."
        )


def _not_here(report: Gathered) -> Iterator[str]:
    """What was asked for, and has no number because this machine or these environments do not have it."""
    for name, summary in report.summaries.items():
        if name == "claims":  # each of them says by itself what it takes
            continue
        if not summary["conditions"] and not summary["certificates"] and summary["question"]:
            yield f"{summary['title']}: {' '.join(summary['findings']) or 'nothing was measured.'}"
    for name, frame in report.frames.items():
        cannot = frame[frame["why"].isin((IMPOSSIBLE, NOT_COMPARED))] if len(frame) else frame
        if len(cannot):
            which = "; ".join(dict.fromkeys(f"{row['subject']} on {row['workload']}" for _, row in cannot.iterrows()))
            yield f"{report.summaries[name]['title']}: not possible here: {which} (the notebook's tables say why)."


def _missing(report: Gathered) -> Iterator[str]:
    for name, reason in report.missing.items():
        yield f"{name}: {reason}"
    for name, reason in report.stale.items():
        yield (
            f"{name}: a result of before, which is stale ({reason}): nothing was measured for another; run again with "
            "time to measure."
        )
    yield from report.wrong
    for path in sorted(report.lab.store.damaged.glob("[!.]*.parquet")):
        yield (
            f"{path.relative_to(report.folder)}: could not be used, and was measured again; delete it when it has "
            "told you what you want to know."
        )
    for path, why in report.lost:
        yield f"{path} {why}; run again."
    places = distinct({name: m.machine.get(name) for name in PLACE} for m in report.measured)
    if len(places) > 1:
        yield (
            f"Measurements of {len(places)} machines are gathered here ({'; '.join(map(place, places))}); "
            "each comparison is of one, but do not compare across them."
        )
    for name, summary in report.summaries.items():
        if summary["failures"]:
            yield f"{name}: {summary['failures']} measurements failed (see what failed)."
