"""Findings: what a study shows in a few sentences. Every number is in the tables; here are those that one would tell
somebody.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import pandas as pd

from benchlib import data, metrics, tables, workloads
from benchlib.condition import implementation
from benchlib.equivalence.certificate import SAME
from benchlib.plotting import naming
from benchlib.runner import availability
from benchlib.stats.amortisation import AT_ONCE, NEVER, NOT_SHOWN, PAYS
from benchlib.stats.comparison import FASTER, NO_DIFFERENCE, SLOWER, is_within, same_within
from benchlib.study import Sentences, Study
from benchlib.tables import verdict

Name = Callable[[pd.Series], str]
"""What a row is called."""

FEW = 2
"""Pairs that have a sentence each; of more, those that are faster have one, and those that are slower."""

EXTREME = {FASTER: "max", SLOWER: "min"}
"""Of the estimates of a verdict, the one that is told."""


def effects(
    where: Name,
    quantity: str = "throughput_ratio",
    who: Name = lambda row: row["subject"],
    to: Name = lambda row: row["baseline_subject"],
) -> Sentences:
    """Of each two that were compared: how often which is shown to be faster, and ``where`` the effects are largest."""

    def answer(study: Study) -> Iterator[str]:
        rows = study.rows(quantity)
        rows = rows[rows["reason"].isna()] if len(rows) else rows
        if not len(rows):
            return
        told = pd.DataFrame(
            {
                "one": rows.apply(who, axis=1),
                "other": rows.apply(to, axis=1),
                "place": rows.apply(where, axis=1),
                "shown": rows.apply(verdict, axis=1),
                **rows[["estimate", "low", "high"]],
            }
        )
        pairs = told.groupby(["one", "other"], sort=False)
        if len(pairs) <= FEW:
            yield from (_of_pair(*names, of_both) for names, of_both in pairs)
        else:
            yield from _of_many(told)

    return answer


def without_accelerator(study: Study) -> Iterator[str]:
    """That nothing but the CPU was measured."""
    if {one.device for one in study.every} == {"cpu"}:
        yield "What a GPU brings was not measured: everything ran on the CPU."


def not_usable(study: Study) -> Iterator[str]:
    """Which devices the frameworks that were measured cannot use here, and why."""
    there = {(one.framework, one.environment) for one in study.every}
    rows = availability.survey(dict.fromkeys(one.environment for one in study.every))
    lacking = [row for row in rows if row["missing"] and (row["framework"], row["environment"]) in there]
    if lacking:
        each = (f"{implementation(row['framework'], row['environment'])}: {row['missing']}." for row in lacking)
        yield f"Not usable here: {' '.join(each)}"


def growth(study: Study) -> Iterator[str]:
    """At which batch size throughput is highest."""
    each = []
    for who, rows in study.rows("samples_per_second").groupby("subject", sort=False):
        known = rows.dropna(subset="estimate").sort_values("batch_size")
        if len(known) > 1:
            first, best = known.iloc[0], known.loc[known["estimate"].idxmax()]
            times = tables.number(best["estimate"] / first["estimate"])
            each.append(f"{who} at batch {best['batch_size']} ({times} times that at batch {first['batch_size']})")
    if each:
        yield f"Throughput is highest: {'; '.join(each)}."


def overtaking(x: str, unit: str, where: Name) -> Sentences:
    """Between which values of a column ``x`` one that was shown to be slower than another is shown to be faster, or the
    other way round. What ``where`` calls the same belongs together.
    """

    def answer(study: Study) -> Iterator[str]:
        rows = study.rows("throughput_ratio")
        if not len(rows):
            return
        shown = rows[rows["verdict"].isin(EXTREME)].sort_values(x)
        shown = shown.assign(place=[where(row) for _, row in shown.iterrows()])
        found: dict[str, list[str]] = {}
        for (place, one, other), of_pair in shown.groupby(["place", "subject", "baseline_subject"], sort=False):
            for (_, before), (_, after) in itertools.pairwise(of_pair.iterrows()):
                if before["verdict"] != after["verdict"]:
                    first, second = (one, other) if after["verdict"] == FASTER else (other, one)
                    ends = " and ".join(tables.number(row[x]) for row in (before, after))
                    found.setdefault(f"{first} overtakes {second}", []).append(f"{place}, between {ends} {unit}")
        each = "; ".join(f"{who} in {'; in '.join(places)}" for who, places in found.items())
        yield f"{each or 'At no size that was measured is one shown to overtake another'}."

    return answer


def soonest(x: str) -> Sentences:
    """With which value of a column ``x`` each subject is at the threshold soonest, and with which it is not: medians
    over seeds.
    """

    def answer(study: Study) -> Iterator[str]:
        for who, rows in study.rows("epochs_to_threshold").groupby("subject", sort=False):
            known, words = rows.dropna(subset="estimate"), x.replace("_", " ")
            missed = ", ".join(f"{value:g}" for value in rows.loc[rows["estimate"].isna(), x])
            if len(known):
                first = known.loc[known["estimate"].idxmin()]
                seconds = f", {tables.number(first['seconds_to_threshold'])} s"
                seconds = seconds if pd.notna(first["seconds_to_threshold"]) else ""
                lost = f", times left out: {lost}" if (lost := tables.left_out(first)) else ""
                runs = f"{first['processes']} of {first['runs']} runs{lost}"
                text = f"soonest at {words} {first[x]:g}, after {first['estimate']:g} epochs{seconds} ({runs})"
                text += f"; not at {missed}" if missed else ""
            else:
                text = f"not reached at {words} {missed}"
            yield f"{who}, to the threshold of {rows['threshold'].iloc[0]:g} (median over seeds): {text}."

    return answer


def epoch_times(study: Study) -> Iterator[str]:
    """How much the times of an epoch differ over each subject's conditions, and over runs of one condition."""
    for who, rows in study.rows("epoch_s").groupby("subject", sort=False):
        means = rows["estimate"].dropna()
        if len(means):
            seeds = 100 * ((rows["highest"] / rows["lowest"]).max() - 1)
            apart = f", {100 * (means.max() / means.min() - 1):.0f} % apart" if len(means) > 1 else ""
            yield f"{who}: an epoch takes {tables.span_text([*means], 3)} s{apart}; up to {seeds:.0f} % between seeds."


