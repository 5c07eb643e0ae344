"""The tidy frame: all that was measured, long and typed, one row for one quantity of one condition.

Tables, figures, findings and claims select from it by its columns, never from each other's text. A quantity that is
relative to a baseline has the baseline's choices in the columns that begin with ``baseline_``; the others have nothing
there. :data:`SCHEMA` says which columns there are, :data:`QUANTITIES` which quantities, each with its unit, and
:data:`WHYS` the reasons that may stand where there is no number.
"""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchlib import metrics, workloads
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.stats.amortisation import AT_ONCE, NEVER, NOT_SHOWN
from benchlib.stats.comparison import DISTURBED, MODELS_DIFFER, MODELS_NOT_CHECKED, NOT_MEASURED, SLOWS_DOWN, Comparison
from benchlib.stats.intervals import Interval, mean_interval
from benchlib.stats.measured import Proof
from benchlib.stats.training_runs import NOT_REACHED, TrainingRuns, drop_disturbed
from benchlib.stats.validity import MOST

IMPOSSIBLE = "not possible here"  # a condition that its framework refuses

DIVERGED, NOT_REPORTED, LESS_WORK = "diverged", "not reported by the driver", "less work, and faster than possible"

WHYS = (  # why a row has no number
    *(MODELS_DIFFER, MODELS_NOT_CHECKED, NOT_MEASURED, SLOWS_DOWN, DISTURBED),
    *(IMPOSSIBLE, NOT_REACHED, DIVERGED, NOT_REPORTED, LESS_WORK),
    *(AT_ONCE, NEVER, NOT_SHOWN),
)

COMPARISON, TRAINING = "comparison", "training"

METRIC = "of the metric"  # instead of a unit: that of the workload's metric, see ``metrics.readable_unit``
FLAG = "1 or 0"  # instead of a unit: it is so, or it is not

ACCELERATOR = {
    **{"accelerator_percent": "%", "accelerator_memory_mib": "MiB", "accelerator_power_w": "W"},
    **{"accelerator_temperature_c": "°C", "accelerator_clock_mhz": "MHz", "accelerator_throttled": "1"},
    **{"joules_per_sample": "J", "device_peak_mib": "MiB"},
}
TIMED = {"samples_per_second": "1/s", "steps_per_second": "1/s", "step_ms": "ms", "peak_share_percent": "%"}
OF_PROCESSES = {
    **dict.fromkeys(("memory_mib", "memory_steady_mib", "memory_private_mib", "memory_children_mib"), "MiB"),
    **{"first_step_s": "s", "cpu_percent": "%", "cores_used": "1", "memory_import_mib": "MiB", "warm_up_s": "s"},
    **{"steady": "1", "slows_down": FLAG, "disturbed": "1", "idle_cores": "1", "parent_cores": "1"},
}
RATIOS = (
    *("throughput_ratio", "control_ratio", "pair_ratio"),
    *("within_ratio", "subject_ratio", "same_threads_ratio"),
    *("epoch_ratio", "threshold_ratio", "loss_ratio", "first_epoch_ratio", "first_epoch_alone_ratio"),
)
TRAINED = {
    **{"epoch_s": "s", "epochs_longest": "1", "epochs_to_threshold": "1", "seconds_to_threshold": "s"},
    **{"best_metric": "1", "final_metric": METRIC, "metric_difference": METRIC, "final_loss": "1", "diverged": "1"},
}
OF_GROUPS = {"efficiency_percent": "%", "communication_percent": "%"}
OF_GRAPHS = {
    **dict.fromkeys(("first_eager_s", "first_graph_s"), "s"),
    **dict.fromkeys(("step_eager_ms", "step_graph_ms"), "ms"),
    **dict.fromkeys(("pays_after_steps", "pays_after_epochs"), "1"),
    "pays_after_s": "s",
}
QUANTITIES = {
    **dict.fromkeys(RATIOS, "1"),
    **{**TIMED, **OF_PROCESSES, **ACCELERATOR, **OF_GROUPS, **OF_GRAPHS, **TRAINED},
}
"""Every quantity, with its unit (1: it has none).

``throughput_ratio`` is the throughput over the baseline's (``Comparison.ratio``), ``control_ratio`` that of the
baseline over itself (A/A), ``pair_ratio`` that over any other condition of the comparison. ``within_ratio`` is over the
same framework's in eager mode, in fp32, or in one process. ``subject_ratio`` is over the first subject's in the same
way of scaling, ``same_threads_ratio`` a group's over one process with all threads.
``epoch_ratio`` and ``threshold_ratio`` say how many times as fast a whole epoch is trained, or the threshold reached.
``best_metric`` is in the unit of ``threshold``, not in per cent. ``diverged`` counts runs; its ``lowest`` is the first
epoch with a loss that is not finite. The others are described where they are computed: ``Comparison.throughput``,
``TrainingRuns.runs``, ``TrainingRuns.first_epoch`` and ``amortisation``.
"""

