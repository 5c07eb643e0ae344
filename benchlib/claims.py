"""Verdicts on what the works published, from the tables of this profile's notebooks.

Each claim (``benchlib/published/works.yaml``) names its rule, a function here; the docstring of the rule is what the
notebook ``claims`` shows as the rule. A rule finds the cases that the claim is about: numbers of this machine that, by
their 95 % intervals, support the claim, contradict it, or leave it open. Then, for every claim alike (:func:`judge`):

- *not reproduced* if a case contradicts it;
- *no difference shown* if none does, and a case leaves it open;
- *reproduced* if every case that the claim names was measured, and all support it;
- *not measured here* otherwise, with what was measured of it, and what the rest would take.

A verdict is about this machine, these data, and the direction of a claim: a ratio of 1.1 reproduces "5.03 times as
long", with the published figure beside it. Other hardware than the published is no reason for or against a verdict, but
is a part of its sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from benchlib import published, suite, tables, workloads
from benchlib.measure.statistics import Interval, geometric_interval
from benchlib.published import Claim, claims
from benchlib.results import Store

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
NO_DIFFERENCE, NOT_MEASURED = "no difference shown", "not measured here"
VERDICTS = (REPRODUCED, NOT_REPRODUCED, NO_DIFFERENCE, NOT_MEASURED)

SUPPORTS, CONTRADICTS, OPEN = "supports", "contradicts", "leaves open"

FLAT = 1.1
"""Times of an epoch within this factor of each other count as little affected (C15)."""

ALIKE = 1.25
"""Training times within this factor of each other count as about equally fast (C17)."""


@dataclass(frozen=True)
class Case:
    """One number that a claim is about: what it is of, how it bears on the claim, the files that it was made from."""

    of: str
    bears: str
    measured: str  # in words, with its interval
    files: str
    ratio: Interval | None = None  # where the claim is about a ratio: in the claimed direction, above 1 supports it
    published: float | None = None  # what was published for it


@dataclass(frozen=True)
class Outcome:
    """What a rule found: the cases, and what the claim names that was not measured, with what it would take."""

    cases: list[Case]
    missing: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict."""

    claim: Claim
    outcome: Outcome
    verdict: str
    rule: str  # in words


class Results:
    """The tables of a profile's notebooks, as their CSV files say."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._places: dict[str, list[str]] = {}  # by file

    def studied(self, notebook: str) -> str:
        """The workload and the data of a notebook whose parameters name one of each."""
        parameters = (suite.read_record(self.folder, notebook) or {}).get("parameters", {})
        return f"{parameters.get('workload', notebook)} on {parameters.get('data', 'its data')}"

    def epochs(self, notebook: str) -> int | None:
        """After how many epochs a notebook compares metrics."""
        return (suite.read_record(self.folder, notebook) or {}).get("parameters", {}).get("epochs")

    def places(self, files: str) -> list[str]:
        """What the measurements in these files were made on, each once: the machine, and its accelerator if they used
        one. Files that cannot be read are left out; the report names them.
        """
        keys = files.split()
        for key in keys:
            if key not in self._places:  # several claims rest on a file, and each tells its places several times
                self._places[key] = self._places_of(key)
        return list(dict.fromkeys(place for key in keys for place in self._places[key]))

    def _places_of(self, key: str) -> list[str]:
        try:
            measured = Store(self.folder / "measurements").outline(key)
        except (OSError, ValueError, KeyError):
            return []
        found = []
        for m in measured:
            used = {"cuda": m.machine.get("gpus", []), "npu": m.machine.get("npus", [])}.get(m.condition.device, [])
            found.append(", ".join([*dict.fromkeys(used), f"{m.machine['cores']} cores of {m.machine['cpu']}"]))
        return found

    def table(self, notebook: str, name: str, *needs: str) -> pd.DataFrame:
        """Unrounded; empty where there is none, its notebook did not succeed, or it is of an older benchlib and has
        not the columns that a rule ``needs``; or where it is not the one that the notebook wrote.
        """
        record, path = suite.read_record(self.folder, notebook), f"tables/{notebook}_{name}.csv"
        if record is None or record["status"] != "succeeded" or path not in record["files"]:
            return pd.DataFrame()
        if any(suite.wrong_files({"files": {path: record["files"][path]}}, self.folder)):
            return pd.DataFrame()  # another run, or a hand, has changed it: not what the record tells of
        frame = pd.read_csv(self.folder / path)
        return frame if {tables.FILES, *needs} <= set(frame) else pd.DataFrame()


def judged(folder: Path) -> list[Judged]:
    """All claims with their verdicts, from the results in ``folder``."""
    results = Results(folder)
    found = []
    for claim in claims():
        arguments = dict(claim.rule)
        rule = RULES[arguments.pop("name")]
        outcome = rule(results, claim, **arguments)
        told = " ".join((rule.__doc__ or "").split())
        found.append(Judged(claim, outcome, judge(outcome), told))
    return found


def judge(outcome: Outcome) -> str:
    """The verdict on what a rule found, by the order of this module's docstring."""
    bears = {case.bears for case in outcome.cases}
    if CONTRADICTS in bears:
        return NOT_REPRODUCED
    if OPEN in bears:
        return NO_DIFFERENCE
    return NOT_MEASURED if outcome.missing or not outcome.cases else REPRODUCED


