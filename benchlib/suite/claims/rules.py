"""The rules: for each kind of claim the cases that it is about, from the frames of this profile's notebooks.

A rule's docstring is what the notebook ``claims`` shows as the rule.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pandas as pd

from benchlib import workloads
from benchlib.analysis import frame as tidy
from benchlib.analysis.comparison import DISTURBED
from benchlib.suite import published, tables
from benchlib.suite.claims.cases import (
    bearing_within,
    control_doubt,
    control_of,
    files_of,
    interval_of,
    inverse,
    order_case,
    over,
    ratio_case,
    ratio_text,
    without_disturbed,
)
from benchlib.suite.claims.maxima import bearing_of_maximum, bearing_of_range, bracket, is_fine, neighbours
from benchlib.suite.claims.rows import (
    Results,
    against_pytorch,
    all_else_same,
    missing_frameworks,
    of_mindspore_graph,
    of_training,
    studied,
    task_and_subject,
)
from benchlib.suite.claims.settings import OTHER_EPOCHS, Setting, setting_of
from benchlib.suite.claims.verdicts import NO_INTERVAL, NOISY, ONE_SEED, OPEN, Case, Outcome
from benchlib.suite.published import Claim

FLAT = 1.1
"""Times of an epoch within this factor of each other count as little affected (C15)."""

ALIKE = 1.25
"""Training times within this factor of each other count as about equally fast (C17)."""


def time_to_threshold(results: Results, claim: Claim, faster: str, names: list[str]) -> Outcome:
    """The training time to the threshold, without compilation, in the one framework over that in the other (the one
    that is ``faster``), within seeds, where every run reached it; MindSpore in graph mode against PyTorch. Above 1
    supports the claim, below 1 or within the margin of 1 contradicts it."""
    learned = of_mindspore_graph(against_pytorch(results.rows("frameworks", "threshold_ratio")))
    outcome = Outcome([])
    for name in names:
        rows, disturbed = without_disturbed(learned[learned["workload"] == name], task_and_subject)
        for _, row in rows.iterrows():
            ratio = interval_of(row)
            sooner = ratio if faster == "mindspore" else inverse(ratio)
            case = ratio_case(row["task"], row["subject"], sooner, row, published=claim.published.get(name))
            threshold = row["threshold"] if pd.notna(row["threshold"]) else None
            outcome.cases.append(setting_of(claim, row, threshold=threshold).of(case))
        outcome.missing.extend(disturbed)
        if not len(rows) and not disturbed:
            outcome.missing.append(f"{name} trained to its threshold in both frameworks, from every seed")
    return outcome


def first_epoch_slower(results: Results, claim: Claim) -> Outcome:
    """The time of the first epoch, compilation included, over the geometric mean of the others, of every workload in
    every framework and mode. Above 1 supports the claim, below 1 or within the margin of 1 contradicts it."""
    every = results.rows("frameworks", "first_epoch_ratio")
    known = every[every["estimate"].notna()]
    outcome = Outcome([], missing_frameworks(known, "training runs of the notebook frameworks"))
    for _, row in every.iterrows():
        who = task_and_subject(row)
        if pd.isna(row["estimate"]):
            disturbed = row["why"] == DISTURBED
            outcome.missing.append(f"{who} ({NOISY})" if disturbed else f"{who}, of which no run has two epochs")
            continue
        setting = setting_of(claim, row, f"{row['epochs']} epochs")
        outcome.cases.append(setting.of(ratio_case(row["task"], row["subject"], interval_of(row), row)))
    return outcome


def mixed_precision_faster(results: Results, claim: Claim) -> Outcome:
    """Throughput of training in each mixed precision over that in fp32, same framework, mode and lane; on accelerators
    only, where there is one. Above 1 supports the claim, below 1 or within the margin of 1 contradicts it."""
    within = of_training(results.rows("modes", "within_ratio"))
    in_mixed = (within["precision"] != "fp32") & (within["baseline_precision"] == "fp32")
    mixed = within[in_mixed & all_else_same(within, "precision")]
    missing = missing_frameworks(mixed, "mixed precision in the notebook modes")
    mixed, disturbed = without_disturbed(mixed, task_and_subject)
    cases = [
        setting_of(claim, row).of(ratio_case(row["task"], row["subject"], interval_of(row), row))
        for _, row in mixed.iterrows()
    ]
    return Outcome(cases, [*missing, *disturbed])


def mindspore_eager_slower(results: Results, claim: Claim) -> Outcome:
    """Throughput of training in MindSpore in graph mode over that in eager mode, and in PyTorch in eager mode over
    MindSpore in eager mode, in fp32; on accelerators only, where there is one. Above 1 supports the claim, below 1
    or within the margin of 1 contradicts it."""
    within = of_mindspore_graph(of_training(results.rows("modes", "within_ratio")))
    eager = (within["precision"] == "fp32") & (within["baseline_mode"] == "eager")
    graph = within[eager & all_else_same(within, "mode")]
    ratios = against_pytorch(of_training(results.rows("modes", "throughput_ratio")))
    both = [ratios[name] == "eager" for name in ("mode", "baseline_mode")]
    both += [ratios[name] == "fp32" for name in ("precision", "baseline_precision")]
    frameworks = ratios[pd.concat(both, axis=1).all(axis=1) & (ratios["framework"] == "mindspore")]
    outcome = Outcome([])
    for rows, words, wanted in (
        (graph, "MindSpore graph over eager", "MindSpore in both modes in the notebook modes (PROFILE=full has them)"),
        (
            frameworks,
            "PyTorch eager over MindSpore eager",
            "MindSpore in eager mode beside PyTorch in the notebook modes (PROFILE=full has it)",
        ),
    ):
        known, disturbed = without_disturbed(rows, lambda row, words=words: f"{row['task']}, {words}")
        for _, row in known.iterrows():
            ratio = interval_of(row) if rows is graph else inverse(interval_of(row))
            outcome.cases.append(setting_of(claim, row).of(ratio_case(row["task"], words, ratio, row)))
        outcome.missing.extend(disturbed or ([] if len(known) else [wanted]))
    return outcome


def scales_better(results: Results, claim: Claim, framework: str, than: str) -> Outcome:
    """The efficiency of the one framework over that of the other, of each subject of the two, for each number of
    processes and way of scaling; the two intervals, which are independent, are combined on the scale of logarithms.
    Above 1 supports the claim, below 1 or within the margin of 1 contradicts it."""
    groups, disturbed = without_disturbed(results.rows("scaling", "efficiency_percent"), _scaled_text)
    outcome = Outcome([], disturbed)
    groups = groups.assign(scaling=[_scaling(row) for _, row in groups.iterrows()])
    for (kind, count), rows in groups.groupby(["scaling", "world_size"], sort=False):
        both = ([row for _, row in rows[rows["framework"] == name].iterrows()] for name in (framework, than))
        for one, other in itertools.product(*both):
            ratio = over(interval_of(one), interval_of(other))
            who = f"{kind} scaling, {one['subject']} over {other['subject']}"
            case = ratio_case(who, f"{count} processes", ratio, one, other)
            outcome.cases.append(setting_of(claim, one).of(case))
    if not outcome.cases and not outcome.missing:
        outcome.missing.append(
            f"{framework} and {than} in the notebook scaling (PROFILE=full has both), on several devices"
        )
    elif len(groups) and groups["world_size"].max() <= 2:
        outcome.missing.append("more than two processes or devices")
    return outcome


def _scaling(row: pd.Series) -> str:
    """Do the processes share the baseline's batch, or has each its own?"""
    return "strong" if row["batch_size"] == row["baseline_batch_size"] else "weak"