_CHOICES = {
    "label": pa.string(),  # all of the condition, in words
    **dict.fromkeys(("workload", "data", "framework", "environment", "mode", "precision", "device"), pa.string()),
    "lane": pa.string(),
    "subject": pa.string(),  # framework to lane, as rows and legends show them
    "batch_size": pa.int64(),
    "learning_rate": pa.float64(),
    "train_samples": pa.int64(),  # missing: all
    "threads": pa.int64(),  # missing: as many as the framework takes by itself
    "world_size": pa.int64(),
    "communication": pa.bool_(),
    "without": pa.string(),  # knobs of the lane that are not set, a space between them
    "hyperparameters": pa.string(),  # JSON
    "parameters": pa.int64(),  # that are trained
    "million_multiply_adds": pa.float64(),  # of a forward pass; missing: the workload does not say
}

SCHEMA = pa.schema(  # the columns of the frame, with their types; missing values are null
    {
        "notebook": pa.string(),
        "host": pa.string(),  # that all of the row was measured on; missing: from before hosts were recorded
        "task": pa.string(),  # the notebook's name for it, for display only
        "part": pa.int64(),  # the place of the comparison, or of the training runs, among those of the notebook
        "kind": pa.string(),  # of the measurement: comparison or training
        "quantity": pa.string(),
        "unit": pa.string(),
        **_CHOICES,
        **{f"baseline_{name}": kind for name, kind in _CHOICES.items()},
        "estimate": pa.float64(),  # a mean over processes or seeds; a ratio's geometric; to a threshold the median
        "low": pa.float64(),  # ends of the 95 % interval over processes or seeds; missing: there are too few
        "high": pa.float64(),
        "lowest": pa.float64(),  # over seeds
        "highest": pa.float64(),
        "processes": pa.int64(),  # or seeds, that the estimate is made from
        "failed": pa.int64(),  # processes or seeds that the condition has no number of
        "runs": pa.int64(),  # of training, of the condition
        "left_out": pa.int64(),  # of these, that were disturbed: their times do not count
        "epochs": pa.int64(),  # that every run was trained for
        "threshold": pa.float64(),  # of the metric, that it was trained to
        "verdict": pa.string(),  # on a ratio, see ``comparison.verdict_on``
        "why": pa.string(),  # there is no number: one of WHYS
        "reason": pa.string(),  # why it cannot be measured here, or why it failed, in words
        "caveat": pa.string(),  # of a ratio, in words: less work than the reference's
        "control": pa.float64(),  # the A/A of its comparison
        "control_low": pa.float64(),
        "control_high": pa.float64(),
        "control_why": pa.string(),  # there is none: one of WHYS
        "half_width_percent": pa.float64(),  # of the widest interval of its comparison
        "ended": pa.string(),  # why no more of it was measured
        "margin": pa.float64(),  # a ratio whose interval lies within so much of 1 is the same within it
        "files": pa.string(),  # keys of the measurements, a space between them
    }
)

NO_CONTROL = dict.fromkeys(("control", "control_low", "control_high", "control_why"))  # where the A/A says nothing
SUBJECT = ["framework", "environment", "mode", "precision", "lane"]  # columns that name what is measured, not its task