def time_to_threshold(results: Results, claim: Claim, faster: str, names: list[str]) -> Outcome:
    """The training time to the threshold in the one framework over that in the other, within seeds, where every run
    reached it; MindSpore in graph mode. Above 1 supports the claim, below 1 contradicts it."""
    learned = results.table("frameworks", "learned", "threshold_ratio")
    outcome = Outcome([])
    for name in names:
        rows = _of_task(learned, name)
        rows = rows[rows["subject"].map(_is_mindspore_graph)] if len(rows) else rows
        rows = rows.dropna(subset="threshold_ratio") if len(rows) else rows
        for _, row in rows.iterrows():
            ratio = _interval(row, "threshold_ratio")
            sooner = ratio if faster == "mindspore" else _inverse(ratio)
            outcome.cases.append(
                _ratio_case(f"{row['task']}, {row['subject']}", sooner, row, claim.published.get(name))
            )
        if not len(rows):
            outcome.missing.append(f"{name} trained to its threshold in both frameworks, from every seed")
    return outcome


def first_epoch_slower(results: Results, claim: Claim) -> Outcome:
    """The time of the first epoch, compilation included, over the geometric mean of the others, of every workload in
    every framework and mode. Above 1 supports the claim, below 1 contradicts it."""
    frame = results.table("frameworks", "first_epochs")
    cases = [
        _ratio_case(f"{row['task']}, {row['subject']}", _interval(row, "first_epoch"), row)
        for _, row in frame.iterrows()
    ]
    return Outcome(cases, _both_frameworks(frame, "training runs of the notebook frameworks"))


def mixed_precision_faster(results: Results, claim: Claim) -> Outcome:
    """Throughput of training in each mixed precision over that in fp32, same framework and mode; on accelerators only,
    where there is one. Above 1 supports the claim, below 1 contradicts it."""
    frame = _accelerated(_training(results.table("modes", "within", "within_ratio")))
    mixed = frame[frame["subject"].map(_is_mixed)].dropna(subset="within_ratio") if len(frame) else frame
    cases = [
        _ratio_case(f"{row['task']}, {row['subject']}", _interval(row, "within_ratio"), row)
        for _, row in mixed.iterrows()
    ]
    return Outcome(cases, _both_frameworks(mixed, "mixed precision in the notebook modes"))


