"""Verdicts on what the works published, from the tables of this profile's notebooks.

Each claim (``benchlib/published/works.yaml``) names its rule, a function here; the docstring of the rule, with the
rule's arguments, is what the notebook ``claims`` shows as the rule. A rule finds the cases that the claim is about:
numbers of this machine that, by their 95 % intervals, support the claim, contradict it, or leave it open. Then, for
every claim alike (:func:`judge`):

- *not reproduced* if a case contradicts it;
- *no difference shown* if none does, and a case leaves it open;
- *reproduced* if every case that the claim names was measured, and all support it;
- *not measured here* otherwise, with what was measured of it, and what the rest would take.

A ratio whose comparison has an A/A control that excludes 1 is not believed: it leaves its claim open. Of a claim that
things are alike, *no difference shown* would read as its confirmation: :func:`in_words` says instead that no difference
beyond the margin is shown, nor excluded.

A verdict is about this machine, these data, and the direction of a claim: a ratio of 1.1 reproduces "5.03 times as
long", with the published figure beside it. Other hardware than the published is no reason for or against a verdict, nor
are other data or another threshold than the work's; but both are a part of its sentence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

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

NO_INTERVAL = "too few processes or seeds for an interval"
ONE_SEED = "one seed says nothing of the others"
RESTLESS = "A/A excludes 1: the baseline differs from itself"
TOO_WIDE = "an interval is wider than the margin"
WITHIN_OR_BEYOND = "a difference is shown, but not whether it is beyond the margin"
"""Why a case leaves its claim open, where that is not simply that its interval includes 1."""

OTHER_DATA, OTHER_WORKLOAD = "on stand-in data", "with other workloads than the work's"
OTHER_THRESHOLD, OTHER_EPOCHS = "to another threshold than the work's", "after another number of epochs than the work's"
"""How what was measured here differs from what the work says that it used."""


@dataclass(frozen=True)
class Case:
    """One number that a claim is about: what it is of, how it bears on the claim, the files that it was made from."""

    of: str
    bears: str
    measured: str  # in words, with its interval
    files: str
    ratio: Interval | None = None  # where the claim is about a ratio: in the claimed direction, above 1 supports it
    published: float | None = None  # what was published for it
    control: Interval | None = None  # the A/A of its comparison, where it has one
    why: str = ""  # it leaves the claim open
    setting: str = ""  # what it was measured with, and what the work used where that differs
    stands_in: tuple[str, ...] = ()  # how it differs from the work's


@dataclass(frozen=True)
class Outcome:
    """What a rule found: the cases, and what the claim names that was not measured, with what it would take."""

    cases: list[Case]
    missing: list[str] = field(default_factory=list)
    margin: float | None = None  # of a claim that things are alike: within this factor


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict."""

    claim: Claim
    outcome: Outcome
    verdict: str
    rule: str  # in words


class Setting(NamedTuple):
    """What a case was measured with, as :class:`Case` takes it."""

    told: str = ""
    stands_in: tuple[str, ...] = ()

    def of(self, case: Case) -> Case:
        """The case with this setting."""
        return replace(case, setting=self.told, stands_in=self.stands_in)


class Results:
    """The tables of a profile's notebooks, as their CSV files say; each is read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._records: dict[str, dict[str, Any]] = {}
        self._frames: dict[tuple[str, str], pd.DataFrame] = {}
        self._places: dict[str, list[str]] = {}

    def parameters(self, notebook: str) -> dict[str, Any]:
        """With which a notebook ran."""
        return self._record(notebook).get("parameters", {})

    def task(self, notebook: str, name: str) -> dict[str, Any]:
        """The parameters of a notebook's task, by the name that its tables give it (perhaps with a device)."""
        tasks = self.parameters(notebook).get("tasks", [])
        return next((task for task in tasks if name.split(", ")[0] == f"{task['workload']} on {task['data']}"), {})

    def studied(self, notebook: str) -> tuple[str, str]:
        """The workload and the data of a notebook whose parameters name one of each."""
        parameters = self.parameters(notebook)
        return parameters.get("workload", notebook), parameters.get("data", "its data")

    def places(self, files: str) -> list[str]:
        """What the measurements in these files were made on, each once: the machine, and its accelerator if they used
        one. Files that cannot be read are left out; the report names them.
        """
        return list(dict.fromkeys(place for key in files.split() for place in self._places_of(key)))

    def table(self, notebook: str, name: str, *needs: str) -> pd.DataFrame:
        """Unrounded; empty where there is none, its notebook did not succeed, or it is of an older benchlib and has
        not the columns that a rule ``needs``; or where it is not the one that the notebook wrote.
        """
        if (notebook, name) not in self._frames:
            self._frames[notebook, name] = self._read(notebook, name)
        frame = self._frames[notebook, name]
        return frame if {tables.FILES, *needs} <= set(frame) else pd.DataFrame()

    def _read(self, notebook: str, name: str) -> pd.DataFrame:
        record, path = self._record(notebook), f"tables/{notebook}_{name}.csv"
        if record.get("status") != "succeeded" or path not in record["files"]:
            return pd.DataFrame()
        alone = {"files": {path: record["files"][path]}}  # of the other files nothing is read here
        if list(suite.wrong_files(alone, self.folder)):
            return pd.DataFrame()  # another run, or a hand, has changed it: not what the record tells of
        return pd.read_csv(self.folder / path)

    def _record(self, notebook: str) -> dict[str, Any]:
        if notebook not in self._records:
            self._records[notebook] = suite.read_record(self.folder, notebook) or {}
        return self._records[notebook]

    def _places_of(self, key: str) -> list[str]:
        if key not in self._places:
            try:
                measured = Store(self.folder / "measurements").documents(key)
            except (OSError, ValueError, KeyError):
                measured = []
            self._places[key] = list(dict.fromkeys(_place(m) for m in measured))
        return self._places[key]