def best(x: str) -> Sentences:
    """At which value of a column ``x`` each subject's metric is highest after the epochs that all runs have, whether
    inside the grid, and what the seeds cannot tell apart.
    """

    def answer(study: Study) -> Iterator[str]:
        for who, rows in study.rows("final_metric").groupby("subject", sort=False):
            known = rows.dropna(subset="estimate").sort_values(x)
            after = f"{who}, after {rows['epochs'].iloc[0]} epochs"
            yield f"{after}: {_best(known, x)}" if len(known) else f"{after}: no run got there."

    return answer


def _best(rows: pd.DataFrame, x: str) -> str:
    row, words = rows.loc[rows["estimate"].idxmax()], x.replace("_", " ")
    unit = " %" if row["unit"] == "%" else ""
    mean, low, high = (tables.number(row[end]) + unit for end in ("estimate", "lowest", "highest"))
    seeds = f"mean of {row['processes']} seeds, {low} to {high}" if row["processes"] > 1 else "one seed"
    value = f"{mean} ({seeds})"
    name = f"{data.title(row['data'])} {metrics.name(workloads.load(row['workload']))}"
    if len(rows) == 1:
        return f"{name} {value} at {words} {row[x]:g}."
    inside = rows[x].min() < row[x] < rows[x].max()
    where = "inside the grid: lower at both ends" if inside else "an end of the grid: no inner maximum is shown"
    close = rows[(rows["highest"] >= row["lowest"]) & (rows[x] != row[x])][x]
    apart = f"; the seeds' ranges overlap with those at {', '.join(f'{one:g}' for one in close)}" if len(close) else ""
    return f"{name} is highest at {words} {row[x]:g}, {value}, {where}{apart}."


def impossible(study: Study) -> Iterator[str]:
    """What cannot be run here, and why."""
    rows = study.rows("throughput_ratio")
    for _, row in rows[rows["reason"].notna()].iterrows():
        yield f"{row['task']}: {row['subject']} is {row['why']}: {row['reason']}"


def unrounded(study: Study) -> Iterator[str]:
    """Which precisions change nothing."""
    exact = {
        (name, one.workload)
        for comparison in study.comparisons
        for one, name in naming.subjects(comparison.conditions).items()
        if comparison.certificates[one.key].unrounded
    }
    for name, workload in sorted(exact):
        yield f"{name} computes {workload} as exactly as fp32: its ratio shows nothing of the precision."


