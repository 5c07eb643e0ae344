"""Where over a hyperparameter's values the maximum lies, as far as seeds tell."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pandas as pd

from benchlib.suite import published
from benchlib.suite.claims.verdicts import CONTRADICTS, OPEN, SUPPORTS


def bearing_of_maximum(rows: pd.DataFrame, x: str, top: pd.Series) -> str:
    """How the place of the maximum bears on that it is at an inner value."""
    ends, others = rows.iloc[[0, -1]], rows[rows[x] != top[x]]
    inside, tried = top[x] not in set(ends[x]), published.tried(x)
    if inside and top["lowest"] > ends["highest"].max():
        return SUPPORTS
    far_out = top[x] <= min(tried) or top[x] >= max(tried)
    return CONTRADICTS if not inside and far_out and top["lowest"] > others["highest"].max() else OPEN


def bracket(rows: pd.DataFrame, x: str, top: pd.Series) -> tuple[float, float]:
    """Between which values the maximum lies: those beside all whose seeds reach the lowest seed of the best."""
    reach, values = rows.loc[rows["highest"] >= top["lowest"], x], list(rows[x])
    return neighbours(values, reach.min())[0], neighbours(values, reach.max())[1]


def neighbours(values: Iterable[float], value: float) -> tuple[float, float]:
    """The neighbours of a value among others; infinitely far where it is an end."""
    values = list(values)
    return max((v for v in values if v < value), default=0.0), min((v for v in values if v > value), default=math.inf)


def is_fine(values: pd.Series, x: str, best: float) -> bool:
    """Are there values so near to the published best that a maximum beside it would show?"""
    nearest = min(values, key=lambda value: abs(math.log(value / best)))
    (low, high), (least, most) = neighbours(values, nearest), neighbours(published.tried(x), best)
    return least <= low and high <= most


def bearing_of_range(ours: tuple[float, float], theirs: tuple[float, float]) -> str:
    """How a range in which the maximum lies bears on that it is in another."""
    if theirs[0] <= ours[0] and ours[1] <= theirs[1]:
        return SUPPORTS
    return CONTRADICTS if ours[1] <= theirs[0] or ours[0] >= theirs[1] else OPEN
