"""From rows of the notebooks' tidy frames to the cases of a claim, by its rule (``works.Query``) and test."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd

from benchlib import tables, workloads
from benchlib.literature.works import Claim, Query, sources, works
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import DISTURBED, FASTER, NO_DIFFERENCE, SLOWER, verdict_on
from benchlib.stats.intervals import Interval

SUPPORTS, CONTRADICTS, OPEN = "supports", "contradicts", "leaves open"

NO_INTERVAL = "too few processes or seeds for an interval"
ONE_SEED = "one seed says nothing of the others"
RESTLESS = "A/A excludes 1: the baseline differs from itself"
TOO_WIDE = "an interval is wider than the margin"
WITHIN_OR_BEYOND = "a difference is shown, but not whether it is beyond the margin"
NOISY = "disturbed: to be measured again, on a quiet machine"
"""Why a case leaves its claim open, where that is not simply that its interval includes 1."""

RATIO, CONTROL = (tuple(f"{name}{end}" for end in ("", "_low", "_high")) for name in ("claimed_ratio", "control"))
SHOWN = ("claim", "case", "setting", *RATIO, *CONTROL, "otherwise", "bears", "why", "published_ratio", tables.FILES)
"""The columns of a case that a table shows. Above 1 a ratio supports the claim; other cases are said in words."""

CONTROLLED = {*tidy.RATIOS, *tidy.TIMED, *tidy.OF_GROUPS}  # quantities that an A/A control is about

Case = dict[str, Any]
Found = Iterator[Case | str]  # a text names a missing condition


def find(claim: Claim, frames: Mapping[str, pd.DataFrame], then: bool = False) -> tuple[list[Case], list[str]]:
    """The cases of a claim, of today's versions or of its work's time, and the missing conditions that it names."""
    cases, missing = [], []
    for part in claim.rule.rows:
        rows = _select_rows(part, frames, sources()[claim.source].then if then else None)
        known = rows["estimate"].notna()
        lost = rows[~known & ((rows["why"] == DISTURBED) | bool(part.lost))]
        answered = pd.concat([rows[known], lost])
        lacking = [text for text, query in part.needs.items() if not len(_query(answered, query))]
        found = [] if part.whole and lacking else list(TESTS[claim.rule.test](claim, part, rows[known]))
        why = [f"{row['label']} ({NOISY if row['why'] == DISTURBED else part.lost})" for _, row in lost.iterrows()]
        cases += [one for one in found if not isinstance(one, str)]
        missing += [*lacking, *why, *(one for one in found if isinstance(one, str))]
    groups = list(dict.fromkeys(one["group"] for one in cases))
    return sorted(cases, key=lambda one: groups.index(one["group"])), missing


def judge_ratio(ratio: Interval, margin: float, alike: float | None = None) -> tuple[str, str]:
    """The bearing of a ratio in the direction of a claim on it, and why. One that is the same within the margin
    contradicts it. Of a claim that things are ``alike``: an interval within that factor of 1 supports it.
    """
    if not (math.isfinite(ratio.low) and math.isfinite(ratio.high)):
        return OPEN, NO_INTERVAL
    if alike is None:
        verdict = verdict_on(ratio, margin)
        sides = {FASTER: (SUPPORTS, ""), SLOWER: (CONTRADICTS, ""), NO_DIFFERENCE: (OPEN, "")}
        return sides.get(verdict, (CONTRADICTS, verdict))
    if 1 / alike <= ratio.low and ratio.high <= alike:
        return SUPPORTS, ""
    if ratio.low > alike or ratio.high < 1 / alike:
        return CONTRADICTS, ""
    return OPEN, WITHIN_OR_BEYOND if ratio.excludes(1) else TOO_WIDE


def _ratios(claim: Claim, part: Query, rows: pd.DataFrame) -> Found:
    """Each row is a ratio."""
    turn = _invert if part.inverse else _interval
    return (_ratio_case(claim, part, turn(row), [row]) for _, row in rows.iterrows())


def _pairs(claim: Claim, part: Query, rows: pd.DataFrame) -> Found:
    """Rows of one query over those of another that match."""
    each = ([row for _, row in _query(rows, query).iterrows()] for query in (part.one, part.over))
    for one, other in itertools.product(*each):
        if one[["host", *part.match]].equals(other[["host", *part.match]]):
            yield _ratio_case(claim, part, _divide(_interval(one), _interval(other)), [one, other])


def _crossings(claim: Claim, part: Query, rows: pd.DataFrame) -> Found:
    """The ratios of each operator at both ends of its sizes; and which of two crosses first."""
    (late, early), ordered = claim.rule.crosses, False
    rows = rows.assign(passes=tidy.hyperparameter(rows, "passes")).sort_values(["parameters", "million_multiply_adds"])
    for (passes, who, _), of_all in rows.groupby(["passes", "subject", "host"], sort=False, dropna=False):
        sizes: dict[str, pd.DataFrame] = {}
        for operator, own in of_all.groupby("workload", sort=False):
            few, many = own.iloc[0], own.iloc[-1]
            if few["parameters"] == many["parameters"]:
                yield f"{operator}, {passes}, with two numbers of parameters"
                continue
            for words, row, ratio in (("slower", few, _invert(few)), ("faster", many, _interval(many))):
                yield _ratio_case(claim, part, ratio, [row], own=f"{words} at {row['parameters']:,} parameters")
            sizes[operator] = own
        if {late, early} <= set(sizes):
            ordered, rows = True, [*pd.concat([sizes[late], sizes[early]]).iloc]
            (late_until, late_from), (early_until, early_from) = ends = [_ends(sizes[name]) for name in (late, early)]
            bears, why = OPEN, "the sizes do not tell which crosses first"
            if late_until >= early_from or early_until >= late_from:
                bears, why = SUPPORTS if late_until >= early_from else CONTRADICTS, ""
            said = (f"slower up to {tables.number(low, 1)}, faster from {tables.number(high, 1)}" for low, high in ends)
            said = "; ".join(f"{name}: {text}" for name, text in zip((late, early), said, strict=True))
            texts = {"group": f"{passes}, {who}, {late} crosses later than {early}", "own": ""}
            yield _case(claim, part, rows, bears, why, said, **texts)
    if not ordered:
        yield f"{late} and {early}, each with two numbers of parameters, for which of them crosses first"


def _ends(rows: pd.DataFrame) -> tuple[float, float]:
    """The most parameters at which the baseline is faster, and the fewest at which the other is, by their verdicts.
    Both are nan where that is not shown, or they cross more than once.
    """
    until = start = math.nan
    for count, sizes in rows.groupby("parameters"):
        verdicts = {_doubt(row) or verdict_on(_interval(row), row["margin"]) for _, row in sizes.iterrows()}
        until = np.fmax(until, count) if verdicts == {SLOWER} else until
        start = np.fmin(start, count) if verdicts == {FASTER} else start
    return (math.nan, math.nan) if until >= start else (until, start)


def _maximum(claim: Claim, part: Query, rows: pd.DataFrame) -> Found:
    """For each subject with at least three values of a column: is the best inside, and near the published best?"""
    rule, words, x = claim.rule, part.by.replace("_", " "), part.by
    theirs, fine = _neighbours(rule.tried, rule.best), []
    for _, own in rows.groupby(["subject", "host"], sort=False, dropna=False):
        if len(own) < 3:
            continue
        own = own.sort_values(x).set_index(x, drop=False)
        top = own.loc[own["estimate"].idxmax()]
        reach = own.index[own["highest"] >= top["lowest"]]  # each may be the best
        bears, why = OPEN, ONE_SEED if own["processes"].min() < 2 else ""
        if not why and not {*own.index[[0, -1]]} & {*reach}:
            bears = SUPPORTS
        elif not why and len(reach) == 1 and not min(rule.tried) < top[x] < max(rule.tried):
            bears = CONTRADICTS
        metric = workloads.load(top["workload"]).metric + (" (%)" if top["unit"] == "%" else "")
        values = ", ".join(f"{value:g}" for value in own.index)
        said = f"best at {top[x]:g} of {values}: {tables.number(top['estimate'])}"
        every = [top, *own.drop(index=top[x]).iloc]
        yield _case(claim, part, every, bears, why, said, own=f"{metric}, rises and falls")
        nearest = min(own.index, key=lambda value: abs(math.log(value / rule.best)))
        near = _neighbours(own.index, nearest)
        fine.append(theirs[0] <= near[0] and near[1] <= theirs[1])
        if fine[-1]:  # else a maximum beside the published best would not show
            low, high = _neighbours(own.index, reach.min())[0], _neighbours(own.index, reach.max())[1]
            bears = CONTRADICTS if high <= theirs[0] or low >= theirs[1] else OPEN
            bears = SUPPORTS if theirs[0] <= low and high <= theirs[1] else bears
            said = f"the maximum is above {low:g} and below {high:g}"
            yield _case(claim, part, every, OPEN if why else bears, why, said, own=f"{metric}, best near {rule.best:g}")
    if not fine:
        yield f"three values of the {words} in one framework at least"
    elif not all(fine):
        yield f"values of the {words} no farther from {rule.best:g} than {' and '.join(f'{end:g}' for end in theirs)}"


TESTS = {"ratios": _ratios, "pairs": _pairs, "crossing": _crossings, "maximum": _maximum}  # by their names in rules


def _ratio_case(claim: Claim, part: Query, ratio: Interval, rows: list[pd.Series], **texts: str) -> Case:
    """The case of a ratio that was made of these rows; one whose comparison's A/A is in doubt leaves the claim open."""
    first, controlled, alike = rows[0], part.quantity in CONTROLLED, claim.rule.alike
    bears, why = judge_ratio(ratio, first["margin"], alike)
    if doubt := next(filter(None, map(_doubt, rows)), "") if controlled else "":
        bears, why = OPEN, doubt
    ends = (ratio.estimate, ratio.low, ratio.high)
    case = _case(claim, part, rows, bears, why, tables.ratio(*ends) if alike else "", **texts)
    case |= {name: first[name] for name in CONTROL if controlled}
    return case if alike else case | dict(zip(RATIO, ends, strict=True))


