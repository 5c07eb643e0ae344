"""The rules of what goes with a size: the number of processes, of an operator's parameters, of samples in a batch."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pandas as pd

from benchlib.literature.cases import case_of, control_doubt, files_of, interval_of, inverse, over, without_disturbed
from benchlib.literature.results import Results
from benchlib.literature.verdicts import CONTRADICTS, NO_INTERVAL, OPEN, SUPPORTS, Case, Outcome
from benchlib.literature.works import Claim
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import DISTURBED, FASTER, SLOWER, verdict_on


def scales_better(results: Results, claim: Claim, framework: str, than: str) -> Outcome:
    """Of each number of processes and way of scaling, one framework's efficiency over the other's."""
    groups = results.rows("scaling", "efficiency_percent")
    shared = groups["batch_size"] == groups["baseline_batch_size"]  # else each process has the baseline's for itself
    groups = groups.assign(scaling=np.where(shared.fillna(False), "strong", "weak"))
    groups, missing = without_disturbed(groups, "{scaling} scaling, {world_size} processes, {subject}")
    cases = []
    for (way, count), rows in groups.groupby(["scaling", "world_size"], sort=False):
        both = ([row for _, row in rows[rows["framework"] == name].iterrows()] for name in (framework, than))
        for one, other in itertools.product(*both):
            group = f"{way} scaling, {one['subject']} over {other['subject']}"
            ratio = over(interval_of(one), interval_of(other))
            cases.append(case_of(claim, ratio, one, other, group=group, own=f"{count} processes"))
    if not cases and not missing:
        missing = [f"{framework} and {than} in the notebook scaling (PROFILE=full has both), on several devices"]
    elif len(groups) and groups["world_size"].max() <= 2:
        missing.append("more than two processes or devices")
    return Outcome(cases, missing)


def grows_with_batch(results: Results, claim: Claim) -> Outcome:
    """Of each subject, what it takes and gives at the largest batch size over the smallest."""
    speeds = results.rows("batch_size", "samples_per_second")
    speeds, missing = without_disturbed(speeds, "{subject} at batch {batch_size}")
    if not len(speeds):
        return Outcome([], missing or ["the notebook batch_size"])
    quantities, cases = {"samples_per_second": "speed", "memory_mib": "peak memory"}, []
    if results.rows("batch_size", "accelerator_percent")["estimate"].notna().any():
        quantities = {"samples_per_second": "speed", "accelerator_memory_mib": "the accelerator's memory"}
        quantities["accelerator_percent"] = "its utilisation"
    else:
        missing.append("a GPU, for its utilisation (device in parameters/PROFILE/batch_size.yaml)")
    for who, rows in speeds.groupby("subject", sort=False):
        small, large = rows["batch_size"].min(), rows["batch_size"].max()
        if small == large:
            missing.append(f"{who} at two batch sizes at least")
            continue
        group = f"{rows['workload'].iloc[0]} on {rows['data'].iloc[0]}, {who}, batch {large} over {small}"
        for name, words in quantities.items():
            compared = results.rows("batch_size", name)
            compared = compared[(compared["subject"] == who) & (compared["kind"] == tidy.COMPARISON)]
            ends = [compared[compared["batch_size"] == size].iloc[0] for size in (large, small)]
            ratio = over(*map(interval_of, ends))
            if not math.isfinite(ratio.estimate):
                missing.append(f"{who}, {words} at batch {large} and {small}")
                continue
            doubt = next(filter(None, map(control_doubt, reversed(ends))), "") if name == "samples_per_second" else ""
            if name == "memory_mib" and math.isnan(ratio.low):
                firsts = " and ".join(f"{end['processes']} at batch {end['batch_size']}" for end in reversed(ends))
                doubt = f"{NO_INTERVAL}: peak memory counts only in those that measured the size first, {firsts}"
            cases.append(case_of(claim, ratio, *reversed(ends), group=group, own=words, doubt=doubt))
    return Outcome(cases, missing)


def fastest_by_batch(results: Results, claim: Claim, small: str, large: str, beside: str, most: int) -> Outcome:
    """Of each batch size, one framework over each other: ``small`` up to so many samples at ``most``, above them
    ``large``. The work has compared both with the one ``beside`` them: where one of the three is not there, nothing is
    said.
    """
    every = results.rows("batch_size", "throughput_ratio")
    frame, missing = without_disturbed(every, "{subject} at batch {batch_size}")
    cases = []
    for words, fastest, there in (
        (f"of {most} or less", small, every["batch_size"] <= most),
        (f"above {most}", large, every["batch_size"] > most),
    ):
        if not there.any():
            missing.append(f"a batch size {words} in the notebook batch_size")
            continue
        seen = every[there & (every["estimate"].notna() | (every["why"] == DISTURBED))]
        lacking = {small, large, beside} - {*seen["framework"], *seen["baseline_framework"]}
        missing += [
            f"{name} at a batch size {words} in the notebook batch_size (PROFILE=frameworks has all, as far as their "
            "environments are there)"
            for name in sorted(lacking)
        ]
        for size, rows in frame[there.reindex(frame.index)].groupby("batch_size") if not lacking else ():
            cases += _over_others(claim, fastest, rows, f"{rows['task'].iloc[0]}, batch {size}")
    return Outcome(cases, missing)


def _over_others(claim: Claim, fastest: str, rows: pd.DataFrame, group: str) -> Iterator[Case]:
    """Of rows relative to one baseline, each subject of a framework over each of the others."""
    first = rows.iloc[0]
    ratios = {row["subject"]: (row["framework"], row) for _, row in rows.iterrows()}
    ratios[first["baseline_subject"]] = (first["baseline_framework"], None)
    for (one, (who, own)), (other, (whose, its)) in itertools.permutations(ratios.items(), 2):
        if who != fastest or whose == fastest:
            continue
        if its is None:
            ratio = interval_of(own)
        elif own is None:
            ratio = inverse(interval_of(its))
        else:
            ratio = over(interval_of(own), interval_of(its))
        known = [row for row in (own, its) if row is not None]
        yield case_of(claim, ratio, *known, group=group, own=f"{one} over {other}")


def crosses_with_size(results: Results, claim: Claim, late: str, early: str) -> Outcome:
    """Of each operator, the ratios at both ends of its sizes; and which of two crosses first."""
    frame = results.rows("operators", "throughput_ratio")
    frame = frame.assign(passes=tidy.hyperparameter(frame, "passes"))
    pair = {"framework": "mindspore", "baseline_framework": "pytorch", "lane": "tuned", "baseline_lane": "tuned"}
    frame = frame[(frame[list(pair)] == pd.Series(pair)).all(axis=1)]
    frame, missing = without_disturbed(frame, "{workload}, {passes}, {subject} at {parameters:,} parameters")
    if not len(frame):
        return Outcome([], missing or ["MindSpore beside PyTorch in the lane tuned in the notebook operators"])
    cases, sizes = [], {}
    for (operator, passes, who), rows in frame.groupby(["workload", "passes", "subject"], sort=False):
        rows = rows.sort_values(["parameters", "million_multiply_adds"])
        few, many = rows.iloc[0], rows.iloc[-1]
        if few["parameters"] == many["parameters"]:
            missing.append(f"{operator}, {passes}, with two numbers of parameters")
            continue
        ratios = {"PyTorch over it": (few, inverse(interval_of(few))), "it over PyTorch": (many, interval_of(many))}
        cases += [
            case_of(
                claim,
                ratio,
                row,
                group=f"{operator}, {passes}, {who}",
                own=f"{words} at {row['parameters']:,} parameters",
            )
            for words, (row, ratio) in ratios.items()
        ]
        sizes.setdefault(f"{passes}, {who}", {})[operator] = rows
    orders = [_order_case(of, late, early, rows) for of, rows in sizes.items() if {late, early} <= set(rows)]
    if not orders:
        missing.append(f"{late} and {early}, each with two numbers of parameters, for which of them crosses first")
    return Outcome([*cases, *orders], missing)


def _order_case(of: str, late: str, early: str, rows: dict[str, pd.DataFrame]) -> Case:
    """Which of two operators MindSpore is faster in from fewer parameters on."""
    (late_until, late_from), (early_until, early_from) = ends = [_crossing(rows[name]) for name in (late, early)]
    bears, why = OPEN, "the sizes do not tell which crosses first"
    if late_until >= early_from:
        bears, why = SUPPORTS, ""
    elif early_until >= late_from:
        bears, why = CONTRADICTS, ""
    sides = "; ".join(f"{name}: {_sides(*each)}" for name, each in zip((late, early), ends, strict=True))
    files = files_of(*pd.concat([rows[late], rows[early]]).iloc)
    return Case(f"{of}, {late} crosses later than {early}", bears, sides, files, why=why)


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


def _sides(until: float, start: float) -> str:
    slower = f"PyTorch faster up to {until:,.0f} parameters" if math.isfinite(until) else ""
    faster = f"MindSpore from {start:,.0f} on" if math.isfinite(start) else ""
    return ", ".join(filter(None, [slower, faster])) or "no side shown"
