"""Findings: the results of a study in a few sentences, of which every number is in a table, too."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pandas as pd

from benchlib import tables
from benchlib.equivalence.certificate import SAME
from benchlib.plotting import naming
from benchlib.stats.amortisation import AT_ONCE, NEVER, NOT_SHOWN, PAYS
from benchlib.stats.comparison import FASTER, SLOWER, is_within, same_within
from benchlib.study import Sentences, Study, metric_name
from benchlib.tables import number, spelled, verdict

Name = Callable[[pd.Series], str]  # of a row


def effects(
    where: Name,
    quantity: str = "throughput_ratio",
    who: Name = lambda row: row["subject"],
    to: Name = lambda row: row["baseline_subject"],
) -> Sentences:
    """The subjects shown to be faster or slower than their baseline: how often, and ``where`` most."""

    def answer(study: Study) -> Iterator[str]:
        table = pd.DataFrame(
            {
                **{"name": spelled(who(row)), "other": spelled(to(row)), "place": where(row), "shown": verdict(row)},
                **row[["estimate", "low", "high"]],
            }
            for _, row in study.rows(quantity).iterrows()
            if pd.isna(row["reason"])
        )
        if not len(table):
            return
        other, place = (table[name][0] if table[name].nunique() == 1 else "" for name in ("other", "place"))
        than, at = f" than {other}" if other else "", f" at {place}" if place else ""
        table["name"] += "" if other else " against " + table["other"]
        table["of"] = table["name"].map(table["name"].value_counts())
        sentences = []
        for shown in dict.fromkeys([FASTER, SLOWER, *table["shown"]]):
            rows = table[table["shown"] == shown].sort_values("estimate", ascending=shown != FASTER)
            each = [_count_verdicts(of_name, not place) for _, of_name in rows.groupby("name", sort=False)]
            head = f"{shown.capitalize()}{than if shown in (FASTER, SLOWER) else ''}{at}"
            sentences += [f"{head}: {'; '.join(each)}."] if each else []
        yield from filter(None, [*sentences[:1], " ".join(sentences[1:])])

    return answer


def _count_verdicts(rows: pd.DataFrame, with_place: bool) -> str:
    """The number of rows with a verdict, and the first of them, which has the largest effect."""
    first, shown = rows.iloc[0], rows["shown"].iloc[0]
    name = f"{first['name']} in {len(rows)} of {first['of']}" if first["of"] > 1 else first["name"]
    if shown not in (FASTER, SLOWER):
        return name
    estimate, _, ends = tables.ratio(first["estimate"], first["low"], first["high"]).partition(" ")
    most = f"{'up' if shown == FASTER else 'down'} to {estimate}" if len(rows) > 1 else estimate
    place = f" at {first['place']}" if with_place and first["place"] else ""
    return f"{name} ({most} times as fast{place}, {ends.strip('[]').replace(', ', ' to ')})"


def _by_subject(study: Study, quantity: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """The rows of a quantity that have a number, by subject."""
    for who, rows in study.rows(quantity).dropna(subset="estimate").groupby("subject", sort=False):
        yield spelled(who), rows


def without_accelerator(study: Study) -> Iterator[str]:
    """The fact that nothing but the CPU was measured."""
    if {one.device for one in study.every} == {"cpu"}:
        yield "No GPU was measured: everything ran on the CPU."


def growth(study: Study) -> Iterator[str]:
    """The batch size at which throughput is highest."""
    each = []
    for who, rows in _by_subject(study, "samples_per_second"):
        first, best = rows.loc[rows["batch_size"].idxmin()], rows.loc[rows["estimate"].idxmax()]
        times = f"{number(best['estimate'] / first['estimate'])} times that at batch {first['batch_size']}"
        each += [f"{who} at batch {best['batch_size']} ({times})"] if len(rows) > 1 else []
    if each:
        yield f"Throughput is highest: {'; '.join(each)}."


def overtaking(x: str, unit: str, where: Name) -> Sentences:
    """The values of a column ``x`` between which the slower of two becomes the faster, for each name of ``where``."""

    def answer(study: Study) -> Iterator[str]:
        rows = study.rows("throughput_ratio")
        shown = rows[rows["verdict"].isin((FASTER, SLOWER))].sort_values(x)
        shown = shown.assign(place=[where(row) for _, row in shown.iterrows()])
        found = []
        for (place, *both), of_pair in shown.groupby(["place", "subject", "baseline_subject"], sort=False):
            for (_, before), (_, after) in itertools.pairwise(of_pair.iterrows()):
                if before["verdict"] != after["verdict"]:
                    first, second = map(spelled, both if after["verdict"] == FASTER else reversed(both))
                    between = f"between {number(before[x])} and {number(after[x])} {unit}"
                    found.append(f"{first} overtakes {second} in {place}, {between}")
        yield f"{'; '.join(found) or 'At no size that was measured is one shown to overtake another'}."

    return answer


def soonest(x: str) -> Sentences:
    """The value of a column ``x`` with which each subject reaches the threshold first, by medians over seeds."""

    def answer(study: Study) -> Iterator[str]:
        for who, rows in study.rows("epochs_to_threshold").groupby("subject", sort=False):
            missed = ", ".join(f"{value:g}" for value in rows.loc[rows["estimate"].isna(), x])
            each, words = [f"not reached at {missed}"] if missed else [], x.replace("_", " ")
            if rows["estimate"].notna().any():
                first = rows.loc[rows["estimate"].idxmin()]
                after = f"{first['estimate']:g} epochs, {number(first['seconds_to_threshold'])} s"
                each.insert(0, f"soonest at {words} {first[x]:g}, after {after} ({tables.reached(first)} runs)")
            yield f"{spelled(who)}, to the threshold of {rows['threshold'].iloc[0]:g}: {'; '.join(each)}."

    return answer


def epoch_times(study: Study) -> Iterator[str]:
    """The differences of epoch times over each subject's conditions, and over runs of one condition."""
    for who, rows in _by_subject(study, "epoch_s"):
        seeds, means = 100 * ((rows["highest"] / rows["lowest"]).max() - 1), rows["estimate"]
        apart = f", {100 * (means.max() / means.min() - 1):.0f} % apart" if len(means) > 1 else ""
        yield f"{who}: an epoch takes {tables.span_text([*means], 3)} s{apart}; up to {seeds:.0f} % between seeds."