def mindspore_eager_slower(results: Results, claim: Claim) -> Outcome:
    """Throughput of training in MindSpore in graph mode over that in eager mode, and in PyTorch in eager mode over
    MindSpore in eager mode, in fp32; on accelerators only, where there is one. Above 1 supports the claim, below 1
    contradicts it."""
    within, ratios = (_accelerated(_training(results.table("modes", name))) for name in ("within", "ratios"))
    cases, missing = [], []
    if len(within):
        of_modes = within[within["subject"].map(_is_mindspore_graph) & ~within["subject"].map(_is_mixed)]
        of_modes = of_modes.dropna(subset="within_ratio")
        for _, row in of_modes.iterrows():
            who = f"{row['task']}, MindSpore graph over eager"
            cases.append(_ratio_case(who, _interval(row, "within_ratio"), row))
    if not cases:
        missing.append("MindSpore in both modes in the notebook modes (PROFILE=full has them)")
    eager = pd.DataFrame()
    if len(ratios):
        eager = ratios[ratios["subject"].map(lambda who: who.startswith("mindspore eager") and not _is_mixed(who))]
        eager = eager.dropna(subset="ratio")
        for _, row in eager.iterrows():
            who = f"{row['task']}, PyTorch eager over MindSpore eager"
            cases.append(_ratio_case(who, _inverse(_interval(row, "ratio")), row))
    if not len(eager):
        missing.append("MindSpore in eager mode beside PyTorch in the notebook modes (PROFILE=full has it)")
    return Outcome(cases, missing)


def scales_better(results: Results, claim: Claim, framework: str, than: str) -> Outcome:
    """The efficiency of the one framework over that of the other, for each number of processes and way of scaling; the
    two intervals, which are independent, are combined on the scale of logarithms. Above 1 supports the claim, below 1
    contradicts it."""
    frame = results.table("scaling", "scaling")
    outcome = Outcome([])
    if len(frame):
        frame = frame.dropna(subset="efficiency_percent")
        frame = frame.assign(framework=[subject.split()[0] for subject in frame["subject"]])
        for (kind, count), rows in frame[frame["world_size"] > 1].groupby(["scaling", "world_size"], sort=False):
            pairs = rows.drop_duplicates("framework").set_index("framework")
            if {framework, than} <= set(pairs.index):
                one, other = pairs.loc[framework], pairs.loc[than]
                ratio = _over(_interval(one, "efficiency_percent"), _interval(other, "efficiency_percent"))
                outcome.cases.append(
                    _ratio_case(f"{kind} scaling, {count} processes", ratio, one, files=_files(one, other))
                )
    if not outcome.cases:
        outcome.missing.append(
            f"{framework} and {than} in the notebook scaling (PROFILE=full has both), on several devices"
        )
    elif frame["world_size"].max() <= 2:
        outcome.missing.append("more than two processes or devices")
    return outcome


def crosses_with_size(results: Results, claim: Claim) -> Outcome:
    """For each operator and kind of pass, by the number of parameters, both frameworks in the lane tuned: PyTorch over
    MindSpore at the fewest, MindSpore over PyTorch at the most. Above 1 supports the claim, below 1 contradicts it."""
    frame = results.table("operators", "ratios", "parameters")
    outcome = Outcome([])
    if not len(frame):
        return Outcome([], ["the notebook operators"])
    frame = frame[(frame["framework"] == "mindspore") & (frame["lane"] == "tuned")].dropna(subset="ratio")
    for (operator, passes, who), rows in frame.groupby(["workload", "passes", "subject"], sort=False):
        rows = rows.sort_values(["parameters", "million_multiply_adds"])
        few, many = rows.iloc[0], rows.iloc[-1]
        if few["parameters"] == many["parameters"]:
            outcome.missing.append(f"{operator}, {passes}, with two numbers of parameters")
            continue
        start = f"{operator}, {passes}, {who}"
        counts = [f"{row['parameters']:,} parameters" for row in (few, many)]
        small, large = _inverse(_interval(few, "ratio")), _interval(many, "ratio")
        outcome.cases.append(_ratio_case(f"{start}, PyTorch over it at {counts[0]}", small, few))
        outcome.cases.append(_ratio_case(f"{start}, it over PyTorch at {counts[1]}", large, many))
    return outcome


def trains_faster(results: Results, claim: Claim, names: list[str]) -> Outcome:
    """Throughput of whole epochs of training, MindSpore in graph mode over PyTorch, within seeds. Above 1 supports the
    claim, below 1 contradicts it."""
    learned = results.table("frameworks", "learned", "epoch_ratio")
    outcome = Outcome([])
    for name in names:
        rows = _of_task(learned, name)
        rows = rows[rows["subject"].map(_is_mindspore_graph)].dropna(subset="epoch_ratio") if len(rows) else rows
        for _, row in rows.iterrows():
            ratio = _interval(row, "epoch_ratio")
            outcome.cases.append(_ratio_case(f"{row['task']}, {row['subject']}", ratio, row, claim.published.get(name)))
        if not len(rows):
            outcome.missing.append(f"{name} trained in both frameworks (PROFILE=full)")
    return outcome


