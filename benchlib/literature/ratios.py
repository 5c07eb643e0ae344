"""The rules that are alike: rows of a frame, selected by their columns, of which each is a case."""

from __future__ import annotations

import json

import pandas as pd

from benchlib import workloads
from benchlib.literature.cases import case_of, interval_of, inverse
from benchlib.literature.results import Results
from benchlib.literature.verdicts import NOISY, Outcome
from benchlib.literature.works import Claim, Rows
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import DISTURBED


def cases_of_rows(results: Results, claim: Claim) -> Outcome:
    """All rows that the claim's rule declares, each a case, and which of them are missing."""
    rule, outcome = claim.rule, Outcome([], margin=claim.rule.alike)
    for name in rule.names or [""]:
        for part in rule.rows:
            _add(outcome, results, claim, part, name)
    outcome.missing.extend(filter(None, [rule.takes]))
    return outcome


def _add(outcome: Outcome, results: Results, claim: Claim, part: Rows, name: str) -> None:
    rows = results.rows(part.notebook, part.quantity)
    rows = _of_training(rows) if part.training else rows
    same = [f"{one} == baseline_{one}" for one in tidy.SUBJECT if part.only and one != part.only]
    query = " and ".join(filter(None, [part.where.format(name=name), *same]))
    rows = rows.query(query, engine="python") if query else rows
    there, lost = set(rows.loc[rows["estimate"].notna() | (rows["why"] == DISTURBED), "framework"]), []
    for _, row in rows.iterrows():
        columns = {**json.loads(row["hyperparameters"]), **row}
        group, own, setting = (text.format(**columns) for text in (part.group, part.own, part.setting))
        if pd.notna(row["estimate"]):
            turned = part.inverse or row["baseline_framework"] == claim.rule.faster
            ratio = inverse(interval_of(row)) if turned else interval_of(row)
            outcome.cases.append(case_of(claim, ratio, row, group=group, own=own, setting=setting))
        elif why := NOISY if row["why"] == DISTURBED else part.lost:
            lost.append(f"{', '.join(filter(None, [group, own]))} ({why})")
    lacking = [part.wanted.format(framework=one) for one in part.of_each if one not in there]
    if not (part.of_each or there or lost):
        lacking = [part.wanted.format(name=name)]
    outcome.missing.extend([*lacking, *lost])


def _of_training(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame[frame["workload"].map(lambda name: workloads.load(name).kind == "training").astype(bool)]
    on = frame["device"] != "cpu"
    return frame[on] if on.any() else frame
