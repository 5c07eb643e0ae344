"""The rule of where over a hyperparameter's values the maximum of the metric lies, as far as seeds tell."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import pandas as pd

from benchlib import workloads
from benchlib.suite import published, tables
from benchlib.suite.claims.cases import OTHER_EPOCHS, files_of, setting_of
from benchlib.suite.claims.results import Results
from benchlib.suite.claims.verdicts import CONTRADICTS, ONE_SEED, OPEN, SUPPORTS, Case, Outcome
from benchlib.suite.published import Claim


def inner_maximum(results: Results, claim: Claim, notebook: str, x: str, epochs: int, best: float) -> Outcome:
    """Of each subject with three values of ``x`` at least, where its metric is best."""
    frame = results.rows(notebook, "final_metric")
    if not len(frame):
        return Outcome([], [f"the notebook {notebook}"])
    shorter = (frame["epochs"] != epochs).any()
    missing = [f"{epochs} epochs (epochs in parameters/PROFILE/{notebook}.yaml)"] if shorter else []
    cases, theirs, coarse = [], _neighbours(published.tried(x), best), False
    for _, rows in frame.dropna(subset="estimate").groupby("subject", sort=False):
        if len(rows) < 3:
            continue
        rows = rows.sort_values(x)
        rises, low, high = _rises_and_falls(claim, rows, x, epochs)
        cases.append(rises)
        if not _is_fine(rows[x], best, theirs):
            coarse = True
            continue
        until = f" and below {high:g}" if low > 0 and math.isfinite(high) else ""
        place = f"the maximum is {f'below {high:g}' if low == 0 else f'above {low:g}'}{until}"
        bears = OPEN if rises.why else _bearing_of_range((low, high), theirs)
        of = rises.of.replace(_RISES, f"best near {best:g}")
        cases.append(replace(rises, of=of, bears=bears, measured=place))
    if not cases:
        missing.append(f"three values of the {x.replace('_', ' ')} in one framework at least")
    elif coarse:
        ends = " and ".join(f"{end:g}" for end in theirs)
        missing.append(f"values of the {x.replace('_', ' ')} no farther from {best:g} than {ends}")
    return Outcome(cases, missing)


_RISES = "rises and falls"


def _rises_and_falls(claim: Claim, rows: pd.DataFrame, x: str, epochs: int) -> tuple[Case, float, float]:
    """Of rows sorted by ``x``: is the metric best at an inner value? And between which values the maximum lies: those
    beside all whose seeds reach the lowest seed of the best.
    """
    top = rows.loc[rows["estimate"].idxmax()]
    seeds = " to ".join(tables.number(top[end]) for end in ("lowest", "highest"))
    values = ", ".join(f"{value:g}" for value in rows[x])
    metric = workloads.load(top["workload"]).metric + (" (%)" if top["unit"] == "%" else "")
    setting, stands_in = setting_of(claim, top)
    if top["epochs"] != epochs:
        trained = f"after {top['epochs']} epochs, the work after {epochs}"
        setting, stands_in = "; ".join(filter(None, [setting, trained])), (*stands_in, OTHER_EPOCHS)
    one_seed = rows["processes"].min() < 2
    case = Case(
        of=f"{top['workload']} on {top['data']}, {top['subject']}, {metric}, {_RISES}",
        bears=OPEN if one_seed else _bearing_of_maximum(rows, x, top),
        measured=f"best at {top[x]:g} of {values}: {tables.number(top['estimate'])} (seeds {seeds})",
        files=files_of(*rows.iloc),
        why=ONE_SEED if one_seed else "",
        setting=setting,
        stands_in=stands_in,
    )
    reach = rows.loc[rows["highest"] >= top["lowest"], x]
    return case, _neighbours(rows[x], reach.min())[0], _neighbours(rows[x], reach.max())[1]


def _bearing_of_maximum(rows: pd.DataFrame, x: str, top: pd.Series) -> str:
    """How the place of the maximum bears on that it is at an inner value."""
    ends, others = rows.iloc[[0, -1]], rows[rows[x] != top[x]]
    inside, tried = top[x] not in set(ends[x]), published.tried(x)
    if inside and top["lowest"] > ends["highest"].max():
        return SUPPORTS
    far_out = top[x] <= min(tried) or top[x] >= max(tried)
    return CONTRADICTS if not inside and far_out and top["lowest"] > others["highest"].max() else OPEN


def _neighbours(values: Iterable[float], value: float) -> tuple[float, float]:
    """The neighbours of a value among others; infinitely far where it is an end."""
    values = list(values)
    return max((v for v in values if v < value), default=0.0), min((v for v in values if v > value), default=math.inf)


def _is_fine(values: pd.Series, best: float, theirs: tuple[float, float]) -> bool:
    """Are there values so near to the published best that a maximum beside it would show?"""
    low, high = _neighbours(values, min(values, key=lambda value: abs(math.log(value / best))))
    return theirs[0] <= low and high <= theirs[1]


def _bearing_of_range(ours: tuple[float, float], theirs: tuple[float, float]) -> str:
    """How a range in which the maximum lies bears on that it is in another."""
    if theirs[0] <= ours[0] and ours[1] <= theirs[1]:
        return SUPPORTS
    return CONTRADICTS if ours[1] <= theirs[0] or ours[0] >= theirs[1] else OPEN