def _scaled_text(row: pd.Series) -> str:
    return f"{_scaling(row)} scaling, {row['world_size']} processes, {row['subject']}"


def crosses_with_size(results: Results, claim: Claim, late: str, early: str) -> Outcome:
    """For each operator and kind of pass, by the number of parameters, MindSpore against PyTorch, both in the lane
    tuned: PyTorch over MindSpore at the fewest, MindSpore over PyTorch at the most. Above 1 supports the claim,
    below 1 or within the margin of 1 contradicts it. And of the two operators that cross ``late`` and ``early``:
    that PyTorch is still faster in the one at a number of parameters at which MindSpore is in the other supports the
    claim, the reverse contradicts it."""
    frame = against_pytorch(results.rows("operators", "throughput_ratio"))
    tuned = (frame["lane"] == "tuned") & (frame["baseline_lane"] == "tuned")
    frame = frame[tuned & (frame["framework"] == "mindspore")]
    frame = frame.assign(passes=tidy.hyperparameter(frame, "passes"))
    frame, disturbed = without_disturbed(frame, _operator_text)
    outcome = Outcome([], disturbed)
    if not len(frame):
        return Outcome([], disturbed or ["MindSpore beside PyTorch in the lane tuned in the notebook operators"])
    crossings: dict[tuple[str, str], dict[str, pd.DataFrame]] = {}
    for (operator, passes, who), rows in frame.groupby(["workload", "passes", "subject"], sort=False):
        rows = rows.sort_values(["parameters", "million_multiply_adds"])
        few, many = rows.iloc[0], rows.iloc[-1]
        if few["parameters"] == many["parameters"]:
            outcome.missing.append(f"{operator}, {passes}, with two numbers of parameters")
            continue
        start = f"{operator}, {passes}, {who}"
        counts = [f"{row['parameters']:,} parameters" for row in (few, many)]
        small, large = inverse(interval_of(few)), interval_of(many)
        outcome.cases.append(ratio_case(start, f"PyTorch over it at {counts[0]}", small, few))
        outcome.cases.append(ratio_case(start, f"it over PyTorch at {counts[1]}", large, many))
        crossings.setdefault((passes, who), {})[operator] = rows
    both = {key: found for key, found in crossings.items() if {late, early} <= set(found)}
    for (passes, who), found in both.items():
        outcome.cases.append(order_case(f"{passes}, {who}", {name: found[name] for name in (late, early)}))
    if not both:
        outcome.missing.append(
            f"{late} and {early}, each with two numbers of parameters, for which of them crosses first"
        )
    return outcome