def judged(results: Results) -> list[Judged]:
    """All claims with their verdicts."""
    found = []
    for claim in claims():
        arguments = dict(claim.rule)
        rule = RULES[arguments.pop("name")]
        outcome = rule(results, claim, **arguments)
        told = " ".join((rule.__doc__ or "").split())
        values = "; ".join(f"{name}: {_listed(value)}" for name, value in arguments.items())
        found.append(Judged(claim, outcome, judge(outcome), f"{told} Here {values}." if values else told))
    return found


def judge(outcome: Outcome) -> str:
    """The verdict on what a rule found, by the order of this module's docstring."""
    bears = {case.bears for case in outcome.cases}
    if CONTRADICTS in bears:
        return NOT_REPRODUCED
    if OPEN in bears:
        return NO_DIFFERENCE
    return NOT_MEASURED if outcome.missing or not outcome.cases else REPRODUCED


def in_words(one: Judged) -> str:
    """A verdict with what it is short of: the published size, what no rule tests, a decision, the work's own data."""
    cases, verdict = one.outcome.cases, one.verdict
    said = [verdict[0].upper() + verdict[1:]]
    if verdict == NOT_MEASURED:
        return f"{said[0]} in full" if cases else said[0]
    if verdict == REPRODUCED and one.claim.published:
        said.append("in direction")
    if verdict == REPRODUCED and one.claim.untested:
        said.append(f"but not tested: {one.claim.untested}")
    if verdict == NO_DIFFERENCE:
        if one.outcome.margin is not None:
            said = [f"No difference beyond a factor of {one.outcome.margin:g} shown, nor excluded"]
        why = dict.fromkeys(case.why for case in cases if case.bears == OPEN and case.why)
        said[0] += f" ({'; '.join(why)})" if why else ""
    for how in dict.fromkeys(how for case in cases for how in case.stands_in):
        said.append(how if all(how in case.stands_in for case in cases) else f"in part {how}")
    return ", ".join(said)


def undecided(one: Judged) -> bool:
    """Does *no difference shown* say too much? Nothing was shown, or the claim is that there is none."""
    return one.verdict == NO_DIFFERENCE and (
        one.outcome.margin is not None or all(case.why for case in one.outcome.cases if case.bears == OPEN)
    )


def time_to_threshold(results: Results, claim: Claim, faster: str, names: list[str]) -> Outcome:
    """The training time to the threshold in the one framework over that in the other (the one that is ``faster``),
    within seeds, where every run reached it; MindSpore in graph mode against PyTorch. Above 1 supports the claim, below
    1 contradicts it."""
    learned = _against_pytorch(results.table("frameworks", "learned", "threshold_ratio", "baseline"))
    outcome = Outcome([])
    for name in names:
        rows = _graph_rows(_of_task(learned, name), "threshold_ratio")
        for _, row in rows.iterrows():
            ratio = _interval(row, "threshold_ratio")
            sooner = ratio if faster == "mindspore" else _inverse(ratio)
            case = _ratio_case(f"{row['task']}, {row['subject']}", sooner, row, claim.published.get(name))
            threshold = results.task("frameworks", row["task"]).get("threshold")
            outcome.cases.append(_of_tasks_data(claim, row["task"], threshold=threshold).of(case))
        if not len(rows):
            outcome.missing.append(f"{name} trained to its threshold in both frameworks, from every seed")
    return outcome