def _case(claim: Claim, part: Query, rows: list[pd.Series], bears: str, why: str, said: str, **texts: str) -> Case:
    """A case that was made of these rows; the first gives its subject. ``texts`` replace those of the rule."""
    row = rows[0]
    columns = {**json.loads(row["hyperparameters"]), **row, **{f"other_{name}": rows[-1][name] for name in row.index}}
    texts = {"group": part.group, "own": part.own, "setting": part.setting, **texts}
    group, own, setting = (text.format(**columns) for text in texts.values())
    return dict.fromkeys(SHOWN, math.nan) | {
        **{"claim": claim.id, "case": f"{group}, {own}" if own else group, "group": group, "setting": setting},
        **{"otherwise": said or None, "bears": bears, "why": why, "differs": _list_differences(claim, row)},
        **{"notebook": part.notebook, "margin": row["margin"]},
        "published_ratio": claim.published.get(row["workload"], claim.published.get(row["framework"], math.nan)),
        tables.FILES: tables.join_files(one["files"] for one in rows if pd.notna(one["files"])),
    }


def _list_differences(claim: Claim, row: pd.Series) -> list[str]:
    """The differences of a row's setting from the training that the work reports."""
    name, used, epochs, of = row["workload"], sources()[claim.source].used, claim.rule.epochs, works()["thresholds"]
    if workloads.load(name).kind != "training":
        return []
    ours = row["threshold"] if row["quantity"] == "threshold_ratio" and pd.notna(row["threshold"]) else None
    theirs = {(one["source"], one["workload"]): one["threshold"] for one in of}.get((claim.source, name), ours)
    differs = {
        f"with other workloads than {', '.join(used)}": name not in used,
        f"on stand-in data for {used.get(name)}": used.get(name) not in (None, row["data"]),
        f"to a threshold of {ours}, not {theirs}": ours not in (None, theirs),
        f"after {row['epochs']} epochs, not {epochs}": epochs not in (0, row["epochs"]),
    }
    return [how for how, so in differs.items() if so]