def _operator_text(row: pd.Series) -> str:
    return f"{row['workload']}, {row['passes']}, {row['subject']} at {row['parameters']:,} parameters"


def trains_faster(results: Results, claim: Claim, names: list[str]) -> Outcome:
    """Throughput of whole epochs of training, MindSpore in graph mode over PyTorch, within seeds. Above 1 supports the
    claim, below 1 or within the margin of 1 contradicts it."""
    learned = of_mindspore_graph(against_pytorch(results.rows("frameworks", "epoch_ratio")))
    outcome = Outcome([])
    for name in names:
        rows, disturbed = without_disturbed(learned[learned["workload"] == name], task_and_subject)
        for _, row in rows.iterrows():
            case = ratio_case(row["task"], row["subject"], interval_of(row), row, published=claim.published.get(name))
            trained = f"batch {row['batch_size']}, {row['epochs']} epochs"
            outcome.cases.append(setting_of(claim, row, trained).of(case))
        outcome.missing.extend(disturbed)
        if not len(rows) and not disturbed:
            outcome.missing.append(f"{name} trained in both frameworks (PROFILE=full)")
    return outcome


def answers_faster(results: Results, claim: Claim) -> Outcome:
    """Images per second, MindSpore in graph mode over PyTorch, at every batch size that was measured. Above 1 supports
    the claim, below 1 or within the margin of 1 contradicts it."""
    frame = of_mindspore_graph(against_pytorch(results.rows("inference", "throughput_ratio")))
    frame = frame.assign(image_size=tidy.hyperparameter(frame, "image_size"))

    def of(row: pd.Series) -> tuple[str, str]:
        return f"{studied(row)}, {row['subject']} over {row['baseline_subject']}", f"batch {row['batch_size']}"

    frame, disturbed = without_disturbed(frame, lambda row: ", ".join(of(row)))
    published_ratio = claim.published.get("resnet50_inference")
    cases = [
        Setting(f"images of {row['image_size']} x {row['image_size']}").of(
            ratio_case(*of(row), interval_of(row), row, published=published_ratio)
        )
        for _, row in frame.iterrows()
    ]
    wanted = [] if cases or disturbed else ["MindSpore in graph mode in the notebook inference (PROFILE=full has it)"]
    return Outcome(cases, [*wanted, *disturbed])


def gpu_faster(results: Results, claim: Claim) -> Outcome:
    """Throughput on a CUDA GPU over that on the CPU with all threads, same framework. Above 1 supports the claim, below
    1 or within the margin of 1 contradicts it."""
    frame = results.rows("devices", "throughput_ratio")
    frame = frame[(frame["device"] == "cuda") & (frame["framework"] == frame["baseline_framework"])]

    frame, disturbed = without_disturbed(frame, lambda row: f"{studied(row)}, {row['subject']}")
    cases = [
        setting_of(claim, row, f"batch {row['batch_size']}").of(
            ratio_case(
                studied(row), row["subject"], interval_of(row), row, published=claim.published.get(row["framework"])
            )
        )
        for _, row in frame.iterrows()
    ]
    missing = disturbed if cases or disturbed else ["a CUDA GPU"]
    return Outcome(cases, [*missing, "TensorFlow and MXNet, which are not among the frameworks of this suite yet"])