def answers_faster(results: Results, claim: Claim) -> Outcome:
    """Images per second, MindSpore in graph mode over PyTorch, at every batch size that was measured. Above 1 supports
    the claim, below 1 contradicts it."""
    frame = results.table("inference", "ratios")
    if len(frame):
        frame = frame[(frame["framework"] == "mindspore") & (frame["mode"] == "graph")].dropna(subset="ratio")
    cases = [
        _ratio_case(
            f"{results.studied('inference')}, {row['subject']}, batch {row['batch_size']}",
            _interval(row, "ratio"),
            row,
            claim.published.get("resnet50_inference"),
        )
        for _, row in frame.iterrows()
    ]
    return Outcome(cases, [] if cases else ["MindSpore in graph mode in the notebook inference (PROFILE=full has it)"])


def gpu_faster(results: Results, claim: Claim) -> Outcome:
    """Throughput on a CUDA GPU over that on the CPU with all threads, same framework. Above 1 supports the claim, below
    1 contradicts it."""
    frame = results.table("devices", "ratios")
    frame = frame[frame["device"] == "cuda"].dropna(subset="ratio") if len(frame) else frame
    cases = [
        _ratio_case(
            f"{results.studied('devices')}, {row['subject']}",
            _interval(row, "ratio"),
            row,
            claim.published.get(row["framework"]),
        )
        for _, row in frame.iterrows()
    ]
    missing = [] if cases else ["a CUDA GPU"]
    return Outcome(cases, [*missing, "TensorFlow and MXNet, which are not among the frameworks of this suite yet"])


def grows_with_batch(results: Results, claim: Claim) -> Outcome:
    """Samples per second, peak memory (the accelerator's, where there is one) and the accelerator's utilisation, at the
    largest batch size over the smallest, same framework; the two intervals, which are independent, are combined on the
    scale of logarithms. Above 1 supports the claim, below 1 contradicts it."""
    frame = results.table("batch_size", "indicators", "memory_mib_low")
    outcome = Outcome([])
    if not len(frame):
        return Outcome([], ["the notebook batch_size"])
    accelerated = frame["accelerator_percent"].notna().any()
    measured = {"samples_per_second": "speed", "memory_mib": "peak memory"}
    if accelerated:
        del measured["memory_mib"]
        measured |= {"accelerator_memory_mib": "the accelerator's memory", "accelerator_percent": "its utilisation"}
    else:
        outcome.missing.append("a GPU, for its utilisation (device in parameters/PROFILE/batch_size.yaml)")
    for who, rows in frame.dropna(subset="samples_per_second").groupby("subject", sort=False):
        rows = rows.sort_values("batch_size")
        small, large = rows.iloc[0], rows.iloc[-1]
        if small["batch_size"] == large["batch_size"]:
            outcome.missing.append(f"{who} at two batch sizes at least")
            continue
        sizes = f"batch {large['batch_size']} over {small['batch_size']}"
        start = f"{results.studied('batch_size')}, {who}"
        for name, words in measured.items():
            ratio = _over(_interval(large, name), _interval(small, name))
            outcome.cases.append(_ratio_case(f"{start}, {words}, {sizes}", ratio, large, files=_files(small, large)))
    return outcome