def first_epoch_slower(results: Results, claim: Claim) -> Outcome:
    """The time of the first epoch, compilation included, over the geometric mean of the others, of every workload in
    every framework and mode. Above 1 supports the claim, below 1 contradicts it."""
    every = results.table("frameworks", "first_epochs", "first_epoch")
    frame = every.dropna(subset="first_epoch") if len(every) else every
    outcome = Outcome([], _both_frameworks(frame, "training runs of the notebook frameworks"))
    for _, row in every.iterrows():
        who = f"{row['task']}, {row['subject']}"
        if pd.isna(row["first_epoch"]):
            outcome.missing.append(f"{who}, of which no run has two epochs")
            continue
        epochs = results.task("frameworks", row["task"]).get("epochs")
        setting = _of_tasks_data(claim, row["task"], f"{epochs} epochs" if epochs else "")
        outcome.cases.append(setting.of(_ratio_case(who, _interval(row, "first_epoch"), row)))
    return outcome


def mixed_precision_faster(results: Results, claim: Claim) -> Outcome:
    """Throughput of training in each mixed precision over that in fp32, same framework, mode and lane; on accelerators
    only, where there is one. Above 1 supports the claim, below 1 contradicts it."""
    frame = _within_frameworks(results)
    mixed = frame
    if len(frame):
        pairs = zip(frame["subject"].map(_Subject.of), frame["baseline"].map(_Subject.of), strict=True)
        mixed = frame[[one.is_mixed and other == one._replace(precision="fp32") for one, other in pairs]]
    cases = [
        _of_tasks_data(claim, row["task"]).of(
            _ratio_case(f"{row['task']}, {row['subject']}", _interval(row, "within_ratio"), row)
        )
        for _, row in mixed.iterrows()
    ]
    return Outcome(cases, _both_frameworks(mixed, "mixed precision in the notebook modes"))


def mindspore_eager_slower(results: Results, claim: Claim) -> Outcome:
    """Throughput of training in MindSpore in graph mode over that in eager mode, and in PyTorch in eager mode over
    MindSpore in eager mode, in fp32; on accelerators only, where there is one. Above 1 supports the claim, below 1
    contradicts it."""
    within, ratios = _within_frameworks(results), _accelerated(_training(results.table("modes", "ratios", "baseline")))
    cases, missing = [], []
    for _, row in within.iterrows():
        one, other = _Subject.of(row["subject"]), _Subject.of(row["baseline"])
        if one[:3] == ("mindspore", "graph", "fp32") and other == one._replace(mode="eager"):
            case = _ratio_case(f"{row['task']}, MindSpore graph over eager", _interval(row, "within_ratio"), row)
            cases.append(_of_tasks_data(claim, row["task"]).of(case))
    if not cases:
        missing.append("MindSpore in both modes in the notebook modes (PROFILE=full has them)")
    count = len(cases)
    for _, row in ratios.iterrows():
        one, other = _Subject.of(row["subject"]), _Subject.of(row["baseline"])
        eager = one[:3] == ("mindspore", "eager", "fp32") and other[:3] == ("pytorch", "eager", "fp32")
        if eager and pd.notna(row["ratio"]):
            who = f"{row['task']}, PyTorch eager over MindSpore eager"
            case = _ratio_case(who, _inverse(_interval(row, "ratio")), row)
            cases.append(_of_tasks_data(claim, row["task"]).of(case))
    if len(cases) == count:
        missing.append("MindSpore in eager mode beside PyTorch in the notebook modes (PROFILE=full has it)")
    return Outcome(cases, missing)


def scales_better(results: Results, claim: Claim, framework: str, than: str) -> Outcome:
    """The efficiency of the one framework over that of the other, for each number of processes and way of scaling; the
    two intervals, which are independent, are combined on the scale of logarithms. Above 1 supports the claim, below 1
    contradicts it."""
    frame = results.table("scaling", "scaling")
    outcome, setting = Outcome([]), _of_data(claim, *results.studied("scaling"))
    if len(frame):
        frame = frame.dropna(subset="efficiency_percent")
        frame = frame.assign(framework=[subject.split()[0] for subject in frame["subject"]])
        for (kind, count), rows in frame[frame["world_size"] > 1].groupby(["scaling", "world_size"], sort=False):
            pairs = rows.drop_duplicates("framework").set_index("framework")
            if {framework, than} <= set(pairs.index):
                one, other = pairs.loc[framework], pairs.loc[than]
                ratio = _over(_interval(one, "efficiency_percent"), _interval(other, "efficiency_percent"))
                case = _ratio_case(f"{kind} scaling, {count} processes", ratio, one, files=_files(one, other))
                outcome.cases.append(setting.of(case))
    if not outcome.cases:
        outcome.missing.append(
            f"{framework} and {than} in the notebook scaling (PROFILE=full has both), on several devices"
        )
    elif frame["world_size"].max() <= 2:
        outcome.missing.append("more than two processes or devices")
    return outcome


