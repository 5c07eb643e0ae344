"""What a table shows: rows of the tidy frame, and beside each what else was measured of the same condition."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import pandas as pd

from benchlib.stats import frame as tidy
from benchlib.stats.comparison import DISTURBED
from benchlib.suite import tables


class Measured(Protocol):
    """What tables and figures select from: the result of an experiment."""

    @property
    def frame(self) -> pd.DataFrame: ...

    @property
    def runs(self) -> pd.DataFrame: ...

    @property
    def curves(self) -> pd.DataFrame: ...

    @property
    def margin(self) -> float: ...


WITH_INTERVAL = {
    *tidy.RATIOS,
    *tidy.OF_GROUPS,
    *tidy.OF_GRAPHS,
    *("samples_per_second", "steps_per_second", "step_ms", "cpu_percent", "memory_mib"),
    *("accelerator_percent", "accelerator_memory_mib", "final_metric", "metric_difference", "final_loss"),
}
"""The quantities that tables show with their intervals."""

PLACE = ["part", "label"]
"""The columns of the frame that say what a condition's quantities have in common: where it was measured, and that."""

BESIDE = (
    *("estimate", "low", "high", "lowest", "highest", "processes", "verdict", "why", "files"),
    *("baseline_subject", "baseline_batch_size", "baseline_threads"),
)


