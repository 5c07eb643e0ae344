"""The ratios of throughput in the frames of all notebooks. Nothing is computed here: each is a row of a frame."""

from __future__ import annotations

import hashlib
from typing import Any

import pandas as pd

from benchlib import tables
from benchlib.plotting.style import name_once
from benchlib.report.load import Results
from benchlib.stats.comparison import FASTER, NO_DIFFERENCE, SLOWER

# A verdict in a word; any other is "same", or "none" where there is no ratio.
KINDS = {FASTER: "faster", SLOWER: "slower", NO_DIFFERENCE: "open"}
CSV = {  # the columns of the table that benchlib trace reads, by those of the frame
    **{name: name for name in ("key", "notebook", "task", "processes", "control", "control_low", "control_high")},
    **{"label": "condition", "baseline_label": "relative to", "says": "verdict", "files": tables.FILES},
    **{"estimate": "ratio", "low": "ratio_low", "high": "ratio_high"},
}
COMPARISON = ["notebook", "part"]
SAME = ["task", "margin", "label", "baseline_label", "estimate", "low", "high", "says", "files"]  # two show one ratio


def rows(results: Results) -> pd.DataFrame:
    """Return a row for each ratio of each notebook, workload by workload.

    Its columns are those of the frame, those of :func:`_words`, ``key``, its name, and the ``title`` of its notebook.
    ``says`` is its verdict or why there is none; ``kind`` is that in a word; ``restless``: its A/A excludes 1.
    """
    frame = results.rows("throughput_ratio", "pair_ratio")
    frame = name_once(frame[frame["baseline_label"].notna()].assign(home=lambda every: every["environment"]))
    order = [*dict.fromkeys(frame["workload"])]
    frame = frame.sort_values("workload", key=lambda names: names.map(order.index), kind="stable")
    every = frame.to_dict("records")
    named = ("|".join(str(row[name]) for name in (*COMPARISON, "baseline_label", "label")) for row in every)
    return frame.assign(
        key=[hashlib.sha256(name.encode()).hexdigest()[:10] for name in named],
        says=frame["why"].fillna(frame["verdict"]),
        kind=["none" if pd.isna(row["estimate"]) else KINDS.get(row["verdict"], "same") for row in every],
        restless=(frame["control_low"] > 1) | (frame["control_high"] < 1),
        title=[results.summaries[row["notebook"]]["title"] for row in every],
        **_words(every, {str(one): [*one.details, one.device] for one in results.conditions}),
    )


def dedupe(every: pd.DataFrame) -> pd.DataFrame:
    """Return each ratio once that several notebooks have, below a ``heading`` of its setting and all their titles."""
    titles = every.groupby(SAME, sort=False, dropna=False)["title"].transform(lambda of: "; ".join(dict.fromkeys(of)))
    headings = [" · ".join(filter(None, pair)) for pair in zip(every["setting"], titles, strict=True)]
    return every.assign(heading=headings).drop_duplicates(SAME)


def relative_to(every: pd.DataFrame, subject: str | None = None) -> pd.DataFrame:
    """Return the ratios of each comparison to its first condition of a subject; None: to its own baseline."""
    if subject is None:
        return every[every["quantity"] == "throughput_ratio"]
    own = every[every["baseline_subject"] == subject]
    return own[own["baseline_label"] == own.groupby(COMPARISON, sort=False)["baseline_label"].transform("first")]


def usual_baseline(every: pd.DataFrame) -> str:
    """Return the subject that most ratios were measured relative to."""
    subjects = list(relative_to(every)["baseline_subject"])
    return max(dict.fromkeys(subjects), key=subjects.count, default="")


def _words(every: list[dict[str, Any]], details: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the details that all conditions of a comparison share (``setting``, less those of the whole workload).
    Also those that only a row's condition or its baseline has.
    """
    sides = [[details.get(row[label], []) for label in ("label", "baseline_label")] for row in every]
    common: dict[Any, set[str]] = {}  # by workload, and by comparison
    for row, both in zip(every, sides, strict=True):
        for one in both:
            for key in (row["workload"], (row["notebook"], row["part"])):
                common.setdefault(key, set(one)).intersection_update(one)
    words: dict[str, list[str]] = {"setting": [], "apart": [], "baseline_apart": []}
    for row, (own, other) in zip(every, sides, strict=True):
        shared, unsaid = common[row["notebook"], row["part"]], common[row["workload"]] - {*own[:1]}
        words["setting"].append(", ".join(one for one in own if one in shared - unsaid))
        words["apart"].append(", ".join(one for one in own if one not in shared))
        words["baseline_apart"].append(", ".join(one for one in other if one not in {*own, *shared}))
    return words