def crosses_with_size(results: Results, claim: Claim, late: str, early: str) -> Outcome:
    """For each operator and kind of pass, by the number of parameters, MindSpore against PyTorch, both in the lane
    tuned: PyTorch over MindSpore at the fewest, MindSpore over PyTorch at the most. Above 1 supports the claim, below 1
    contradicts it. And of the two operators that cross ``late`` and ``early``: that PyTorch is still faster in the
    one at a number of parameters at which MindSpore is in the other supports the claim, the reverse contradicts it."""
    frame = _against_pytorch(results.table("operators", "ratios", "parameters", "baseline"))
    if len(frame):
        of_mindspore = (frame["framework"] == "mindspore") & frame["baseline"].str.endswith(" tuned")
        frame = frame[of_mindspore & (frame["lane"] == "tuned")].dropna(subset="ratio")
    outcome = Outcome([])
    if not len(frame):
        return Outcome([], ["MindSpore beside PyTorch in the lane tuned in the notebook operators"])
    crossings: dict[tuple[str, str], dict[str, pd.DataFrame]] = {}
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
        crossings.setdefault((passes, who), {})[operator] = rows
    both = {key: found for key, found in crossings.items() if {late, early} <= set(found)}
    for (passes, who), found in both.items():
        outcome.cases.append(_order_case(f"{passes}, {who}", {name: found[name] for name in (late, early)}))
    if not both:
        outcome.missing.append(
            f"{late} and {early}, each with two numbers of parameters, for which of them crosses first"
        )
    return outcome


def trains_faster(results: Results, claim: Claim, names: list[str]) -> Outcome:
    """Throughput of whole epochs of training, MindSpore in graph mode over PyTorch, within seeds. Above 1 supports the
    claim, below 1 contradicts it."""
    learned = _against_pytorch(results.table("frameworks", "learned", "epoch_ratio", "baseline"))
    outcome = Outcome([])
    for name in names:
        rows = _graph_rows(_of_task(learned, name), "epoch_ratio")
        for _, row in rows.iterrows():
            ratio = _interval(row, "epoch_ratio")
            case = _ratio_case(f"{row['task']}, {row['subject']}", ratio, row, claim.published.get(name))
            task = results.task("frameworks", row["task"])
            trained = f"batch {task['batch_size']}, {task['epochs']} epochs" if task else ""
            outcome.cases.append(_of_tasks_data(claim, row["task"], trained).of(case))
        if not len(rows):
            outcome.missing.append(f"{name} trained in both frameworks (PROFILE=full)")
    return outcome


def answers_faster(results: Results, claim: Claim) -> Outcome:
    """Images per second, MindSpore in graph mode over PyTorch, at every batch size that was measured. Above 1 supports
    the claim, below 1 contradicts it."""
    frame = _against_pytorch(results.table("inference", "ratios", "baseline"))
    if len(frame):
        frame = frame[(frame["framework"] == "mindspore") & (frame["mode"] == "graph")].dropna(subset="ratio")
    size = results.parameters("inference").get("hyperparameters", {}).get("image_size")
    setting = Setting(f"images of {size} x {size}" if size else "")
    cases = [
        setting.of(
            _ratio_case(
                f"{_on(results, 'inference')}, {row['subject']} over {row['baseline']}, batch {row['batch_size']}",
                _interval(row, "ratio"),
                row,
                claim.published.get("resnet50_inference"),
            )
        )
        for _, row in frame.iterrows()
    ]
    return Outcome(cases, [] if cases else ["MindSpore in graph mode in the notebook inference (PROFILE=full has it)"])