PAYS_BACK = {
    AT_ONCE: "has gained from the first step on",
    PAYS: "has paid for itself after {} steps",
    NOT_SHOWN: "is not shown to pay",
    NEVER: "never pays, its steps are slower",
}


def compilation(study: Study) -> Iterator[str]:
    """Where compilation to a graph has paid for itself, after how many steps, and where it does not."""
    rows = study.rows("pays_after_steps")
    several, parts = rows["task"].nunique() > 1, []
    for _, row in rows.iterrows():
        if verdict(row) in PAYS_BACK:
            steps = f"{round(row['estimate']):,}" if pd.notna(row["estimate"]) else ""
            on = f" on {row['task']}" if several else ""
            parts.append(f"{row['subject']}{on} {PAYS_BACK[verdict(row)].format(steps)}")
    if parts:
        yield f"Compilation to a graph: {'; '.join(parts)}."


def efficiency(study: Study) -> Iterator[str]:
    """How much of the number of processes each subject gains, and what the exchange of gradients takes."""
    for who, rows in study.rows("efficiency_percent").dropna(subset="estimate").groupby("subject", sort=False):
        each = []
        for _, row in rows.iterrows():
            way = "strong" if row["batch_size"] == row["baseline_batch_size"] else "weak"
            if pd.notna(row.get("communication_percent")):
                way += f"; the exchange takes {tables.interval_text(row, 'communication_percent')} % of a step"
            each.append(f"{tables.interval_text(row)} % ({row['world_size']} processes, {way})")
        yield f"{who}: of the throughput of as many single processes, together they reach {', '.join(each)}."


def agreements(study: Study) -> Iterator[str]:
    """In how many tasks the metric is shown to differ from the first subject's, and the time to the threshold."""
    rows = study.rows("final_metric")
    if "metric_difference_verdict" in rows:
        others = rows[rows["metric_difference_processes"].notna()]
        verdicts = others["metric_difference_verdict"].fillna("no interval").value_counts()
        counted = ", ".join(f"{verdict} in {number} of {len(others)}" for verdict, number in verdicts.items())
        yield f"What is learned from the same seeds, by its metric: {counted}."
    rows = study.rows("threshold_ratio")
    known = rows.dropna(subset="estimate")
    if len(known):
        most = known.loc[known["estimate"].map(lambda value: abs(math.log(value))).idxmax()]
        # People think of the time that it takes, of whoever is slower and of whoever is not.
        longer = tables.ratio(1 / most["estimate"], 1 / most["high"], 1 / most["low"])
        yield (
            f"The threshold was reached in every run of both in {len(known)} of {len(rows)} tasks; most apart in "
            f"{most['task']}: {most['subject']} takes {longer} times as long to it as {most['baseline_subject']}."
        )


def different_models(study: Study) -> Iterator[str]:
    """Of each task and subject whose model is not certified to be the reference's."""
    runs = study.runs
    others = runs.loc[runs["models"] != SAME, ["task", "subject"]].drop_duplicates() if len(runs) else runs
    for task, who in others.itertuples(index=False, name=None):
        yield f"{task}, {who}: its model is not the reference's, or was not checked: do not compare its runs."


def resolution(study: Study) -> Iterator[str]:
    """How often identical processes are told apart, and which differences are too small to be seen."""
    known = study.rows("control_ratio").dropna(subset="low")
    if not len(known):
        yield "No A/A could be measured: nothing is known of the resolution."
        return
    low, high, margin = known["low"], known["high"], study.margin
    halves = tables.span_text([*(50 * (high - low) / known["estimate"])], 2)
    yield (
        f"Identical processes against each other (A/A): {((low <= 1) & (high >= 1)).sum()} of {len(known)} intervals "
        f"include 1, {is_within(low, high, margin).sum()} are {same_within(margin)}, with a half-width of {halves} %. "
        "In the time that was allowed, smaller differences could not be shown in this notebook."
    )


def timers_see(study: Study) -> Iterator[str]:
    """How many timers see all the work that was planted, and which do not."""
    if not study.timers:
        return
    named = naming.subjects(one.condition for one in study.timers)
    shares = [min(one.share, one.share_of_few) for one in study.timers if one.ok]
    least = f" ({min(shares):.0%} of it, or more)" if shares else ""
    told = [f"{len(shares)} of {len(study.timers)} timers see the work that was planted to test them{least}."]
    for one in study.timers:
        if not one.ok:
            seen = f"{one.share:.0%} of planted {one.known_s:.2f} s and {one.share_of_few:.0%} of a few steps"
            blind = f"THE TIMER DOES NOT SEE ALL THE WORK: believe none of its times, {seen}."
            why = f"the timer could not be tested: {one.failure}" if one.failure else blind
            told.append(f"{named[one.condition]} on {one.condition.device}: {why}")
    yield " ".join(told)


