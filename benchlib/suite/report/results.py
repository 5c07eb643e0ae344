"""What the notebooks gave: verdicts, findings, figures and tables; what is missing or failed; and every measurement."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import HTML

from benchlib.store import frame as frame_of
from benchlib.suite import showing, tables
from benchlib.suite.report.gathered import Gathered, distinct
from benchlib.suite.report.setting import PLACE, listed, place


def verdicts(report: Gathered) -> HTML:
    """The verdicts on the published claims."""
    if "claims" not in report.summaries:
        return tables.bullets(["The claims have not been judged: run again."])
    frame = pd.DataFrame(**report.summaries["claims"]["verdicts"])
    doubts = frame[frame["doubt"] != tables.MISSING]
    sentences = doubts["claim"] + ", in doubt: " + doubts["doubt"]
    caption = "Each claim, what it was published of, and the verdict on this machine."
    shown = tables.html(frame.drop(columns=["verdict", "undecided", "doubt"]), caption)
    return HTML(shown.data + tables.bullets(sentences).data)


def findings(report: Gathered) -> HTML:
    """The findings of each notebook."""
    return _sections(report, lambda summary: [tables.bullets([*summary["findings"], *summary["notes"]]).data])


def shown(report: Gathered) -> HTML:
    """By notebook, all figures and the tables that carry the findings."""

    def parts(summary: dict[str, Any]) -> Iterator[str]:
        figures = [(path, None) for path in summary["figures"] if path.endswith(".svg")]
        for path, table in [*figures, *summary["in_report"]]:
            why_not = report.why_not(path)
            if why_not is not None:
                yield tables.bullets([f"{path} {why_not}: run again."]).data
            else:
                yield table or showing.image((report.folder / path).read_bytes(), summary["captions"][path]).data

    return _sections(report, parts)


def missing(report: Gathered) -> HTML:
    """Notebooks that failed, have not run or are stale, files that are damaged or gone, and how many measurements
    failed.
    """
    return tables.bullets(
        [*_missing(report)] or ["Nothing is missing: every notebook has run, and no measurement failed."]
    )


def failures(report: Gathered) -> HTML:
    """Every measurement that failed."""
    return showing.failed(pd.DataFrame([row for summary in report.summaries.values() for row in summary["failed"]]))


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


def _sections(report: Gathered, parts: Any) -> HTML:
    return HTML(
        "".join(
            f"<h3>{html.escape(summary['title'])}</h3>{''.join(parts(summary))}"
            for summary in report.summaries.values()
        )
    )


def _missing(report: Gathered) -> Iterator[str]:
    for name, reason in report.missing.items():
        yield f"{name}: {reason}"
    for name, reason in report.stale.items():
        yield (
            f"{name}: a result of before, which is stale ({reason}): nothing was measured for another; run again with "
            "time to measure."
        )
    yield from report.wrong
    for path in sorted(report.lab.store.damaged.glob("*.parquet")):
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