def grows_with_batch(results: Results, claim: Claim) -> Outcome:
    """Samples per second, peak memory (the accelerator's, where there is one) and the accelerator's utilisation, at the
    largest batch size over the smallest, same framework; the two intervals are combined on the scale of logarithms as
    if they were independent: where the same processes measured both sizes, what these have in common cancels out of the
    ratio, and its interval is rather too wide. Above 1 supports the claim, below 1 or within the margin of 1
    contradicts it; speed, only if neither size's A/A excludes 1 or was disturbed."""

    def batch_of(row: pd.Series) -> str:
        return f"{row['subject']} at batch {row['batch_size']}"

    speeds, disturbed = without_disturbed(results.rows("batch_size", "samples_per_second"), batch_of)
    outcome = Outcome([], disturbed)
    if not len(speeds):
        return Outcome([], outcome.missing or ["the notebook batch_size"])
    quantities = {"samples_per_second": "speed", "memory_mib": "peak memory"}
    if results.rows("batch_size", "accelerator_percent")["estimate"].notna().any():
        del quantities["memory_mib"]
        quantities |= {"accelerator_memory_mib": "the accelerator's memory", "accelerator_percent": "its utilisation"}
    else:
        outcome.missing.append("a GPU, for its utilisation (device in parameters/PROFILE/batch_size.yaml)")
    for who, rows in speeds.groupby("subject", sort=False):
        sizes = sorted(rows["batch_size"])
        small, large = sizes[0], sizes[-1]
        if small == large:
            outcome.missing.append(f"{who} at two batch sizes at least")
            continue
        start = f"{studied(rows.iloc[0])}, {who}, batch {large} over {small}"
        for name, words in quantities.items():
            every = results.rows("batch_size", name)
            every = every[(every["subject"] == who) & (every["kind"] == tidy.COMPARISON)].set_index("batch_size")
            ends = [every.loc[size] for size in (small, large)]
            ratio = over(interval_of(ends[1]), interval_of(ends[0]))
            if not math.isfinite(ratio.estimate):
                outcome.missing.append(f"{who}, {words} at batch {large} and {small}")
                continue
            doubts = [control_doubt(end) for end in ends if name == "samples_per_second"]
            if name == "memory_mib" and math.isnan(ratio.low):
                doubts.append(_first_in_too_few({small: ends[0], large: ends[1]}))
            case = ratio_case(start, words, ratio, *ends, doubt=next(filter(None, doubts), ""))
            outcome.cases.append(setting_of(claim, rows.iloc[0]).of(case))
    return outcome


def _first_in_too_few(by_batch: dict[int, pd.Series]) -> str:
    firsts = " and ".join(f"{row['processes']} at batch {batch}" for batch, row in by_batch.items())
    return f"{NO_INTERVAL}: peak memory counts only in those that measured the size first, {firsts}"


def inner_maximum(results: Results, claim: Claim, notebook: str, x: str, epochs: int, best: float) -> Outcome:
    """The mean metric over seeds against the hyperparameter ``x``, of each subject with three values of it at least. An
    inner value whose lowest seed is above every seed of both ends supports the claim; an end whose lowest seed is above
    every seed of all others contradicts it, if it is as far out as the published values go: else the maximum may be
    beyond it. And that it is best near the published ``best`` value: the maximum lies between the values beside those
    whose seeds reach the lowest seed of the best; if that is between the published neighbours of the published best, it
    supports the claim, if it is wholly outside of them, it contradicts it. With one seed both stay open. Where the
    notebook did not train for the published number of ``epochs``, that is missing."""
    frame = results.rows(notebook, "final_metric")
    if not len(frame):
        return Outcome([], [f"the notebook {notebook}"])
    outcome, words = Outcome([]), x.replace("_", " ")
    if (frame["epochs"] != epochs).any():
        outcome.missing.append(f"{epochs} epochs (epochs in parameters/PROFILE/{notebook}.yaml)")
    coarse = False
    for who, rows in frame.dropna(subset="estimate").groupby("subject", sort=False):
        rows = rows.sort_values(x)
        if len(rows) < 3:
            continue
        top = rows.loc[rows["estimate"].idxmax()]
        setting = setting_of(claim, top)
        if top["epochs"] != epochs:
            trained = f"after {top['epochs']} epochs, the work after {epochs}"
            setting = Setting("; ".join(filter(None, [setting.told, trained])), (*setting.stands_in, OTHER_EPOCHS))
        seeds = f"seeds {tables.number(top['lowest'])} to {tables.number(top['highest'])}"
        values = ", ".join(f"{value:g}" for value in rows[x])
        told = f"best at {top[x]:g} of {values}: {tables.number(top['estimate'])} ({seeds})"
        metric = workloads.load(top["workload"]).metric
        of = f"{studied(top)}, {who}, {metric}{' (%)' if top['unit'] == '%' else ''}"
        files = files_of(*rows.iloc)
        one_seed = rows["processes"].min() < 2
        why = ONE_SEED if one_seed else ""
        bears = OPEN if one_seed else bearing_of_maximum(rows, x, top)
        outcome.cases.append(setting.of(Case(f"{of}, rises and falls", bears, told, files, why=why)))
        if not is_fine(rows[x], x, best):
            coarse = True
            continue
        low, high = bracket(rows, x, top)
        bears = OPEN if one_seed else bearing_of_range((low, high), neighbours(published.tried(x), best))
        told = "the maximum is " + (f"below {high:g}" if low == 0 else f"above {low:g}")
        told += f" and below {high:g}" if low > 0 and math.isfinite(high) else ""
        outcome.cases.append(setting.of(Case(f"{of}, best near {best:g}", bears, told, files, why=why)))
    if not outcome.cases:
        outcome.missing.append(f"three values of the {words} in one framework at least")
    elif coarse:
        low, high = neighbours(published.tried(x), best)
        outcome.missing.append(f"values of the {words} no farther from {best:g} than {low:g} and {high:g}")
    return outcome