def gpu_faster(results: Results, claim: Claim) -> Outcome:
    """Throughput on a CUDA GPU over that on the CPU with all threads, same framework. Above 1 supports the claim, below
    1 contradicts it."""
    frame = results.table("devices", "ratios", "baseline")
    if len(frame):
        frame = frame[(frame["device"] == "cuda") & ~_across_frameworks(frame)].dropna(subset="ratio")
    batch = results.parameters("devices").get("batch_size")
    setting = _of_data(claim, *results.studied("devices"), f"batch {batch}" if batch else "")
    cases = [
        setting.of(
            _ratio_case(
                f"{_on(results, 'devices')}, {row['subject']}",
                _interval(row, "ratio"),
                row,
                claim.published.get(row["framework"]),
            )
        )
        for _, row in frame.iterrows()
    ]
    missing = [] if cases else ["a CUDA GPU"]
    return Outcome(cases, [*missing, "TensorFlow and MXNet, which are not among the frameworks of this suite yet"])


def grows_with_batch(results: Results, claim: Claim) -> Outcome:
    """Samples per second, peak memory (the accelerator's, where there is one) and the accelerator's utilisation, at the
    largest batch size over the smallest, same framework; the two intervals, which are independent, are combined on the
    scale of logarithms. Above 1 supports the claim, below 1 contradicts it; speed, only if neither size's A/A excludes
    1."""
    frame = results.table("batch_size", "indicators", "memory_mib_low")
    compared = results.table("batch_size", "ratios", "control_low")
    restless = {row["batch_size"] for _, row in compared.iterrows() if _restless(_control(row))}
    outcome, setting = Outcome([]), _of_data(claim, *results.studied("batch_size"))
    frame = frame.dropna(subset="samples_per_second") if len(frame) else frame
    if not len(frame):
        return Outcome([], ["the notebook batch_size"])
    accelerated = frame["accelerator_percent"].notna().any()
    measured = {"samples_per_second": "speed", "memory_mib": "peak memory"}
    if accelerated:
        del measured["memory_mib"]
        measured |= {"accelerator_memory_mib": "the accelerator's memory", "accelerator_percent": "its utilisation"}
    else:
        outcome.missing.append("a GPU, for its utilisation (device in parameters/PROFILE/batch_size.yaml)")
    for who, rows in frame.groupby("subject", sort=False):
        rows = rows.sort_values("batch_size")
        small, large = rows.iloc[0], rows.iloc[-1]
        if small["batch_size"] == large["batch_size"]:
            outcome.missing.append(f"{who} at two batch sizes at least")
            continue
        sizes = f"batch {large['batch_size']} over {small['batch_size']}"
        start = f"{_on(results, 'batch_size')}, {who}, {sizes}"
        for name, words in measured.items():
            ratio = _over(_interval(large, name), _interval(small, name))
            if not math.isfinite(ratio.estimate):
                outcome.missing.append(f"{who}, {words} at batch {large['batch_size']} and {small['batch_size']}")
                continue
            case = _ratio_case(f"{start}, {words}", ratio, large, files=_files(small, large))
            if name == "samples_per_second" and restless & {small["batch_size"], large["batch_size"]}:
                case = replace(case, bears=OPEN, why=RESTLESS)
            outcome.cases.append(setting.of(case))
    return outcome


def inner_maximum(results: Results, claim: Claim, notebook: str, x: str, epochs: int, best: float) -> Outcome:
    """The mean metric over seeds against the hyperparameter ``x``, of each subject with three values of it at least. An
    inner value whose lowest seed is above every seed of both ends supports the claim; an end whose lowest seed is above
    every seed of all others contradicts it, if it is as far out as the published values go: else the maximum may be
    beyond it. And that it is best near the published ``best`` value: the maximum lies between the values beside those
    whose seeds reach the lowest seed of the best; if that is between the published neighbours of the published best, it
    supports the claim, if it is wholly outside of them, it contradicts it. With one seed both stay open. Where the
    notebook did not train for the published number of ``epochs``, that is missing."""
    frame = results.table(notebook, "metric")
    if not len(frame):
        return Outcome([], [f"the notebook {notebook}"])
    named = {"subject", x, "lowest", "highest", "runs", "failed", tables.FILES}
    column = next(name for name in frame if name not in named)
    ours, words = results.parameters(notebook).get("epochs"), x.replace("_", " ")
    outcome, setting = Outcome([]), _of_data(claim, *results.studied(notebook))
    if ours != epochs:
        trained = f"after {ours} epochs" if ours else "after a number of epochs that is not recorded"
        setting = Setting(
            "; ".join(filter(None, [setting.told, f"{trained}, the work after {epochs}"])),
            (*setting.stands_in, OTHER_EPOCHS),
        )
        outcome.missing.append(f"{epochs} epochs (epochs in parameters/PROFILE/{notebook}.yaml)")
    coarse = False
    for who, rows in frame.dropna(subset=column).groupby("subject", sort=False):
        rows = rows.sort_values(x)
        if len(rows) < 3:
            continue
        top = rows.loc[rows[column].idxmax()]
        seeds = f"seeds {tables.number(top['lowest'])} to {tables.number(top['highest'])}"
        values = ", ".join(f"{value:g}" for value in rows[x])
        told = f"best at {top[x]:g} of {values}: {tables.number(top[column])} ({seeds})"
        of, files = f"{_on(results, notebook)}, {who}, {column.replace('_percent', ' (%)')}", _files(*rows.iloc)
        one_seed = (rows["runs"] - rows["failed"]).min() < 2
        why = ONE_SEED if one_seed else ""
        bears = OPEN if one_seed else _inside(rows, x, top)
        outcome.cases.append(setting.of(Case(f"{of}, rises and falls", bears, told, files, why=why)))
        if not _fine(rows[x], x, best):
            coarse = True
            continue
        low, high = _bracket(rows, x, top)
        bears = OPEN if one_seed else _near((low, high), _beside(published.tried(x), best))
        told = "the maximum is " + (f"below {high:g}" if low == 0 else f"above {low:g}")
        told += f" and below {high:g}" if low > 0 and math.isfinite(high) else ""
        outcome.cases.append(setting.of(Case(f"{of}, best near {best:g}", bears, told, files, why=why)))
    if not outcome.cases:
        outcome.missing.append(f"three values of the {words} in one framework at least")
    elif coarse:
        low, high = _beside(published.tried(x), best)
        outcome.missing.append(f"values of the {words} no farther from {best:g} than {low:g} and {high:g}")
    return outcome


