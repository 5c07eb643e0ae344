"""The rules: for each kind of claim the cases that it is about, from the tables of this profile's notebooks.

A rule's docstring is what the notebook ``claims`` shows as the rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from benchlib import published, tables
from benchlib.claims.cases import (
    bearing_within,
    control_doubt,
    control_of,
    files_of,
    interval_of,
    inverse,
    is_disturbed,
    order_case,
    over,
    ratio_case,
    ratio_text,
    without_disturbed,
)
from benchlib.claims.maxima import bearing_of_maximum, bearing_of_range, bracket, is_fine, neighbours
from benchlib.claims.rows import (
    Results,
    Subject,
    accelerated_rows,
    across_frameworks,
    mindspore_graph_rows,
    missing_frameworks,
    rows_against_pytorch,
    rows_of_task,
    studied_text,
    task_and_subject,
    training_rows,
    within_frameworks,
)
from benchlib.claims.settings import OTHER_EPOCHS, Setting, setting_of, setting_of_task
from benchlib.claims.verdicts import NO_INTERVAL, NOISY, ONE_SEED, OPEN, Case, Outcome
from benchlib.measure.comparison import DISTURBED, MOST
from benchlib.measure.statistics import geometric_interval
from benchlib.published import Claim

FLAT = 1.1
"""Times of an epoch within this factor of each other count as little affected (C15)."""

ALIKE = 1.25
"""Training times within this factor of each other count as about equally fast (C17)."""


def time_to_threshold(results: Results, claim: Claim, faster: str, names: list[str]) -> Outcome:
    """The training time to the threshold, without compilation, in the one framework over that in the other (the one
    that is ``faster``), within seeds, where every run reached it; MindSpore in graph mode against PyTorch. Above 1
    supports the claim, below 1 or within the margin of 1 contradicts it."""
    learned = rows_against_pytorch(results.table("frameworks", "learned", "threshold_ratio", "baseline"))
    outcome = Outcome([])
    for name in names:
        of_task = mindspore_graph_rows(rows_of_task(learned, name))
        rows, disturbed = without_disturbed(of_task, "threshold_ratio", task_and_subject)
        for _, row in rows.iterrows():
            ratio = interval_of(row, "threshold_ratio")
            sooner = ratio if faster == "mindspore" else inverse(ratio)
            case = ratio_case(
                f"{row['task']}, {row['subject']}",
                sooner,
                row,
                results.margin("frameworks"),
                claim.published.get(name),
            )
            threshold = results.task("frameworks", row["task"]).get("threshold")
            outcome.cases.append(setting_of_task(claim, row["task"], threshold=threshold).of(case))
        outcome.missing.extend(disturbed)
        if not len(rows) and not disturbed:
            outcome.missing.append(f"{name} trained to its threshold in both frameworks, from every seed")
    return outcome


def first_epoch_slower(results: Results, claim: Claim) -> Outcome:
    """The time of the first epoch, compilation included, over the geometric mean of the others, of every workload in
    every framework and mode. Above 1 supports the claim, below 1 or within the margin of 1 contradicts it."""
    every = results.table("frameworks", "first_epochs", "first_epoch")
    frame = every.dropna(subset="first_epoch") if len(every) else every
    outcome = Outcome([], missing_frameworks(frame, "training runs of the notebook frameworks"))
    for _, row in every.iterrows():
        who = f"{row['task']}, {row['subject']}"
        if pd.isna(row["first_epoch"]):
            disturbed = row.get("first_why") == DISTURBED
            outcome.missing.append(f"{who} ({NOISY})" if disturbed else f"{who}, of which no run has two epochs")
            continue
        epochs = results.task("frameworks", row["task"]).get("epochs")
        setting = setting_of_task(claim, row["task"], f"{epochs} epochs" if epochs else "")
        outcome.cases.append(
            setting.of(ratio_case(who, interval_of(row, "first_epoch"), row, results.margin("frameworks")))
        )
    return outcome


def mixed_precision_faster(results: Results, claim: Claim) -> Outcome:
    """Throughput of training in each mixed precision over that in fp32, same framework, mode and lane; on accelerators
    only, where there is one. Above 1 supports the claim, below 1 or within the margin of 1 contradicts it."""
    frame = within_frameworks(results)
    mixed = frame
    if len(frame):
        pairs = zip(frame["subject"].map(Subject.of), frame["baseline"].map(Subject.of), strict=True)
        mixed = frame[[one.is_mixed and other == one._replace(precision="fp32") for one, other in pairs]]
    missing, margin = missing_frameworks(mixed, "mixed precision in the notebook modes"), results.margin("modes")
    mixed, disturbed = without_disturbed(mixed, "within_ratio", task_and_subject)
    cases = [
        setting_of_task(claim, row["task"]).of(
            ratio_case(f"{row['task']}, {row['subject']}", interval_of(row, "within_ratio"), row, margin)
        )
        for _, row in mixed.iterrows()
    ]
    return Outcome(cases, [*missing, *disturbed])


def mindspore_eager_slower(results: Results, claim: Claim) -> Outcome:
    """Throughput of training in MindSpore in graph mode over that in eager mode, and in PyTorch in eager mode over
    MindSpore in eager mode, in fp32; on accelerators only, where there is one. Above 1 supports the claim, below 1
    or within the margin of 1 contradicts it."""
    within = within_frameworks(results)
    ratios = accelerated_rows(training_rows(results.table("modes", "ratios", "baseline")))
    cases, missing, margin = [], [], results.margin("modes")
    for _, row in within.iterrows():
        one, other = Subject.of(row["subject"]), Subject.of(row["baseline"])
        if one[:3] == ("mindspore", "graph", "fp32") and other == one._replace(mode="eager"):
            who = f"{row['task']}, MindSpore graph over eager"
            if is_disturbed(row):
                missing.append(f"{who} ({NOISY})")
                continue
            case = ratio_case(who, interval_of(row, "within_ratio"), row, margin)
            cases.append(setting_of_task(claim, row["task"]).of(case))
    if not cases and not missing:
        missing.append("MindSpore in both modes in the notebook modes (PROFILE=full has them)")
    count = len(cases) + len(missing)
    for _, row in ratios.iterrows():
        one, other = Subject.of(row["subject"]), Subject.of(row["baseline"])
        eager = one[:3] == ("mindspore", "eager", "fp32") and other[:3] == ("pytorch", "eager", "fp32")
        who = f"{row['task']}, PyTorch eager over MindSpore eager"
        if eager and is_disturbed(row):
            missing.append(f"{who} ({NOISY})")
        elif eager and pd.notna(row["ratio"]):
            case = ratio_case(who, inverse(interval_of(row, "ratio")), row, margin)
            cases.append(setting_of_task(claim, row["task"]).of(case))
    if len(cases) + len(missing) == count:
        missing.append("MindSpore in eager mode beside PyTorch in the notebook modes (PROFILE=full has it)")
    return Outcome(cases, missing)


def scales_better(results: Results, claim: Claim, framework: str, than: str) -> Outcome:
    """The efficiency of the one framework over that of the other, for each number of processes and way of scaling; the
    two intervals, which are independent, are combined on the scale of logarithms. Above 1 supports the claim, below
    1 or within the margin of 1 contradicts it."""
    frame = results.table("scaling", "scaling")
    outcome, setting = Outcome([]), setting_of(claim, *results.studied("scaling"))
    if len(frame):
        groups = frame[frame["world_size"] > 1]
        _, disturbed = without_disturbed(groups, "efficiency_percent", _scaled_text)
        outcome.missing.extend(disturbed)
        frame = frame.dropna(subset="efficiency_percent")
        frame = frame.assign(framework=[subject.split()[0] for subject in frame["subject"]])
        for (kind, count), rows in frame[frame["world_size"] > 1].groupby(["scaling", "world_size"], sort=False):
            pairs = rows.drop_duplicates("framework").set_index("framework")
            if {framework, than} <= set(pairs.index):
                one, other = pairs.loc[framework], pairs.loc[than]
                ratio = over(interval_of(one, "efficiency_percent"), interval_of(other, "efficiency_percent"))
                of, margin = f"{kind} scaling, {count} processes", results.margin("scaling")
                case = ratio_case(of, ratio, one, margin, files=files_of(one, other))
                outcome.cases.append(setting.of(case))
    if not outcome.cases and not outcome.missing:
        outcome.missing.append(
            f"{framework} and {than} in the notebook scaling (PROFILE=full has both), on several devices"
        )
    elif frame["world_size"].max() <= 2:
        outcome.missing.append("more than two processes or devices")
    return outcome


def _scaled_text(row: pd.Series) -> str:
    return f"{row['scaling']} scaling, {row['world_size']} processes, {row['subject']}"


def crosses_with_size(results: Results, claim: Claim, late: str, early: str) -> Outcome:
    """For each operator and kind of pass, by the number of parameters, MindSpore against PyTorch, both in the lane
    tuned: PyTorch over MindSpore at the fewest, MindSpore over PyTorch at the most. Above 1 supports the claim,
    below 1 or within the margin of 1 contradicts it. And of the two operators that cross ``late`` and ``early``:
    that PyTorch is still faster in the one at a number of parameters at which MindSpore is in the other supports the
    claim, the reverse contradicts it."""
    frame = rows_against_pytorch(results.table("operators", "ratios", "parameters", "baseline"))
    if len(frame):
        of_mindspore = (frame["framework"] == "mindspore") & frame["baseline"].str.endswith(" tuned")
        frame = frame[of_mindspore & (frame["lane"] == "tuned")]
    frame, disturbed = without_disturbed(frame, "ratio", _operator_text)
    outcome, margin = Outcome([], disturbed), results.margin("operators")
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
        small, large = inverse(interval_of(few, "ratio")), interval_of(many, "ratio")
        outcome.cases.append(ratio_case(f"{start}, PyTorch over it at {counts[0]}", small, few, margin))
        outcome.cases.append(ratio_case(f"{start}, it over PyTorch at {counts[1]}", large, many, margin))
        crossings.setdefault((passes, who), {})[operator] = rows
    both = {key: found for key, found in crossings.items() if {late, early} <= set(found)}
    for (passes, who), found in both.items():
        outcome.cases.append(order_case(f"{passes}, {who}", {name: found[name] for name in (late, early)}, margin))
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
    learned = rows_against_pytorch(results.table("frameworks", "learned", "epoch_ratio", "baseline"))
    outcome = Outcome([])
    for name in names:
        of_task = mindspore_graph_rows(rows_of_task(learned, name))
        rows, disturbed = without_disturbed(of_task, "epoch_ratio", task_and_subject)
        for _, row in rows.iterrows():
            of, margin = f"{row['task']}, {row['subject']}", results.margin("frameworks")
            case = ratio_case(of, interval_of(row, "epoch_ratio"), row, margin, claim.published.get(name))
            task = results.task("frameworks", row["task"])
            trained = f"batch {task['batch_size']}, {task['epochs']} epochs" if task else ""
            outcome.cases.append(setting_of_task(claim, row["task"], trained).of(case))
        outcome.missing.extend(disturbed)
        if not len(rows) and not disturbed:
            outcome.missing.append(f"{name} trained in both frameworks (PROFILE=full)")
    return outcome


def answers_faster(results: Results, claim: Claim) -> Outcome:
    """Images per second, MindSpore in graph mode over PyTorch, at every batch size that was measured. Above 1 supports
    the claim, below 1 or within the margin of 1 contradicts it."""
    frame = rows_against_pytorch(results.table("inference", "ratios", "baseline"))
    if len(frame):
        frame = frame[(frame["framework"] == "mindspore") & (frame["mode"] == "graph")]
    size = results.parameters("inference").get("hyperparameters", {}).get("image_size")
    setting = Setting(f"images of {size} x {size}" if size else "")
    studied = studied_text(results, "inference")

    def who(row: pd.Series) -> str:
        return f"{studied}, {row['subject']} over {row['baseline']}, batch {row['batch_size']}"

    frame, disturbed = without_disturbed(frame, "ratio", who)
    cases = [
        setting.of(
            ratio_case(
                who(row),
                interval_of(row, "ratio"),
                row,
                results.margin("inference"),
                claim.published.get("resnet50_inference"),
            )
        )
        for _, row in frame.iterrows()
    ]
    wanted = [] if cases or disturbed else ["MindSpore in graph mode in the notebook inference (PROFILE=full has it)"]
    return Outcome(cases, [*wanted, *disturbed])


def gpu_faster(results: Results, claim: Claim) -> Outcome:
    """Throughput on a CUDA GPU over that on the CPU with all threads, same framework. Above 1 supports the claim, below
    1 or within the margin of 1 contradicts it."""
    frame = results.table("devices", "ratios", "baseline")
    if len(frame):
        frame = frame[(frame["device"] == "cuda") & ~across_frameworks(frame)]
    batch = results.parameters("devices").get("batch_size")
    setting = setting_of(claim, *results.studied("devices"), f"batch {batch}" if batch else "")

    def who(row: pd.Series) -> str:
        return f"{studied_text(results, 'devices')}, {row['subject']}"

    frame, disturbed = without_disturbed(frame, "ratio", who)
    cases = [
        setting.of(
            ratio_case(
                who(row),
                interval_of(row, "ratio"),
                row,
                results.margin("devices"),
                claim.published.get(row["framework"]),
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
    frame = results.table("batch_size", "indicators", "memory_mib_low")
    compared = results.table("batch_size", "ratios", "control_low")
    doubts = {row["batch_size"]: control_doubt(row) for _, row in compared.iterrows()}
    outcome, setting = Outcome([]), setting_of(claim, *results.studied("batch_size"))
    went = results.table("batch_size", "processes", "disturbed")
    noisy = went[went["disturbed"] > MOST] if len(went) else went
    for _, row in noisy.iterrows():
        outcome.missing.append(f"{row['subject']} at batch {row['batch_size']} ({NOISY})")
    frame = frame.dropna(subset="samples_per_second") if len(frame) else frame
    if not len(frame):
        return Outcome([], outcome.missing or ["the notebook batch_size"])
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
        start = f"{studied_text(results, 'batch_size')}, {who}, {sizes}"
        for name, words in measured.items():
            ratio = over(interval_of(large, name), interval_of(small, name))
            if not math.isfinite(ratio.estimate):
                outcome.missing.append(f"{who}, {words} at batch {large['batch_size']} and {small['batch_size']}")
                continue
            speed = name == "samples_per_second"
            doubt = next(filter(None, (doubts.get(row["batch_size"]) for row in (small, large) if speed)), "")
            if name == "memory_mib" and math.isnan(ratio.low):
                doubt = _first_in_too_few(small, large)
            files, margin = files_of(small, large), results.margin("batch_size")
            case = ratio_case(f"{start}, {words}", ratio, large, margin, files=files, doubt=doubt)
            outcome.cases.append(setting.of(case))
    return outcome


def _first_in_too_few(*rows: pd.Series) -> str:
    firsts = " and ".join(f"{row.get('first_in_process', 0):.0f} at batch {row['batch_size']}" for row in rows)
    return f"{NO_INTERVAL}: peak memory counts only in those that measured the size first, {firsts}"


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
    outcome, setting = Outcome([]), setting_of(claim, *results.studied(notebook))
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
        of = f"{studied_text(results, notebook)}, {who}, {column.replace('_percent', ' (%)')}"
        files = files_of(*rows.iloc)
        one_seed = (rows["runs"] - rows["failed"]).min() < 2
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
    runs = results.table("learning_rate", "runs", "epoch_s")
    setting = setting_of(claim, *results.studied("learning_rate"))
    outcome = Outcome([], margin=FLAT)
    if len(runs):
        noisy = runs.get("disturbed_time", pd.Series(0.0, index=runs.index)) > MOST
        runs = runs.assign(epoch_s=runs["epoch_s"].mask(noisy), noisy=noisy)
    for who, of_subject in runs.groupby("subject", sort=False) if len(runs) else ():
        by_rate = [(rate, rows.set_index("seed")) for rate, rows in of_subject.groupby("learning_rate", sort=True)]
        first_rate, first = by_rate[0]
        for rate, rows in by_rate[1:]:
            logs = (np.log(rows["epoch_s"]) - np.log(first["epoch_s"])).dropna().to_list()
            if not logs:
                why = NOISY if first["noisy"].any() or rows["noisy"].any() else "the runs failed"
                outcome.missing.append(f"{who}, rates {rate:g} and {first_rate:g} from one seed ({why})")
                continue
            ratio, files = geometric_interval(logs), tables.together([*first[tables.FILES], *rows[tables.FILES]])
            bears, why = bearing_within(ratio, FLAT)
            of = f"{studied_text(results, 'learning_rate')}, {who}, rate {rate:g} over {first_rate:g}"
            outcome.cases.append(setting.of(Case(of, bears, ratio_text(ratio), files, why=why)))
    if not outcome.cases:
        outcome.missing.append("the notebook learning_rate, with two learning rates of one framework at least")
    return outcome


def gru_alike_on_gpu(results: Results, claim: Claim) -> Outcome:
    """Throughput of the GRU, one framework over the other, on a CUDA GPU. An interval within a factor of 1.25 of 1
    supports the claim, one wholly outside contradicts it."""
    frame = results.table("frameworks", "ratios", "baseline")
    outcome = Outcome([], margin=ALIKE)
    if len(frame):
        of_gru = (frame["device"] == "cuda") & frame["task"].str.startswith("gru ") & across_frameworks(frame)
        rows, outcome.missing[:] = without_disturbed(frame[of_gru], "ratio", task_and_subject)
        for _, row in rows.iterrows():
            ratio, control, doubt = interval_of(row, "ratio"), control_of(row), control_doubt(row)
            bears, why = (OPEN, doubt) if doubt else bearing_within(ratio, ALIKE)
            of = f"{row['task']}, {row['subject']} over {row['baseline']}"
            case = Case(of, bears, ratio_text(ratio), files_of(row), control=control, why=why)
            outcome.cases.append(setting_of_task(claim, row["task"]).of(case))
    if not outcome.cases and not outcome.missing:
        outcome.missing.append(
            "gru in the notebook frameworks on a CUDA GPU (device in parameters/PROFILE/frameworks.yaml), in two "
            "frameworks"
        )
    return outcome


def autotuning_faster(results: Results, claim: Claim) -> Outcome:
    """Throughput with cuDNN's search for convolution algorithms over that without it, on a CUDA GPU. Above 1 supports
    the claim, below 1 or within the margin of 1 contradicts it."""
    frame = results.table("instrument", "knobs", "change")
    rows = frame[frame["change"] == "without cudnn_benchmark"] if len(frame) else frame
    rows, disturbed = without_disturbed(rows, "ratio", lambda row: f"{row['subject']}, {row['change']}")
    setting = setting_of(claim, *results.studied("instrument"))
    cases = [
        setting.of(ratio_case(row["subject"], inverse(interval_of(row, "ratio")), row, results.margin("instrument")))
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