def epoch_time_flat(results: Results, claim: Claim) -> Outcome:
    """The time of an epoch at each learning rate over that at the first, within seeds, same framework. An interval
    within a factor of 1.1 of 1 supports the claim, one wholly outside contradicts it."""
    outcome = Outcome([], margin=FLAT)
    for _, row in results.rows("learning_rate", "epoch_ratio").iterrows():
        rates = [f"{row[name]:g}" for name in ("learning_rate", "baseline_learning_rate")]
        if pd.isna(row["estimate"]):
            why = NOISY if row["why"] == DISTURBED else "the runs failed"
            outcome.missing.append(f"{row['subject']}, rates {' and '.join(rates)} from one seed ({why})")
            continue
        ratio = inverse(interval_of(row))
        bears, why = bearing_within(ratio, FLAT)
        of = f"{studied(row)}, {row['subject']}, rate {' over '.join(rates)}"
        case = Case(of, bears, ratio_text(ratio), files_of(row), why=why)
        outcome.cases.append(setting_of(claim, row).of(case))
    if not outcome.cases:
        outcome.missing.append("the notebook learning_rate, with two learning rates of one framework at least")
    return outcome


def gru_alike_on_gpu(results: Results, claim: Claim) -> Outcome:
    """Throughput of the GRU, one framework over the other, on a CUDA GPU. An interval within a factor of 1.25 of 1
    supports the claim, one wholly outside contradicts it."""
    frame = results.rows("frameworks", "throughput_ratio")
    across = frame["framework"] != frame["baseline_framework"]
    rows, disturbed = without_disturbed(
        frame[across & (frame["device"] == "cuda") & (frame["workload"] == "gru")], task_and_subject
    )
    outcome = Outcome([], disturbed, margin=ALIKE)
    for _, row in rows.iterrows():
        ratio, control, doubt = interval_of(row), control_of(row), control_doubt(row)
        bears, why = (OPEN, doubt) if doubt else bearing_within(ratio, ALIKE)
        of = f"{task_and_subject(row)} over {row['baseline_subject']}"
        case = Case(of, bears, ratio_text(ratio), files_of(row), control=control, why=why)
        outcome.cases.append(setting_of(claim, row).of(case))
    if not outcome.cases and not outcome.missing:
        outcome.missing.append(
            "gru in the notebook frameworks on a CUDA GPU (device in parameters/PROFILE/frameworks.yaml), in two "
            "frameworks"
        )
    return outcome


def autotuning_faster(results: Results, claim: Claim) -> Outcome:
    """Throughput with cuDNN's search for convolution algorithms over that without it, on a CUDA GPU. Above 1 supports
    the claim, below 1 or within the margin of 1 contradicts it."""

    def who(row: pd.Series) -> str:
        return f"{row['framework']} {row['mode']}"

    frame = results.rows("instrument", "throughput_ratio")
    rows, disturbed = without_disturbed(
        frame[frame["without"] == "cudnn_benchmark"], lambda row: f"{who(row)}, without cudnn_benchmark"
    )
    cases = [
        setting_of(claim, row).of(ratio_case(who(row), "", inverse(interval_of(row)), row))
        for _, row in rows.iterrows()
    ]
    knob = "single_knobs in parameters/PROFILE/instrument.yaml, on a CUDA GPU (device)"
    return Outcome(cases, [*disturbed, *([] if cases or disturbed else [knob])])


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