def epoch_time_flat(results: Results, claim: Claim) -> Outcome:
    """The time of an epoch at each learning rate over that at the first, within seeds, same framework. An interval
    within a factor of 1.1 of 1 supports the claim, one wholly outside contradicts it."""
    runs = results.table("learning_rate", "runs", "epoch_s")
    setting = _of_data(claim, *results.studied("learning_rate"))
    outcome = Outcome([], margin=FLAT)
    for who, of_subject in runs.groupby("subject", sort=False) if len(runs) else ():
        by_rate = [(rate, rows.set_index("seed")) for rate, rows in of_subject.groupby("learning_rate", sort=True)]
        first_rate, first = by_rate[0]
        for rate, rows in by_rate[1:]:
            logs = (np.log(rows["epoch_s"]) - np.log(first["epoch_s"])).dropna().to_list()
            if not logs:
                outcome.missing.append(f"{who}, rates {rate:g} and {first_rate:g} from one seed (the runs failed)")
                continue
            ratio, files = geometric_interval(logs), tables.together([*first[tables.FILES], *rows[tables.FILES]])
            bears, why = _within(ratio, FLAT)
            of = f"{_on(results, 'learning_rate')}, {who}, rate {rate:g} over {first_rate:g}"
            outcome.cases.append(setting.of(Case(of, bears, _told(ratio), files, why=why)))
    if not outcome.cases:
        outcome.missing.append("the notebook learning_rate, with two learning rates of one framework at least")
    return outcome


def gru_alike_on_gpu(results: Results, claim: Claim) -> Outcome:
    """Throughput of the GRU, one framework over the other, on a CUDA GPU. An interval within a factor of 1.25 of 1
    supports the claim, one wholly outside contradicts it."""
    frame = results.table("frameworks", "ratios", "baseline")
    outcome = Outcome([], margin=ALIKE)
    if len(frame):
        of_gru = (frame["device"] == "cuda") & frame["task"].str.startswith("gru ") & _across_frameworks(frame)
        for _, row in frame[of_gru].dropna(subset="ratio").iterrows():
            ratio, control = _interval(row, "ratio"), _control(row)
            bears, why = (OPEN, RESTLESS) if _restless(control) else _within(ratio, ALIKE)
            of = f"{row['task']}, {row['subject']} over {row['baseline']}"
            case = Case(of, bears, _told(ratio), _files(row), control=control, why=why)
            outcome.cases.append(_of_tasks_data(claim, row["task"]).of(case))
    if not outcome.cases:
        outcome.missing.append(
            "gru in the notebook frameworks on a CUDA GPU (device in parameters/PROFILE/frameworks.yaml), in two "
            "frameworks"
        )
    return outcome


