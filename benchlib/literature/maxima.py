"""The rule of where over a hyperparameter's values the maximum of the metric lies, as far as seeds tell."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import pandas as pd

from benchlib import tables, workloads
from benchlib.literature import works
from benchlib.literature.cases import OTHER_EPOCHS, files_of, setting_of
from benchlib.literature.results import Results
from benchlib.literature.verdicts import CONTRADICTS, ONE_SEED, OPEN, SUPPORTS, Case, Outcome
from benchlib.literature.works import Claim


def inner_maximum(results: Results, claim: Claim, notebook: str, x: str, epochs: int, best: float) -> Outcome:
    """Of each subject with three values of ``x`` at least, where its metric is best."""
    frame = results.rows(notebook, "final_metric")
    if not len(frame):
        return Outcome([], [f"the notebook {notebook}"])
    words, theirs = x.replace("_", " "), _neighbours(works.tried(x), best)
    shorter = (frame["epochs"] != epochs).any()
    outcome = Outcome([], [f"{epochs} epochs (epochs in parameters/PROFILE/{notebook}.yaml)"] if shorter else [])
    coarse = False
    for _, rows in frame.dropna(subset="estimate").groupby("subject", sort=False):
        if len(rows) < 3:
            continue
        rows = rows.sort_values(x).set_index(x, drop=False)
        case = _case(claim, rows, x, epochs)
        outcome.cases.append(replace(case, of=f"{case.of}, rises and falls"))
        nearest = min(rows.index, key=lambda value: abs(math.log(value / best)))
        if not _is_within(_neighbours(rows.index, nearest), theirs):
            coarse = True  # a maximum beside the published best would not show
            continue
        low, high = place = _place(rows)
        until = f" and below {high:g}" if low > 0 and math.isfinite(high) else ""
        near = replace(case, of=f"{case.of}, best near {best:g}", bears=OPEN if case.why else _bearing(place, theirs))
        measured = f"the maximum is {f'above {low:g}' if low > 0 else f'below {high:g}'}{until}"
        outcome.cases.append(replace(near, measured=measured))
    if not outcome.cases:
        outcome.missing.append(f"three values of the {words} in one framework at least")
    elif coarse:
        ends = " and ".join(f"{end:g}" for end in theirs)
        outcome.missing.append(f"values of the {words} no farther from {best:g} than {ends}")
    return outcome


def _case(claim: Claim, rows: pd.DataFrame, x: str, epochs: int) -> Case:
    """Is the metric best at an inner value of the rows' index, ``x``?"""
    top = rows.loc[rows["estimate"].idxmax()]
    ends, others, tried = rows.iloc[[0, -1]], rows.drop(index=top[x]), works.tried(x)
    inside, far_out = top[x] not in ends.index, not min(tried) < top[x] < max(tried)
    bears, why = OPEN, ""
    if rows["processes"].min() < 2:
        why = ONE_SEED
    elif inside and top["lowest"] > ends["highest"].max():
        bears = SUPPORTS
    elif not inside and far_out and top["lowest"] > others["highest"].max():
        bears = CONTRADICTS
    setting, stands_in = setting_of(claim, top)
    if top["epochs"] != epochs:
        trained = f"after {top['epochs']} epochs, the work after {epochs}"
        setting, stands_in = "; ".join(filter(None, [setting, trained])), (*stands_in, OTHER_EPOCHS)
    metric = workloads.load(top["workload"]).metric + (" (%)" if top["unit"] == "%" else "")
    mean, lowest, highest = (tables.number(top[name]) for name in ("estimate", "lowest", "highest"))
    values = ", ".join(f"{value:g}" for value in rows.index)
    end = "" if inside else ", an end of what was tried"
    return Case(
        of=f"{top['workload']} on {top['data']}, {top['subject']}, {metric}",
        bears=bears,
        measured=f"best at {top[x]:g} of {values}{end}: {mean} (seeds {lowest} to {highest})",
        files=files_of(*rows.iloc),
        why=why,
        setting=setting,
        stands_in=stands_in,
    )


def _place(rows: pd.DataFrame) -> tuple[float, float]:
    """Between which values the maximum lies: those beside all whose seeds reach the lowest seed of the best."""
    lowest = rows.loc[rows["estimate"].idxmax(), "lowest"]
    reach = rows.index[rows["highest"] >= lowest]
    return _neighbours(rows.index, reach.min())[0], _neighbours(rows.index, reach.max())[1]


def _neighbours(values: Iterable[float], value: float) -> tuple[float, float]:
    """The neighbours of a value among others; infinitely far where it is an end."""
    values = list(values)
    return max((v for v in values if v < value), default=0.0), min((v for v in values if v > value), default=math.inf)


def _is_within(ours: tuple[float, float], theirs: tuple[float, float]) -> bool:
    return theirs[0] <= ours[0] and ours[1] <= theirs[1]


def _bearing(ours: tuple[float, float], theirs: tuple[float, float]) -> str:
    """How a range in which the maximum lies bears on that it is in another."""
    if _is_within(ours, theirs):
        return SUPPORTS
    return CONTRADICTS if ours[1] <= theirs[0] or ours[0] >= theirs[1] else OPEN