def overhead(study: Study) -> Iterator[str]:
    """What measuring costs."""
    most = tables.number(100 * study.rows("parent_cores")["estimate"].max(), 2)
    yield (
        "While blocks ran, the process that asks for them and samples beside them used "
        f"{most} % of one core at most (a mean over a condition's processes)."
    )


def _of_pair(one: str, other: str, rows: pd.DataFrame) -> str:
    if len(rows) == 1:
        return f"{one} {_of_one(rows.iloc[0], other)}."
    parts = [
        f"{shown} in {len(some)} of {len(rows)} ({_most(some, shown)})"
        for shown in EXTREME
        if len(some := rows[rows["shown"] == shown])
    ]
    others = rows.loc[~rows["shown"].isin(EXTREME), "shown"].value_counts()
    parts += [f"{name} in {count}" for name, count in others.items()]
    return f"{one} compared with {other}: {'; '.join(parts)}."


def _of_one(row: pd.Series, other: str) -> str:
    place = _at(row["place"])
    if pd.isna(row["estimate"]):
        return f"has no ratio to {other}{place}: {row['shown']}"
    if row["shown"] == NO_DIFFERENCE:
        return f"is not shown to differ from {other}{place}{_ends(row, ' ({})')}"
    return f"is {_times(row)} as fast as {other}{place}{_ends(row, ' ({})')}"


def _of_many(told: pd.DataFrame) -> Iterator[str]:
    """Those that are faster, those that are slower, and behind the last of these whatever else was shown."""
    place, other = (_shared(told[name]) for name in ("place", "other"))
    names = told["one"] if other else told["one"] + " than " + told["other"]
    told = told.assign(name=names, of=names.map(names.value_counts()))
    sentences = []
    for shown, extreme in EXTREME.items():
        groups = [rows for _, rows in told[told["shown"] == shown].groupby("name", sort=False)]
        groups.sort(key=lambda rows: rows["estimate"].agg(extreme), reverse=shown == FASTER)
        listed = "; ".join(f"{_counted(rows)} ({_most(rows, shown, not place)})" for rows in groups)
        if listed:
            sentences.append(f"{shown.capitalize()}{f' than {other}' if other else ''}{_at(place)}: {listed}.")
    rest = told[~told["shown"].isin(EXTREME)]
    left = " ".join(
        f"{shown.capitalize()}: {'; '.join(_counted(rows) for _, rows in of_verdict.groupby('name', sort=False))}."
        for shown, of_verdict in rest.groupby("shown", sort=False)
    )
    yield from sentences[:-1]
    yield " ".join(filter(None, [*sentences[-1:], left]))


def _shared(names: pd.Series) -> str:
    """What all are; empty if they are not the same."""
    return names.iloc[0] if names.nunique() == 1 else ""


def _counted(rows: pd.DataFrame) -> str:
    """Two that were compared, in how many of their rows."""
    name, of = rows.iloc[0][["name", "of"]]
    return f"{name} in {len(rows)} of {of}" if of > 1 else name


def _most(rows: pd.DataFrame, shown: str, with_place: bool = True) -> str:
    """The largest effect of a verdict: how large, and where."""
    most = rows.loc[getattr(rows["estimate"], f"idx{EXTREME[shown]}")()]
    place = _at(most["place"]) if with_place else ""
    of_several = {FASTER: "up to ", SLOWER: "down to "}[shown] if len(rows) > 1 else ""
    return f"{of_several}{_times(most)} as fast{place}{_ends(most, ', {}')}"


def _at(place: str) -> str:
    return f" at {place}" if place else ""


def _times(row: pd.Series) -> str:
    return f"{_told(row)[0]} times"


def _ends(row: pd.Series, pattern: str) -> str:
    return pattern.format(_told(row)[1].strip("[]").replace(", ", " to ")) if pd.notna(row["low"]) else ""


def _told(row: pd.Series) -> tuple[str, str]:
    """A ratio and its interval, as a table has them."""
    estimate, _, ends = tables.ratio(row["estimate"], row["low"], row["high"]).partition(" ")
    return estimate, ends