def wide(frame: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """The rows of a quantity; and beside each, in columns of their names, the other quantities of the same condition
    in the same part: the estimate as ``NAME``, the others of :data:`BESIDE` as ``NAME_low`` and so on. A quantity that
    a condition has several times, relative to several baselines, stands beside none.
    """
    rows = frame[frame["quantity"] == quantity]
    if not len(rows):
        return rows
    once = frame.drop_duplicates([*PLACE, "quantity"], keep=False)
    others = once.set_index([*PLACE, "quantity"])[[*BESIDE]].unstack("quantity")
    others.columns = [name if field == "estimate" else f"{name}_{field}" for field, name in others.columns]
    return rows.join(others, on=PLACE)


Value = Callable[[pd.Series], Any]
"""Of a cell, from a row of :func:`wide`."""


@dataclass(frozen=True)
class Column:
    """A column of a table, where the name of a quantity or of a column of the frame does not say it all."""

    name: str
    of: str | tuple[str, str, str] | Value  # a quantity or a column; an estimate and the ends of its interval
    ends: bool | None = None  # of a quantity: with its interval; None: if it is one of WITH_INTERVAL

    def values(self, rows: pd.DataFrame) -> dict[str, list[Any] | pd.Series]:
        """By name, the columns of a table of these rows of :func:`wide`."""
        if isinstance(self.of, tuple):
            return {f"{self.name}{end}": rows[of] for end, of in zip(("", "_low", "_high"), self.of, strict=True)}
        if callable(self.of):
            return {self.name: [self.of(row) for _, row in rows.iterrows()]}
        if self.of not in tidy.QUANTITIES:
            return {self.name: rows[self.of]}
        if self.of not in rows:  # nobody has measured it
            return {}
        if tidy.QUANTITIES[self.of] == tidy.FLAG:
            return {self.name: rows[self.of] == 1}
        return {f"{self.name}{end}": rows[f"{self.of}{end}"] for end in self._ends}

    @property
    def _ends(self) -> tuple[str, ...]:
        with_ends = self.of in WITH_INTERVAL if self.ends is None else self.ends
        return ("", "_low", "_high") if with_ends else ("",)


HYPERPARAMETERS = "hyperparameters"
"""As a column: one for each hyperparameter, of the one workload that a table then is of."""


@dataclass(frozen=True)
class Table:
    """A table of an experiment: a row for each row of a quantity in its frame, or for those ``where`` it is wanted.

    A name among the columns is that of a quantity of the same condition, or of a column of the frame. The keys of the
    measurements that a row is made from come last.
    """

    caption: str
    quantity: str
    columns: Sequence[str | Column]
    where: Callable[[pd.DataFrame], pd.Series] | None = None

    def of(self, result: Measured) -> pd.DataFrame:
        """The table of a result, unrounded."""
        rows = wide(result.frame, self.quantity)
        if self.where is not None and len(rows):
            rows = rows[self.where(rows).astype(bool)]
        rows = rows.reset_index(drop=True)
        if not len(rows):
            return pd.DataFrame()
        values: dict[str, Any] = {}
        for one in self.columns:
            if one == HYPERPARAMETERS:
                values |= _hyperparameters(rows)
            else:
                values |= (one if isinstance(one, Column) else Column(one, one)).values(rows)
        return pd.DataFrame({**values, tables.FILES: self._files(rows)}, index=rows.index)

    def but(self, **changes: Any) -> Self:
        """This table with some of it changed."""
        return replace(self, **changes)

    def _files(self, rows: pd.DataFrame) -> list[str]:
        """The files of each row's own quantity, and of those that stand beside it."""
        used = [one.of if isinstance(one, Column) else one for one in self.columns]
        names = ["files", *(f"{name}_files" for name in used if isinstance(name, str) and f"{name}_files" in rows)]
        every = rows[names].apply(lambda row: tables.together(row.dropna()), axis=1)
        return [" ".join(sorted(files.split())) for files in every]


@dataclass(frozen=True)
class Runs:
    """The table of all training runs, one by one."""

    caption: str = "The training runs."

    def of(self, result: Measured) -> pd.DataFrame:
        """The table of a result."""
        return result.runs.drop(columns=["task", "part", "threshold"], errors="ignore")


@dataclass(frozen=True)
class Listed:
    """A table of what is beside the frame, such as certificates and timers."""

    caption: str
    of: Callable[[Any], pd.DataFrame]  # a result


def verdict(row: pd.Series) -> str | None:
    """What a row's ratio shows, or why there is none."""
    return row["why"] if pd.isna(row["verdict"]) else row["verdict"]


def disturbed(name: str = "why") -> Value:
    """``DISTURBED`` where that is why there is no number: by the column ``why`` of a row, or of what is beside it."""
    return lambda row: DISTURBED if row.get(name) == DISTURBED else None


def left_out(row: pd.Series) -> str | None:
    """Of how many training runs of a row the times do not count, in words."""
    return f"{row['left_out']} of {row['runs']} (disturbed)" if row["left_out"] else None


def reached(row: pd.Series) -> str | None:
    """How many training runs of a row reached the threshold, in words; None: there is none."""
    if pd.isna(row["threshold"]):
        return None
    return f"{row['epochs_to_threshold_processes']} of {row['runs']}"


def _hyperparameters(rows: pd.DataFrame) -> dict[str, Any]:
    each = [json.loads(text) for text in rows["hyperparameters"]]
    return {name: [one.get(name) for one in each] for name in dict.fromkeys(name for one in each for name in one)}


CONDITION = (
    *("subject", "label", "workload", "framework", "environment", "mode", "precision", "device", "lane"),
    *("batch_size", "learning_rate", "data", "train_samples", "threads"),
)
"""What a row is about, in full."""

OF_TASK = tuple(name for name in CONDITION if name not in {"workload", "data"})
"""What a row is about beside its task."""

RATIO = (
    Column("ratio", "throughput_ratio"),
    *("processes", Column("verdict", verdict), Column("baseline", "baseline_subject")),
    Column("control", ("control", "control_low", "control_high")),
    Column("control_why", disturbed("control_why")),
)
"""Of rows of ``throughput_ratio``: the ratio, its verdict, and the A/A control of its comparison."""

ENDED = ("half_width_percent", "ended")
"""Of rows of ``throughput_ratio``: the widest interval of its comparison, and why no more of it was measured."""

COUNTS = ("processes", "failed")

INDICATORS = (
    *("samples_per_second", "step_ms", "cpu_percent", "memory_mib", "accelerator_percent", "accelerator_memory_mib"),
    *("accelerator_power_w", "joules_per_sample", *COUNTS, "steps_per_second", "peak_share_percent"),
)
"""Of rows of ``samples_per_second``: what an experiment asks for."""

OF_PROCESSES = (
    *("cores_used", "memory_steady_mib", "memory_private_mib", "memory_import_mib", "memory_children_mib"),
    *("accelerator_temperature_c", "accelerator_clock_mhz", "accelerator_throttled", "device_peak_mib", "first_step_s"),
    *("warm_up_s", "steady", "slows_down", "disturbed", "idle_cores", "parent_cores", *COUNTS),
)
"""Of rows of ``samples_per_second``: how it went."""

PROCESSES = Table(
    "How it went in the processes: means over them. First step: with compilation. Steady: the share that was by the "
    "warm-up's rule when its blocks began. Cores of others: what the other workers of the comparison, who should "
    "sleep, used meanwhile, beside the process where it was worst. Cores of the parent: what the notebook's own "
    "process used, which asks, waits and samples. Disturbed: the share of blocks that count although in every take of "
    "them something else used the machine, or they were far from the process's others.",
    "samples_per_second",
    (
        *(*CONDITION, HYPERPARAMETERS, "cores_used", "memory_steady_mib", "memory_private_mib", "memory_import_mib"),
        *("memory_children_mib", "accelerator_temperature_c", "accelerator_clock_mhz", "accelerator_throttled"),
        *("device_peak_mib", "first_step_s", "warm_up_s", "steady", "slows_down", "disturbed", "idle_cores"),
        *("parent_cores", *COUNTS),
    ),
)
"""How it went in the processes of all that was compared."""