def _select_rows(part: Query, frames: Mapping[str, pd.DataFrame], then: dict[str, str] | None) -> pd.DataFrame:
    """A rule's rows in the environments of ``then``, or in none of any work's time, from its notebook's frame, if there
    is one. Of ratios that are paired, baselines are among them, with 1.
    """
    frame = frames[part.notebook] if part.notebook in frames else tidy.of_rows([])
    rows, sides = frame[frame["quantity"] == part.quantity], ["", "baseline_"]
    old = {name for one in sources().values() for name in one.then.values()}
    if part.over and part.quantity in tidy.RATIOS:
        own, sides = rows.drop_duplicates(["part", "host", *part.match]), [""]
        who = {name: own[f"baseline_{name}"] for name in [*tidy.SUBJECT, "subject"]}
        rows = pd.concat([rows, own.assign(**who, estimate=1.0, low=1.0, high=1.0, files=None)])
    for side in sides:
        home, framework = rows[f"{side}environment"], rows[f"{side}framework"]
        rows = rows[home.isna() | (~home.isin(old) if then is None else home == framework.map(then))]
    if part.training:
        rows = rows[rows["workload"].map(lambda name: workloads.load(name).kind == "training").astype(bool)]
        on = rows["device"] != "cpu"
        rows = rows[on] if on.any() else rows
    return _query(rows, part.where)


def _query(rows: pd.DataFrame, query: str) -> pd.DataFrame:
    return rows.query(query, engine="python") if query else rows


def _doubt(row: pd.Series) -> str:
    """Why a row's ratio is not believed: its A/A control was disturbed, or excludes 1; empty where it is."""
    if row["control_why"] == DISTURBED:
        return NOISY
    return RESTLESS if row["control_low"] > 1 or row["control_high"] < 1 else ""


def _interval(row: pd.Series) -> Interval:
    return Interval(row["estimate"], row["low"], row["high"], row["processes"])


def _invert(row: pd.Series) -> Interval:
    return _interval(row).map(lambda value: 1 / value)


def _divide(one: Interval, other: Interval) -> Interval:
    """The ratio of two estimates, their half-widths combined on the scale of logarithms as of independent ones."""
    estimate = one.estimate / other.estimate
    if not (one.low > 0 and other.low > 0):
        return Interval(estimate)
    half = math.exp(math.hypot(*(math.log(each.high / each.low) / 2 for each in (one, other))))
    return Interval(estimate, estimate / half, estimate * half, min(one.processes, other.processes))


def _neighbours(values: Iterable[float], value: float) -> tuple[float, float]:
    """The neighbours of a value among others; infinitely far where it is an end."""
    values = list(values)
    return max((v for v in values if v < value), default=0.0), min((v for v in values if v > value), default=math.inf)
