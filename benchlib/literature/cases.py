"""Rows of frames as cases: how a ratio with its interval and its A/A control bears on a claim."""

from __future__ import annotations

import math

import pandas as pd

from benchlib import tables, workloads
from benchlib.literature import works
from benchlib.literature.verdicts import (
    CONTRADICTS,
    NO_INTERVAL,
    NOISY,
    OPEN,
    RESTLESS,
    SUPPORTS,
    TOO_WIDE,
    WITHIN_OR_BEYOND,
    Case,
)
from benchlib.literature.works import Claim
from benchlib.stats.comparison import DISTURBED, FASTER, NO_DIFFERENCE, SLOWER, same_within, verdict_on
from benchlib.stats.intervals import Interval

OTHER_DATA, OTHER_WORKLOAD = "on stand-in data", "with other workloads than the work's"
OTHER_THRESHOLD, OTHER_EPOCHS = "to another threshold than the work's", "after another number of epochs than the work's"
"""How what was measured here differs from what the work says that it used."""


def bearing(ratio: Interval, margin: float) -> tuple[str, str]:
    """How a ratio in the claimed direction bears on the claim, by the verdict on its interval, and why, where that is
    not its side of 1: one that is the same within the margin contradicts the claim, too.
    """
    verdict = verdict_on(ratio, margin)
    if verdict == same_within(margin):
        return CONTRADICTS, verdict
    why = "" if math.isfinite(ratio.low) else NO_INTERVAL
    return {FASTER: SUPPORTS, SLOWER: CONTRADICTS, NO_DIFFERENCE: OPEN}[verdict], why


def bearing_alike(ratio: Interval, factor: float) -> tuple[str, str]:
    """Of a claim that two things are alike: is the interval within a factor of 1, or wholly outside? And if neither,
    why that leaves the claim open.
    """
    if not (math.isfinite(ratio.low) and math.isfinite(ratio.high)):
        return OPEN, NO_INTERVAL
    if 1 / factor <= ratio.low and ratio.high <= factor:
        return SUPPORTS, ""
    if ratio.low > factor or ratio.high < 1 / factor:
        return CONTRADICTS, ""
    return OPEN, WITHIN_OR_BEYOND if ratio.excludes(1) else TOO_WIDE


def case_of(
    claim: Claim,
    ratio: Interval,
    *rows: pd.Series,
    group: str,
    own: str = "",
    setting: str = "",
    doubt: str | None = None,
) -> Case:
    """The case of a ratio that was made from these rows of a frame: what it is of is the ``group`` and its ``own``
    part, if it has one. It bears by its interval: in the direction of the claim or, of a claim that things are
    alike, within its factor of 1. A ``doubt`` leaves it open; by default that is :func:`control_doubt`'s.
    """
    alike = claim.rule.alike
    first, control = rows[0], control_of(rows[0]) if doubt is None else None
    bears, why = bearing(ratio, first["margin"]) if alike is None else bearing_alike(ratio, alike)
    if unsure := control_doubt(first) if doubt is None else doubt:
        bears, why = OPEN, unsure
    same = f", {why}" if why and bears == CONTRADICTS else ""
    used, stands_in = setting_of(claim, first, setting)
    return Case(
        of=f"{group}, {own}" if own else group,
        bears=bears,
        measured=tables.ratio(ratio.estimate, ratio.low, ratio.high) + same,
        files=files_of(*rows),
        ratio=ratio if alike is None else None,
        published=claim.published.get(first["workload"], claim.published.get(first["framework"])),
        control=control,
        why=why,
        margin=first["margin"] if alike is None else None,
        setting=used,
        stands_in=stands_in,
        group=group,
    )


def setting_of(claim: Claim, row: pd.Series, setting: str = "") -> tuple[str, tuple[str, ...]]:
    """What a row was measured with, and to which threshold, against what the work says that it trained; and how that
    differs.
    """
    workload, ours, theirs = row["workload"], None, None
    if workloads.load(workload).kind != "training":
        return setting, ()
    if row["quantity"] == "threshold_ratio" and pd.notna(row["threshold"]):
        ours, theirs = row["threshold"], works.threshold(claim.source, workload)
    used, reached = works.sources()[claim.source].used, _reached(workload, theirs)
    work, differs = "", ()
    if workload not in used:
        work, differs = ", ".join(used), (OTHER_WORKLOAD,)
    elif row["data"] != used[workload]:
        work, differs = f"{used[workload]} {reached}".strip(), (OTHER_DATA,)
    elif theirs not in (None, ours):
        work, differs = reached, (OTHER_THRESHOLD,)
    parts = [setting, _reached(workload, ours), f"the work: {work}" if work else ""]
    return "; ".join(filter(None, parts)), differs


def without_disturbed(frame: pd.DataFrame, of: str) -> tuple[pd.DataFrame, list[str]]:
    """The rows of ``frame`` that have a number, and of those that have none because they were disturbed what is
    missing, with the reason; ``of`` says what a row is of, with its columns in braces.
    """
    lost = frame[frame["why"] == DISTURBED]
    return frame[frame["estimate"].notna()], [f"{of.format(**row)} ({NOISY})" for _, row in lost.iterrows()]


def control_of(row: pd.Series) -> Interval | None:
    """The A/A control of a row's comparison; None where there is none, or none was measured."""
    if pd.isna(row["control_low"]):
        return None
    return Interval(row["control"], row["control_low"], row["control_high"], row["processes"])


def control_doubt(row: pd.Series) -> str:
    """Why a row's ratio is not believed: its A/A control was disturbed, or excludes 1; empty where it is."""
    if row["control_why"] == DISTURBED:
        return NOISY
    control = control_of(row)
    return RESTLESS if control is not None and control.excludes(1) else ""


def interval_of(row: pd.Series) -> Interval:
    """A row's estimate with its interval."""
    return Interval(row["estimate"], row["low"], row["high"], row["processes"])


def inverse(ratio: Interval) -> Interval:
    """The ratio the other way round."""
    return Interval(1 / ratio.estimate, 1 / ratio.high, 1 / ratio.low, ratio.processes)


def over(one: Interval, other: Interval) -> Interval:
    """The ratio of two independent estimates, their half-widths combined on the scale of logarithms."""
    estimate = one.estimate / other.estimate
    if not (one.low > 0 and other.low > 0):
        return Interval(estimate, math.nan, math.nan, 0)
    half = math.hypot(*(math.log(each.high / each.low) / 2 for each in (one, other)))
    return Interval(
        estimate, estimate * math.exp(-half), estimate * math.exp(half), min(one.processes, other.processes)
    )


def files_of(*rows: pd.Series) -> str:
    """The keys of the measurements that rows were made from, each once."""
    return tables.together(row["files"] for row in rows if pd.notna(row["files"]))


def _reached(workload: str, threshold: float | None) -> str:
    """A threshold of the workload's metric, as people read it."""
    metric = workloads.load(workload).metric
    if threshold is None:
        return ""
    return f"to {100 * threshold:g} %" if metric == "accuracy" else f"to {metric.upper()} {threshold:g}"