def autotuning_faster(results: Results, claim: Claim) -> Outcome:
    """Throughput with cuDNN's search for convolution algorithms over that without it, on a CUDA GPU. Above 1 supports
    the claim, below 1 contradicts it."""
    frame = results.table("instrument", "knobs", "change")
    rows = frame[frame["change"] == "without cudnn_benchmark"].dropna(subset="ratio") if len(frame) else frame
    setting = _of_data(claim, *results.studied("instrument"))
    cases = [
        setting.of(_ratio_case(row["subject"], _inverse(_interval(row, "ratio")), row)) for _, row in rows.iterrows()
    ]
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


class _Subject(NamedTuple):
    """What a table calls a subject, in its parts."""

    framework: str
    mode: str
    precision: str
    lane: str

    @classmethod
    def of(cls, subject: str) -> _Subject:
        framework, mode, *precision, lane = subject.split()
        return cls(framework, mode, precision[0] if precision else "fp32", lane)

    @property
    def is_mixed(self) -> bool:
        return self.precision != "fp32"


def _within(ratio: Interval, factor: float) -> tuple[str, str]:
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


def _ratio_case(of: str, ratio: Interval, row: pd.Series, published: float | None = None, files: str = "") -> Case:
    """A ratio that bears by its interval; open, with the reason, if it has none or its A/A control excludes 1."""
    control = _control(row)
    bears, why = bearing(ratio), "" if math.isfinite(ratio.low) else NO_INTERVAL
    if _restless(control):
        bears, why = OPEN, RESTLESS
    return Case(of, bears, _told(ratio), files or _files(row), ratio, published, control, why)


def _told(ratio: Interval) -> str:
    return tables.ratio(ratio.estimate, ratio.low, ratio.high)


def _control(row: pd.Series) -> Interval | None:
    """The A/A control of a row's comparison; None where there is none, or none was measured."""
    if not {"control", "control_low", "control_high"} <= set(row.index) or pd.isna(row["control_low"]):
        return None
    return _interval(row, "control")


def _restless(control: Interval | None) -> bool:
    return control is not None and control.excludes(1)


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


def _order_case(of: str, rows: dict[str, pd.DataFrame]) -> Case:
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
        f"{of}, {late} crosses later than {early}", bears, told, _files(*pd.concat(rows.values()).iloc), why=why
    )


def _crossing(rows: pd.DataFrame) -> tuple[float, float]:
    """The most parameters at which PyTorch is faster, and the fewest at which MindSpore is; as wide as can be where
    that is not shown, or they cross more than once.
    """
    until, start = -math.inf, math.inf
    for count, sizes in rows.groupby("parameters"):
        believed = not any(_restless(_control(row)) for _, row in sizes.iterrows())
        if believed and (sizes["ratio_high"] < 1).all():
            until = max(until, count)
        if believed and (sizes["ratio_low"] > 1).all():
            start = min(start, count)
    return (until, start) if until < start else (-math.inf, math.inf)


def _ends_text(until: float, start: float) -> str:
    slower = f"PyTorch faster up to {until:,.0f} parameters" if math.isfinite(until) else ""
    faster = f"MindSpore from {start:,.0f} on" if math.isfinite(start) else ""
    return ", ".join(filter(None, [slower, faster])) or "no side shown"


def _inside(rows: pd.DataFrame, x: str, top: pd.Series) -> str:
    """Is the maximum at an inner value?"""
    ends, others = rows.iloc[[0, -1]], rows[rows[x] != top[x]]
    inside, tried = top[x] not in set(ends[x]), published.tried(x)
    if inside and top["lowest"] > ends["highest"].max():
        return SUPPORTS
    far_out = top[x] <= min(tried) or top[x] >= max(tried)
    return CONTRADICTS if not inside and far_out and top["lowest"] > others["highest"].max() else OPEN


def _bracket(rows: pd.DataFrame, x: str, top: pd.Series) -> tuple[float, float]:
    """Between which values the maximum lies: those beside all whose seeds reach the lowest seed of the best."""
    reach, values = rows.loc[rows["highest"] >= top["lowest"], x], list(rows[x])
    return _beside(values, reach.min())[0], _beside(values, reach.max())[1]


def _beside(values: Iterable[float], value: float) -> tuple[float, float]:
    """The neighbours of a value among others; infinitely far where it is an end."""
    values = list(values)
    return max((v for v in values if v < value), default=0.0), min((v for v in values if v > value), default=math.inf)


def _fine(values: pd.Series, x: str, best: float) -> bool:
    """Are there values so near to the published best that a maximum beside it would show?"""
    nearest = min(values, key=lambda value: abs(math.log(value / best)))
    (low, high), (least, most) = _beside(values, nearest), _beside(published.tried(x), best)
    return least <= low and high <= most