def best(x: str) -> Sentences:
    """The value of a column ``x`` at which each subject's metric is highest after the epochs that all runs have. Also
    whether it is inside the grid, and the values that the seeds cannot tell apart.
    """

    def answer(study: Study) -> Iterator[str]:
        for who, rows in _by_subject(study, "final_metric"):
            row, words = rows.loc[rows["estimate"].idxmax()], x.replace("_", " ")
            unit = " %" if row["unit"] == "%" else ""
            mean, low, high = (number(row[end]) + unit for end in ("estimate", "lowest", "highest"))
            inside = rows[x].min() < row[x] < rows[x].max()
            ends = "lower at both ends" if inside else "no inner maximum is shown"
            alike = [f"{one:g}" for one in rows[(rows["highest"] >= row["lowest"]) & (rows[x] != row[x])][x]]
            also = f"; the seeds' ranges overlap with those at {', '.join(alike)}" if alike else ""
            highest = f"{metric_name(row['workload'], row['data'])} is highest at {words} {row[x]:g}"
            yield f"{who}, after {row['epochs']} epochs: {highest}, {mean} (seeds: {low} to {high}), {ends}{also}."

    return answer


def impossible(study: Study) -> Iterator[str]:
    """The conditions that cannot run here, and why."""
    rows = study.rows("throughput_ratio")
    for _, row in rows[rows["reason"].notna()].iterrows():
        yield f"{row['task']}: {spelled(row['subject'])} is {row['why']}: {row['reason']}"


def unrounded(study: Study) -> Iterator[str]:
    """The precisions that change nothing."""
    for comparison in study.comparisons:
        for one, name in naming.subjects(comparison.conditions).items():
            if comparison.certificates[one.key].unrounded:
                same = f"{spelled(name)} computes {one.workload} as exactly as fp32"
                yield f"{same}: its ratio shows nothing of the precision."


def compilation(study: Study) -> Iterator[str]:
    """The cases in which compilation to a graph pays, after how many steps, and those in which it does not."""
    parts = []
    for _, row in study.rows("pays_after_steps").iterrows():
        if verdict(row) in (PAYS, AT_ONCE, NEVER, NOT_SHOWN):
            after = f" after {row['estimate']:,.0f} steps" if pd.notna(row["estimate"]) else ""
            parts.append(f"{spelled(row['subject'])} {verdict(row)}{after} ({row['task']})")
    if parts:
        yield f"Compilation to a graph: {'; '.join(parts)}."


def efficiency(study: Study) -> Iterator[str]:
    """The efficiency of each subject's processes that train together, and the cost of the exchange of gradients."""
    for who, rows in _by_subject(study, "efficiency_percent"):
        each = []
        for _, row in rows.iterrows():
            way = "strong" if row["batch_size"] == row["baseline_batch_size"] else "weak"
            if pd.notna(row.get("communication_percent")):
                way += f"; the exchange takes {tables.interval_text(row, 'communication_percent')} % of a step"
            each.append(f"{tables.interval_text(row)} % ({row['world_size']} processes, {way})")
        yield f"{who}: of the throughput of as many single processes, together they reach {', '.join(each)}."


def agreements(study: Study) -> Iterator[str]:
    """The number of tasks whose metric differs from the first subject's, and the first one at the threshold."""
    rows = study.rows("final_metric")
    if "metric_difference_verdict" in rows:
        others = rows[rows["metric_difference_processes"].notna()]
        verdicts = others["metric_difference_verdict"].fillna("no interval").value_counts()
        counted = ", ".join(f"{shown} in {count} of {len(others)}" for shown, count in verdicts.items())
        yield f"The metric after training from the same seeds: {counted}."
    for _, row in study.rows("threshold_ratio").dropna(subset="estimate").iterrows():
        one, other = spelled(row["subject"]), spelled(row["baseline_subject"])
        times = tables.ratio(row["estimate"], row["low"], row["high"])
        yield f"{row['task']}: {one} reaches the threshold {times} times as soon as {other}."


def different_models(study: Study) -> Iterator[str]:
    """The tasks and subjects whose model is not certified as the reference's."""
    runs = study.runs
    others = runs.loc[runs["models"] != SAME, ["task", "subject"]].drop_duplicates() if len(runs) else runs
    for task, who in others.itertuples(index=False, name=None):
        yield f"{task}, {spelled(who)}: its model is not the reference's, or was not checked: do not compare its runs."


def resolution(study: Study) -> Iterator[str]:
    """The share of identical processes that are distinguished, and the differences that are too small to be seen."""
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
    """The number of timers that see all the work that was planted, and those that do not."""
    if study.timers:
        text = [f"{sum(one.ok for one in study.timers)} of {len(study.timers)} timers see the work that was planted."]
        named = naming.subjects(one.condition for one in study.timers)
        for one, name in zip(study.timers, named.values(), strict=True):
            blind = f"the timer sees {one.share:.0%} of the work: its times are wrong"
            text += [] if one.ok else [f"{spelled(name)} on {one.condition.device}: {one.failure or blind}."]
        yield " ".join(text)
