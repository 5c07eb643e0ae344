"""The report in a table: a line for each notebook, from the typed columns of the notebooks' frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
from IPython.display import HTML

from benchlib import frameworks, tables
from benchlib.equivalence.certificate import DIFFERENT, NOT_CHECKED
from benchlib.literature.verdicts import VERDICTS
from benchlib.plotting import naming
from benchlib.stats.comparison import same_within
from benchlib.suite.report.certainty import controls, resolved
from benchlib.suite.report.gathered import Gathered, distinct
from benchlib.suite.report.setting import place

RATIO = "throughput_ratio"


def glance(report: Gathered) -> HTML:
    """What was compared, on what, what came out, how sure it is."""
    parts = {
        "What was compared": compared(report),
        "On what": places(report),
        "What came out": headlines(report),
        "How sure it is": certainty(report),
    }
    rows = [(name, "\n".join(lines)) for name, lines in parts.items()]
    usual = _usual_baseline(report.frames.values())
    caption = (
        "This report on one page; every sentence is taken up below. Faster or slower, and in brackets how many times "
        f"as fast, over all 95 % intervals: throughput relative to {usual}, where no other is named."
    )
    return tables.html(pd.DataFrame(rows, columns=["", " "]), caption)


def compared(report: Gathered) -> list[str]:
    """The subjects, the workloads and their data."""
    conditions = report.conditions
    if not conditions:
        return ["nothing yet"]
    named = naming.implementations((one.framework, one.environment) for one in conditions)
    subjects = dict.fromkeys(f"{named[one.framework, one.environment]} {one.mode}" for one in conditions)
    names = list(dict.fromkeys(one.workload for one in conditions))
    timed = {one.condition.workload for one in report.measured}
    checked = [name for name in names if name not in timed]
    names = [name for name in names if name in timed]
    parts = [
        f"{len(names)} workload{'s' * (len(names) != 1)} timed: {', '.join(names)}" if names else "",
        f"{len(checked)} checked only: {', '.join(checked)}" if checked else "",
    ]
    sets = dict.fromkeys(one.data for one in conditions)
    data = [", ".join(name for name in sets if name != "random"), "random numbers" if "random" in sets else ""]
    return [
        ", ".join(subjects),
        "; ".join(filter(None, parts)),
        f"data: {', and '.join(filter(None, data))}",
    ]


def headlines(report: Gathered) -> list[str]:
    """A line for the claims, and one for each notebook that measured something, or could not."""
    frames = report.frames
    usual = _usual_baseline(frames.values())
    lines = [_of_claims(report.summaries["claims"])] if "claims" in report.summaries else []
    for name, summary in report.summaries.items():
        groups = "; ".join(_groups(frames[name], usual)) if name in frames else ""
        if not groups and not summary["certificates"] and name != "claims":
            groups = "nothing was measured"
        if groups:
            lines.append(f"{summary['title']}{_of_what(summary['conditions'])}: {groups}.")
    return lines


def certainty(report: Gathered) -> list[str]:
    """What identical processes show, how many models were proved the same, and what failed or is missing."""
    lines = []
    if by_notebook := controls(report):
        rows = pd.concat(by_notebook.values()).drop_duplicates()
        facts, margins = resolved(rows), set(rows["margin"])
        same = same_within(*margins) if len(margins) == 1 else "the same within their notebooks' margins"
        lines.append(
            f"Identical processes against each other (A/A): {facts['A/A interval includes 1']} intervals include 1, "
            f"{facts['within the margin of 1']} are {same}; half-widths of {facts['half_width_median']:.0f} % in the "
            f"median, {facts['half_width_largest']:.0f} % at most: a comparison cannot show less than its own."
        )
    if certificates := report.certificates:
        count = Counter(one.verdict for one in certificates)
        others = {"differed": count[DIFFERENT], "could not be run or checked": count[NOT_CHECKED]}
        without = " and ".join(f"{number} {what}" for what, number in others.items() if number)
        lines.append(
            f"{sum(one.same for one in certificates)} of {len(certificates)} models agree with the reference's."
            + (f" {without}: there is no ratio of them." if without else "")
        )
    failed = sum(summary["failures"] for summary in report.summaries.values())
    lines.append(
        f"{len(report.measured):,} processes were measured, {failed} failed; intervals are 95 % intervals over "
        "processes, of training runs over their seeds."
    )
    if missing := [*report.missing, *(["damaged files"] if report.wrong or report.lost else [])]:
        lines.append(f"Missing: {', '.join(missing)} (see below).")
    if report.stale:
        lines.append(f"Stale, of before: {', '.join(report.stale)} (see below).")
    return lines


def places(report: Gathered) -> list[str]:
    """Each machine; the versions of the frameworks; and when it was."""
    measured = report.measured
    of_frameworks = {one for name in frameworks.names() for one in frameworks.distributions(name)}
    versions = (f"{name} {m.versions[name]}" for m in measured for name in m.versions if name in of_frameworks)
    days = sorted(m.started_utc[:10] for m in measured)
    lines = [*machines(report), "; ".join(dict.fromkeys(versions))]
    return [*filter(None, lines), *([f"measured {' to '.join(dict.fromkeys((days[0], days[-1])))}"] if days else [])]


def machines(report: Gathered) -> list[str]:
    """Each machine that something was measured on."""
    return [place(one) for one in distinct(m.machine for m in report.measured)]


def _of_claims(summary: dict[str, Any]) -> str:
    frame = pd.DataFrame(**summary["verdicts"])
    groups = {verdict: frame.loc[frame["verdict"] == verdict, "undecided"] for verdict in VERDICTS}
    counted = ", ".join(
        f"{len(rows)} {verdict}" + (f" ({rows.sum()} of them undecided)" if rows.any() else "")
        for verdict, rows in groups.items()
        if len(rows)
    )
    return f"{summary['title']}: of {len(frame)} published, {counted}."


def _of_what(conditions: list[dict[str, Any]]) -> str:
    """In brackets what all of a notebook's conditions share of workload, image size and batch size, if it is one
    workload: two notebooks may have it in different sizes.
    """
    if len({one["workload"] for one in conditions}) != 1:
        return ""
    sizes = {one["hyperparameters"].get("image_size") for one in conditions}
    batches = {one["batch_size"] for one in conditions}
    shared = [conditions[0]["workload"]]
    shared += [f"images of {size} x {size}" for size in sizes if size and len(sizes) == 1]
    shared += [f"batch {batch}" for batch in batches if len(batches) == 1]
    return f" ({', '.join(shared)})"


def _usual_baseline(frames: Iterable[pd.DataFrame]) -> str:
    """What most ratios of throughput are relative to."""
    count = Counter(one for frame in frames for one in frame.loc[frame["quantity"] == RATIO, "baseline_subject"])
    return max(count, key=count.get, default="its baseline")


def _groups(frame: pd.DataFrame, usual: str) -> Iterator[str]:
    """What a notebook shows of each subject: how efficiently it scales; else how it compares with its baseline, which
    is named if it is not the ``usual`` one; else how good its metric gets.
    """
    rows = frame[frame["quantity"] == "efficiency_percent"].dropna(subset="estimate")
    if len(rows):
        for who, group in rows.groupby("subject", sort=False):
            ends = [group[end].fillna(group["estimate"]) for end in ("low", "high")]
            yield f"{who}, efficiency {_span(ends[0].min(), ends[1].max())} %"
        return
    rows = frame[frame["quantity"] == RATIO]
    for baseline, ratios in rows.groupby("baseline_subject", sort=False):
        groups = ratios.groupby(ratios.apply(_who, axis=1), sort=False)
        named = "" if baseline == usual else f"relative to {baseline}: "
        yield named + ", ".join(f"{who} {_verdicts(group)}" for who, group in groups)
    if len(rows):
        return
    rows = frame[frame["quantity"] == "final_metric"].dropna(subset="estimate")
    for who, group in rows.groupby("subject", sort=False):
        best = group.loc[group["estimate"].idxmax()]
        varied = [name for name in ("learning_rate", "batch_size") if rows[name].nunique() > 1]
        at = ", ".join(f"{name.replace('_', ' ')} {best[name]:g}" for name in varied)
        yield f"{who}, metric at best {tables.number(best['estimate'])} {best['unit']}{f' at {at}' if at else ''}"


def _who(row: pd.Series) -> str:
    """The subject of a row; if that is its baseline's, too, with what tells the two apart."""
    if row["subject"] != row["baseline_subject"]:
        return row["subject"]
    threads = "all" if pd.isna(row["threads"]) else row["threads"]
    without = f" without {row['without']}" if row["without"] else ""
    return f"{row['subject']} on {row['device']}, threads {threads}{without}"


def _verdicts(rows: pd.DataFrame) -> str:
    """Of ratios of one kind how many got which verdict, and between which ends their intervals lie."""
    count = rows["verdict"].fillna(rows["why"]).value_counts()
    counted = ", ".join(f"{verdict} in {number} of {len(rows)}" for verdict, number in count.items())
    if len(rows) == 1:
        counted = count.index[0]
    ends = rows[["low", "high"]].dropna()
    span = f" ({_span(ends['low'].min(), ends['high'].max())})" if len(ends) else ""
    sure = (rows["control_low"] <= 1) & (rows["control_high"] >= 1)
    unsure = (rows["verdict"].notna() & ~sure).sum()
    doubt = f", but in {unsure} A/A excludes 1 or is not known: a difference may show nothing" if unsure else ""
    return f"{counted}{span}{doubt}"


def _span(low: float, high: float) -> str:
    return " to ".join(tables.number(end, 2 if end < 0.95 else 3) for end in (low, high))