def inner_maximum(results: Results, claim: Claim, notebook: str, x: str) -> Outcome:
    """The mean metric over seeds against the hyperparameter, of each subject with three values of it at least. An inner
    value whose lowest seed is above every seed of both ends supports the claim; an end whose lowest seed is above every
    seed of all others contradicts it, if it is as far out as the published values go: else the maximum may be beyond
    it. With one seed the question stays open. The number of epochs is the notebook's, and told."""
    frame = results.table(notebook, "metric")
    if not len(frame):
        return Outcome([], [f"the notebook {notebook}"])
    named = {"subject", x, "lowest", "highest", "runs", "failed", tables.FILES}
    column = next(name for name in frame if name not in named)
    outcome = Outcome([])
    for who, rows in frame.dropna(subset=column).groupby("subject", sort=False):
        rows = rows.sort_values(x)
        if len(rows) < 3:
            continue
        best = rows.loc[rows[column].idxmax()]
        ends, others = rows.iloc[[0, -1]], rows[rows[x] != best[x]]
        inside = best[x] not in set(ends[x])
        published_at = published.works()["accuracy"][x]["at"]
        far_out = best[x] <= min(published_at) or best[x] >= max(published_at)
        if (rows["runs"] - rows["failed"]).min() < 2:
            bears = OPEN
        elif inside and best["lowest"] > ends["highest"].max():
            bears = SUPPORTS
        elif not inside and far_out and best["lowest"] > others["highest"].max():
            bears = CONTRADICTS
        else:
            bears = OPEN
        seeds = f"seeds {tables.number(best['lowest'])} to {tables.number(best['highest'])}"
        values = ", ".join(f"{value:g}" for value in rows[x])
        told = f"best at {best[x]:g} of {values}: {tables.number(best[column])} ({seeds})"
        after = f"{column.replace('_percent', ' (%)')} after {results.epochs(notebook)} epochs"
        outcome.cases.append(Case(f"{results.studied(notebook)}, {who}, {after}", bears, told, _files(*rows.iloc)))
    if not outcome.cases:
        outcome.missing.append(f"three values of the {x.replace('_', ' ')} in one framework at least")
    return outcome


def epoch_time_flat(results: Results, claim: Claim) -> Outcome:
    """The time of an epoch at each learning rate over that at the first, within seeds, same framework. An interval
    within 10 % of 1 supports the claim, one wholly outside contradicts it."""
    runs = results.table("learning_rate", "runs")
    outcome = Outcome([])
    if not len(runs):
        return Outcome([], ["the notebook learning_rate"])
    for who, of_subject in runs.groupby("subject", sort=False):
        by_rate = [(rate, rows.set_index("seed")) for rate, rows in of_subject.groupby("learning_rate", sort=True)]
        first_rate, first = by_rate[0]
        start = f"{results.studied('learning_rate')}, {who}"
        for rate, rows in by_rate[1:]:
            logs = (np.log(rows["epoch_s"]) - np.log(first["epoch_s"])).dropna().to_list()
            ratio = geometric_interval(logs)
            files = tables.together([*first[tables.FILES], *rows[tables.FILES]])
            told = tables.ratio(ratio.estimate, ratio.low, ratio.high)
            outcome.cases.append(Case(f"{start}, rate {rate:g} over {first_rate:g}", _within(ratio, FLAT), told, files))
    return outcome


def gru_alike_on_gpu(results: Results, claim: Claim) -> Outcome:
    """Throughput of the GRU, one framework over the other, on a CUDA GPU. An interval within a factor of 1.25 of 1
    supports the claim, one wholly outside contradicts it."""
    frame = results.table("frameworks", "ratios")
    cases = []
    if len(frame):
        on_gpu = frame[(frame["device"] == "cuda") & frame["task"].str.startswith("gru ")].dropna(subset="ratio")
        for _, row in on_gpu.iterrows():
            ratio = _interval(row, "ratio")
            told = tables.ratio(ratio.estimate, ratio.low, ratio.high)
            cases.append(Case(f"{row['task']}, {row['subject']}", _within(ratio, ALIKE), told, _files(row)))
    missing = [
        "gru in the notebook frameworks on a CUDA GPU (device in parameters/PROFILE/frameworks.yaml), in two frameworks"
    ]
    missing = [] if cases else missing
    return Outcome(cases, missing)


def autotuning_faster(results: Results, claim: Claim) -> Outcome:
    """Throughput with cuDNN's search for convolution algorithms over that without it, on a CUDA GPU. Above 1 supports
    the claim, below 1 contradicts it."""
    frame = results.table("instrument", "knobs")
    rows = frame[frame["change"] == "without cudnn_benchmark"].dropna(subset="ratio") if len(frame) else frame
    cases = [_ratio_case(row["subject"], _inverse(_interval(row, "ratio")), row) for _, row in rows.iterrows()]
    knob = "single_knobs in parameters/PROFILE/instrument.yaml, on a CUDA GPU (device)"
    return Outcome(cases, [] if cases else [knob])