def _near(ours: tuple[float, float], theirs: tuple[float, float]) -> str:
    """How a range in which the maximum lies bears on that it is in another."""
    if theirs[0] <= ours[0] and ours[1] <= theirs[1]:
        return SUPPORTS
    return CONTRADICTS if ours[1] <= theirs[0] or ours[0] >= theirs[1] else OPEN


def _of_tasks_data(claim: Claim, task: str, *told: str, threshold: float | None = None) -> Setting:
    """As :func:`_of_data`, of a task's name."""
    workload, data = task.split(", ")[0].split(" on ")
    return _of_data(claim, workload, data, *told, threshold=threshold)


def _of_data(claim: Claim, workload: str, data: str, *told: str, threshold: float | None = None) -> Setting:
    """What was trained, on which data and perhaps to which threshold, against what the work says that it used."""
    used = published.sources()[claim.source].used
    theirs = published.threshold(claim.source, workload) if threshold is not None else None
    to = [] if threshold is None else [f"to {_value(workload, threshold)}"]
    the_work, stands_in = "", ()
    if workload not in used:
        the_work, stands_in = f"the work: {', '.join(used)}", (OTHER_WORKLOAD,)
    elif data != used[workload]:
        reached = "" if theirs is None else f" to {_value(workload, theirs)}"
        the_work, stands_in = f"the work: {used[workload]}{reached}", (OTHER_DATA,)
    elif theirs is not None and theirs != threshold:
        the_work, stands_in = f"the work: to {_value(workload, theirs)}", (OTHER_THRESHOLD,)
    return Setting("; ".join(filter(None, [*told, *to, the_work])), stands_in)


def _value(workload: str, value: float) -> str:
    """Of a workload's metric, as people read it."""
    metric = workloads.load(workload).metric
    return f"{100 * value:g} %" if metric == "accuracy" else f"{metric.upper()} {value:g}"


def _place(measurement: dict[str, Any]) -> str:
    machine, device = measurement["machine"], measurement["condition"]["device"]
    used = {"cuda": machine.get("gpus", []), "npu": machine.get("npus", [])}.get(device, [])
    return ", ".join([*dict.fromkeys(used), f"{machine['cores']} cores of {machine['cpu']}"])


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _on(results: Results, notebook: str) -> str:
    return " on ".join(results.studied(notebook))


def _files(*rows: pd.Series) -> str:
    return tables.together(str(row[tables.FILES]) for row in rows if pd.notna(row.get(tables.FILES)))


def _of_task(frame: pd.DataFrame, workload: str) -> pd.DataFrame:
    return frame[frame["task"].str.startswith(f"{workload} on ")] if len(frame) else frame


def _graph_rows(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows of MindSpore in graph mode that have a number."""
    if not len(frame):
        return frame
    return frame[[_Subject.of(who)[:2] == ("mindspore", "graph") for who in frame["subject"]]].dropna(subset=name)


def _against_pytorch(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that are relative to PyTorch: another baseline is not what a claim about the two is about."""
    return frame[frame["baseline"].str.startswith("pytorch ")] if len(frame) else frame


def _across_frameworks(frame: pd.DataFrame) -> pd.Series:
    return frame["subject"].str.split().str[0] != frame["baseline"].str.split().str[0]


def _within_frameworks(results: Results) -> pd.DataFrame:
    """The ratios within one framework that the notebook modes has of training, each with its comparison's A/A."""
    frame = _accelerated(_training(results.table("modes", "within", "within_ratio", "baseline")))
    if not len(frame):
        return frame
    controls = results.table("modes", "ratios", "control_low")
    if len(controls):
        controls = controls.dropna(subset="control_low").drop_duplicates("task")
        frame = frame.merge(controls[["task", "control", "control_low", "control_high"]], on="task", how="left")
    return frame.dropna(subset="within_ratio")


def _training(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of tasks that train something."""
    if not len(frame):
        return frame
    return frame[[workloads.load(task.partition(" ")[0]).kind == "training" for task in frame["task"]]]


def _accelerated(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of accelerators, if there are any; the notebook names a task's device where there are several."""
    on = frame["task"].str.endswith((", cuda", ", npu")) if len(frame) else []
    return frame[on] if len(frame) and on.any() else frame


def _both_frameworks(frame: pd.DataFrame, what: str) -> list[str]:
    """What is missing where not both frameworks have rows."""
    there: Iterable[str] = {subject.split()[0] for subject in frame["subject"]} if len(frame) else ()
    return [f"{what} in {name}" for name in ("pytorch", "mindspore") if name not in there]