def of_rows(rows: Iterable[Mapping[str, Any]], **common: Any) -> pd.DataFrame:
    """The frame of rows as :func:`row` makes them, each with the ``common`` columns. A ValueError for a column, a
    quantity or a reason that is not in the closed sets.
    """
    rows = [{**common, **one} for one in rows]
    for one in rows:
        unknown = set(one) - set(SCHEMA.names)
        if unknown or one["quantity"] not in QUANTITIES or one.get("why") not in {None, *WHYS}:
            raise ValueError(f"no row of a tidy frame: {unknown or (one['quantity'], one.get('why'))}")
    return _typed_frame(pa.Table.from_pylist(rows, schema=SCHEMA))


def concat(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Several frames as one."""
    tables = [pa.Table.from_pandas(frame, SCHEMA, preserve_index=False) for frame in frames]
    return _typed_frame(pa.concat_tables([SCHEMA.empty_table(), *tables]))


def row(
    quantity: str, condition: Condition, interval: Interval, baseline: Condition | None = None, **more: Any
) -> dict[str, Any]:
    """A row for :func:`of_rows`: the quantity of a condition, relative to a baseline if it has one."""
    unit = QUANTITIES.get(quantity)
    return {
        "quantity": quantity,
        "unit": metrics.readable_unit(workloads.load(condition.workload).metric)[1] if unit == METRIC else unit,
        **_choices(condition),
        **({} if baseline is None else {f"baseline_{name}": value for name, value in _choices(baseline).items()}),
        **{name: _number(getattr(interval, name)) for name in ("estimate", "low", "high")},
        "processes": interval.processes,
        **more,
    }


def gap_row(quantity: str, condition: Condition, baseline: Condition | None, why: str, reason: str) -> dict[str, Any]:
    """A row for :func:`of_rows` of a quantity that was not measured, with the reason in words."""
    of_comparison = {**NO_CONTROL, "half_width_percent": None, "ended": None}
    return row(quantity, condition, Interval(), baseline, why=why, reason=reason, **of_comparison)


def verdict_columns(verdict: str) -> dict[str, str | None]:
    """A verdict on a ratio as columns: the verdict itself, or the reason why there is none."""
    return {"verdict": None, "why": verdict} if verdict in WHYS else {"verdict": verdict, "why": None}


def of_comparison(
    comparison: Comparison,
    beside: Iterable[Mapping[str, Any]] = (),
    *,
    roof_s: Callable[[Condition], float] | None = None,
    **common: Any,
) -> pd.DataFrame:
    """A comparison's ratios, its control, each condition's measurements, and the rows ``beside`` these, such as those
    of ``derived_ratios``. ``common`` are more columns. ``roof_s`` gives the least seconds of a step on this machine.
    """
    conditions, baseline, control = comparison.conditions, comparison.baseline, comparison.control
    control_why = NOT_MEASURED if control.processes == 0 else None
    columns = {
        "control": _number(control.estimate),
        "control_low": _number(control.low),
        "control_high": _number(control.high),
        "control_why": DISTURBED if comparison.disturbed(baseline, baseline, "control") else control_why,
        "half_width_percent": _number(100 * comparison.plan.half_width),
        "ended": comparison.ended,
        "margin": comparison.margin,
        "host": comparison.host,
    }
    shown = verdict_columns(comparison.verdict(baseline, baseline, "control")[1])
    shown["why"] = columns["control_why"]  # of a baseline that slows down, too: it shows the resolution
    files = {one: " ".join(comparison.files(one)) for one in conditions}
    rows = [row("control_ratio", baseline, control, baseline, files=files[baseline], **shown)]
    for one in conditions[1:]:
        ratio, verdict = comparison.verdict(baseline, one)
        rows.append(row("throughput_ratio", one, ratio, baseline, files=files[one], **verdict_columns(verdict)))
    for condition, measured in zip(conditions, comparison.throughput().to_dict("records"), strict=True):
        rows += _indicators(condition, measured, roof_s)
    rows += beside
    _add_caveats(rows, {str(one): proof for one in conditions if (proof := comparison.certificates.get(one.key))})
    return of_rows(rows, **{"kind": COMPARISON, **columns, **common})


def _add_caveats(rows: list[dict[str, Any]], proofs: Mapping[str, Proof]) -> None:
    """Say of ratios that counted work is less than the reference's; faster than the peak, too, there is no ratio."""
    less = {label: proof.less_work for label, proof in proofs.items() if proof.less_work}
    above = {row["label"] for row in rows if row["quantity"] == "peak_share_percent" and (row["estimate"] or 0) > 100}
    for row in (row for row in rows if "baseline_label" in row and row["quantity"] != "control_ratio"):
        whose = {row["label"]: "it takes", row["baseline_label"]: "the baseline takes"}
        if said := [f"{who} {less[label]}" for label, who in whose.items() if label in less]:
            row["caveat"] = "; ".join(said)
            if whose.keys() & less.keys() & above:
                row |= {**dict.fromkeys(("estimate", "low", "high", "verdict")), "why": LESS_WORK}


def of_training(runs: TrainingRuns, beside: Iterable[Mapping[str, Any]] = (), **common: Any) -> pd.DataFrame:
    """The times and metrics of the conditions of training runs, and the rows ``beside`` them, as of ``derived_ratios``.
    ``common`` are columns such as the notebook and the task.
    """
    every, rows = runs.runs(), []
    for condition in runs.conditions:
        own = every[every["label"] == str(condition)]
        counts = {"runs": len(own), "left_out": len(own) - len(drop_disturbed(own))}
        files = {"files": " ".join(dict.fromkeys(own["measurements"]))}
        rows += [{**one, **counts, **files} for one in _training_rows(runs, condition, own)]
    common |= {"host": runs.host, "epochs": runs.epochs, "threshold": runs.threshold}
    return of_rows([*rows, *beside], kind=TRAINING, **common)


def hyperparameter(frame: pd.DataFrame, name: str) -> pd.Series:
    """The values of a hyperparameter in the rows of a frame; None in rows of a workload that has it not."""
    return frame["hyperparameters"].map(lambda text: json.loads(text).get(name))


def save(frame: pd.DataFrame, path: Path) -> None:
    """Write a frame as a parquet file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pandas(frame, SCHEMA, preserve_index=False).replace_schema_metadata(), path)


def load(path: Path) -> pd.DataFrame:
    """Read a frame; one with other columns is a BenchlibError that names the file."""
    table = pq.read_table(path)
    if not table.schema.equals(SCHEMA):
        raise BenchlibError(f"{path}: written by another benchlib, its columns are others; run its notebook again")
    return _typed_frame(table)


def _typed_frame(table: pa.Table) -> pd.DataFrame:
    kinds = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    return table.to_pandas(types_mapper=kinds.get)


def _number(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _choices(condition: Condition) -> dict[str, Any]:
    parameters, multiply_adds = _size(condition.workload, json.dumps(condition.hyperparameters))
    plain = [name for name in _CHOICES if hasattr(condition, name) and name not in {"without", "hyperparameters"}]
    return {
        "label": str(condition),
        **{name: getattr(condition, name) for name in plain},
        "without": " ".join(condition.without),
        "hyperparameters": json.dumps(condition.hyperparameters),
        "parameters": parameters,
        "million_multiply_adds": None if multiply_adds is None else condition.batch_size * multiply_adds / 1e6,
    }


@functools.cache
def _size(workload: str, hyperparameters: str) -> tuple[int, float | None]:
    """The parameters that are trained, and the multiply-adds of a sample's forward pass."""
    model, values = workloads.load(workload), json.loads(hyperparameters)
    weights = model.weights(values).values()
    trained = int(sum(np.prod(weight.shape) for weight in weights if weight.trained))
    return trained, model.work(values).multiply_adds if model.work else None


def _indicators(
    condition: Condition, measured: Mapping[str, Any], roof_s: Callable[[Condition], float] | None
) -> list[dict[str, Any]]:
    """A row for each quantity of a row of ``Comparison.throughput``."""
    values = {**measured, "samples_per_second_low": measured["low"], "samples_per_second_high": measured["high"]}
    quantities = [*TIMED, *OF_PROCESSES, *(ACCELERATOR if condition.device != "cpu" else ())]
    if roof_s is None:
        quantities.remove("peak_share_percent")
    else:
        values["peak_share_percent"] = 100 * 1000 * roof_s(condition) / measured["step_ms"]
    rows = []
    for name in quantities:
        ends = (float(values.get(f"{name}{end}", math.nan)) for end in ("", "_low", "_high"))
        interval = Interval(*ends, processes=values["processes"])
        why = None if math.isfinite(interval.estimate) else _why_not(name, values)
        rows.append(row(name, condition, interval, failed=values["failed"], why=why, files=values["measurements"]))
    return rows


def _why_not(quantity: str, measured: Mapping[str, Any]) -> str:
    if quantity in {*TIMED, "joules_per_sample"}:
        if measured["disturbed"] > MOST:
            return DISTURBED
        if measured["slows_down"]:
            return SLOWS_DOWN
    if quantity in {"first_step_s", "warm_up_s"} and measured["processes"]:
        return DISTURBED
    return NOT_REPORTED if quantity in ACCELERATOR and measured["processes"] else NOT_MEASURED


def _training_rows(runs: TrainingRuns, condition: Condition, own: pd.DataFrame) -> list[dict[str, Any]]:
    """A row for each quantity of the runs of a condition, which are rows of ``TrainingRuns.runs``."""
    timed, failed = drop_disturbed(own), int(own["failure"].notna().sum())
    noisy = DISTURBED if len(timed) < len(own) else NOT_MEASURED
    workload = workloads.load(condition.workload)
    factor, _ = metrics.readable_unit(workload.metric)
    bounds = metrics.limits(workload) if workload.metric else (-math.inf, math.inf)
    first_not_finite = first_diverged(runs, condition)
    loss = own["loss"].mask(own["seed"].isin(first_not_finite.keys()))
    means = [
        ("epoch_s", timed["epoch_s"], (0, math.inf), noisy),
        ("first_step_s", own["first_step_s"], (0, math.inf), NOT_MEASURED),
        ("memory_mib", own["peak_memory_mib"], (0, math.inf), NOT_MEASURED),
        ("final_metric", own["metric"] * factor, [factor * end for end in bounds], NOT_MEASURED),
        ("final_loss", loss, (0, math.inf), DIVERGED if first_not_finite else NOT_MEASURED),
    ]
    numbers = [
        ("first_epoch_ratio", runs.first_epoch(condition), DISTURBED if (own["epochs"] > 1).any() else NOT_MEASURED),
        ("first_epoch_alone_ratio", runs.first_epoch(condition, with_compilation=False), noisy),
        ("best_metric", _number_of(own["best_metric"].median(), own["best_metric"].count()), NOT_MEASURED),
        ("epochs_longest", _number_of(own["epochs"].max(), len(own)), NOT_MEASURED),
    ]
    if runs.threshold is not None:
        for name, watched in (("epochs_to_threshold", own), ("seconds_to_threshold", timed)):
            median = watched[name].mask(~watched["reached"], math.inf).median()  # one that did not took longest
            median = _number_of(median if math.isfinite(median) else math.nan, own["reached"].sum())
            numbers.append((name, median, NOT_REACHED if len(watched) else noisy))
    rows = []
    for name, values, ends, why in means:
        known = values.dropna()
        columns = {"lowest": _number(known.min()), "highest": _number(known.max()), "failed": len(values) - len(known)}
        interval = mean_interval(known.to_list(), *ends)
        rows.append(row(name, condition, interval, **columns, why=None if len(known) else why))
    for name, interval, why in numbers:
        missing = None if math.isfinite(interval.estimate) else why
        rows.append(row(name, condition, interval, failed=failed, why=missing))
    lost = {"failed": failed, "lowest": min(first_not_finite.values(), default=None)}
    return [*rows, row("diverged", condition, _number_of(len(first_not_finite), len(own) - failed), **lost)]


def first_diverged(runs: TrainingRuns, condition: Condition) -> dict[int, int]:
    """The first epoch of a condition's runs whose loss is not finite, by seed."""
    lost = [
        (m.seed, epoch.epoch)
        for m in runs.measurements
        for epoch in reversed(m.epochs)
        if m.condition == condition and not math.isfinite(epoch.loss)
    ]
    return dict(lost)


def _number_of(value: float, count: int) -> Interval:
    """A number without an interval."""
    return Interval(float(value), processes=int(count))