def out_of_reach(results: Results, claim: Claim, takes: str) -> Outcome:
    """Nothing here can be measured for it."""
    return Outcome([], [takes])


RULES: dict[str, Callable[..., Outcome]] = {
    rule.__name__: rule
    for rule in (
        time_to_threshold,
        first_epoch_slower,
        mixed_precision_faster,
        mindspore_eager_slower,
        scales_better,
        crosses_with_size,
        trains_faster,
        answers_faster,
        gpu_faster,
        grows_with_batch,
        inner_maximum,
        epoch_time_flat,
        gru_alike_on_gpu,
        autotuning_faster,
        out_of_reach,
    )
}


def bearing(ratio: Interval) -> str:
    """How a ratio in the claimed direction bears on the claim: by which side of 1 its interval is on."""
    if not ratio.excludes(1):
        return OPEN
    return SUPPORTS if ratio.estimate > 1 else CONTRADICTS


def _within(ratio: Interval, factor: float) -> str:
    """Of a claim that two things are alike: is the interval within a factor of 1, or wholly outside?"""
    if not (math.isfinite(ratio.low) and math.isfinite(ratio.high)):
        return OPEN
    if 1 / factor <= ratio.low and ratio.high <= factor:
        return SUPPORTS
    return CONTRADICTS if ratio.low > factor or ratio.high < 1 / factor else OPEN


def _ratio_case(of: str, ratio: Interval, row: pd.Series, published: float | None = None, files: str = "") -> Case:
    told = tables.ratio(ratio.estimate, ratio.low, ratio.high)
    return Case(of, bearing(ratio), told, files or _files(row), ratio, published)


def _interval(row: pd.Series, name: str) -> Interval:
    count = row.get("processes")
    return Interval(row[name], row[f"{name}_low"], row[f"{name}_high"], 0 if pd.isna(count) else int(count))


def _inverse(ratio: Interval) -> Interval:
    return Interval(1 / ratio.estimate, 1 / ratio.high, 1 / ratio.low, ratio.processes)


def _over(one: Interval, other: Interval) -> Interval:
    """The ratio of two independent estimates, their half-widths combined on the scale of logarithms."""
    if not (one.low > 0 and other.low > 0):
        return Interval(one.estimate / other.estimate, math.nan, math.nan, 0)
    halves = [math.log(each.high / each.low) / 2 for each in (one, other)]
    half, estimate = math.hypot(*halves), one.estimate / other.estimate
    low, high = estimate * math.exp(-half), estimate * math.exp(half)
    return Interval(estimate, low, high, min(one.processes, other.processes))


def _files(*rows: pd.Series) -> str:
    return tables.together(str(row[tables.FILES]) for row in rows if pd.notna(row.get(tables.FILES)))


def _of_task(frame: pd.DataFrame, workload: str) -> pd.DataFrame:
    return frame[frame["task"].str.startswith(f"{workload} on ")] if len(frame) else frame


def _training(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of tasks that train something."""
    if not len(frame):
        return frame
    return frame[[workloads.load(task.partition(" ")[0]).kind == "training" for task in frame["task"]]]


def _accelerated(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of accelerators, if there are any; the notebook names a task's device where there are several."""
    on = frame["task"].str.endswith((", cuda", ", npu")) if len(frame) else []
    return frame[on] if len(frame) and on.any() else frame


def _is_mindspore_graph(subject: str) -> bool:
    return subject.startswith("mindspore graph")


def _is_mixed(subject: str) -> bool:
    return any(word.startswith(("bf16", "fp16")) for word in subject.split())


def _both_frameworks(frame: pd.DataFrame, what: str) -> list[str]:
    """What is missing where not both frameworks have rows."""
    there: Iterable[str] = {subject.split()[0] for subject in frame["subject"]} if len(frame) else ()
    return [f"{what} in {name}" for name in ("pytorch", "mindspore") if name not in there]
