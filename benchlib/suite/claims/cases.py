"""Rows of frames as cases: how a ratio with its interval and its A/A control, or an order, bears on a claim."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

from benchlib.analysis.comparison import DISTURBED, FASTER, NO_DIFFERENCE, SLOWER, same_within, verdict_on
from benchlib.analysis.statistics import Interval
from benchlib.suite import tables
from benchlib.suite.claims.verdicts import (
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


def bearing(ratio: Interval, margin: float) -> tuple[str, str]:
    """How a ratio in the claimed direction bears on the claim, by the verdict on its interval: one that is the same
    within the margin contradicts it, too, and is then the reason why.
    """
    verdict = verdict_on(ratio, margin)
    if verdict == same_within(margin):
        return CONTRADICTS, verdict
    return {FASTER: SUPPORTS, SLOWER: CONTRADICTS, NO_DIFFERENCE: OPEN}[verdict], ""


def bearing_within(ratio: Interval, factor: float) -> tuple[str, str]:
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


def ratio_case(
    group: str,
    own: str,
    ratio: Interval,
    *rows: pd.Series,
    published: float | None = None,
    doubt: str | None = None,
) -> Case:
    """A ratio that bears by its interval, made from rows of a frame: what it is of is the ``group`` and its ``own``
    part, if it has one. It is open, with the reason, if it has no interval, or if there is a ``doubt``: by default that
    of :func:`control_doubt` on the first row.
    """
    first, control = rows[0], control_of(rows[0]) if doubt is None else None
    margin, doubt = first["margin"], control_doubt(first) if doubt is None else doubt
    bears, why = bearing(ratio, margin)
    measured = ", ".join(filter(None, [ratio_text(ratio), why]))
    why = why if math.isfinite(ratio.low) else NO_INTERVAL
    if doubt:
        bears, why, measured = OPEN, doubt, ratio_text(ratio)
    of = f"{group}, {own}" if own else group
    return Case(of, bears, measured, files_of(*rows), ratio, published, control, why, margin=margin, group=group)


def ratio_text(ratio: Interval) -> str:
    """A ratio with its interval, as tables show it."""
    return tables.ratio(ratio.estimate, ratio.low, ratio.high)


def without_disturbed(frame: pd.DataFrame, who: Callable[[pd.Series], str]) -> tuple[pd.DataFrame, list[str]]:
    """The rows of ``frame`` that have a number, and of those that have none because they were disturbed what is
    missing, with the reason; ``who`` says what a row is of.
    """
    lost = frame[frame["why"] == DISTURBED]
    return frame[frame["estimate"].notna()], [f"{who(row)} ({NOISY})" for _, row in lost.iterrows()]


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
    if not (one.low > 0 and other.low > 0):
        return Interval(one.estimate / other.estimate, math.nan, math.nan, 0)
    halves = [math.log(each.high / each.low) / 2 for each in (one, other)]
    half, estimate = math.hypot(*halves), one.estimate / other.estimate
    low, high = estimate * math.exp(-half), estimate * math.exp(half)
    return Interval(estimate, low, high, min(one.processes, other.processes))


def order_case(of: str, rows: dict[str, pd.DataFrame]) -> Case:
    """Which of two operators, the later by the claim first, MindSpore is faster in from fewer parameters on."""
    (late, (late_until, late_from)), (early, (early_until, early_from)) = (
        (name, _crossing(found)) for name, found in rows.items()
    )
    bears, why = OPEN, "the sizes do not tell which crosses first"
    if late_until >= early_from:
        bears, why = SUPPORTS, ""
    elif early_until >= late_from:
        bears, why = CONTRADICTS, ""
    told = f"{late}: {_ends_text(late_until, late_from)}; {early}: {_ends_text(early_until, early_from)}"
    return Case(
        f"{of}, {late} crosses later than {early}", bears, told, files_of(*pd.concat(rows.values()).iloc), why=why
    )


def _crossing(rows: pd.DataFrame) -> tuple[float, float]:
    """The most parameters at which PyTorch is faster, and the fewest at which MindSpore is, by their verdicts; as wide
    as can be where that is not shown, or they cross more than once.
    """
    until, start = -math.inf, math.inf
    for count, sizes in rows.groupby("parameters"):
        believed = not any(control_doubt(row) for _, row in sizes.iterrows())
        verdicts = {verdict_on(interval_of(row), row["margin"]) for _, row in sizes.iterrows()}
        if believed and verdicts == {SLOWER}:
            until = max(until, count)
        if believed and verdicts == {FASTER}:
            start = min(start, count)
    return (until, start) if until < start else (-math.inf, math.inf)


def _ends_text(until: float, start: float) -> str:
    slower = f"PyTorch faster up to {until:,.0f} parameters" if math.isfinite(until) else ""
    faster = f"MindSpore from {start:,.0f} on" if math.isfinite(start) else ""
    return ", ".join(filter(None, [slower, faster])) or "no side shown"


def files_of(*rows: pd.Series) -> str:
    """The keys of the measurements that rows were made from, each once."""
    return tables.together(row["files"] for row in rows if pd.notna(row["files"]))
