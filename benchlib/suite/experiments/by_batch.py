"""Throughput against the batch size: what ``batch_size``, ``inference`` and ``versions`` have in common."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from benchlib import workloads
from benchlib.analysis.comparison import Comparison
from benchlib.analysis.soundness import MOST
from benchlib.condition import Condition, DeviceName, WorkloadName
from benchlib.lab import Lab
from benchlib.suite import figures, tables
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.result import (
    PROCESSES,
    Result,
    ceiling_text,
    failures_beside,
    indicators,
    processes,
    ratio_text,
)


class Parameters(p.Compared):
    """A comparison of the subjects at each batch size."""

    workload: WorkloadName
    data: str
    device: DeviceName
    hyperparameters: dict[str, Any]
    subjects: p.Grid[p.Subject]  # the first is the baseline
    batch_sizes: p.Grid[p.BatchSize]


def comparisons(parameters: Parameters) -> list[list[Condition]]:
    """A group of conditions for each batch size, baseline first."""
    return [
        [
            condition(parameters, f"subjects.{number}", subject, "batch_sizes", size)
            for number, subject in enumerate(parameters.subjects)
        ]
        for size in parameters.batch_sizes
    ]


def condition(
    parameters: Parameters, subject_key: str, subject: p.Subject, size_key: str, size: int, **trained: Any
) -> Condition:
    """Of a subject at a batch size; the keys say which parameters gave them."""
    keys = {**dict.fromkeys(subject.choices, subject_key), "batch_size": size_key}
    return p.condition(
        keys,
        workload=parameters.workload,
        **subject.choices,
        data=parameters.data,
        device=parameters.device,
        hyperparameters=parameters.hyperparameters,
        batch_size=size,
        **trained,
    )


def compare(parameters: Parameters, lab: Lab) -> list[Comparison]:
    """Measure, or take from disk what was measured before."""
    return lab.compare_each(comparisons(parameters), **parameters.settings)


class ByBatch(Result):
    """Indicators and ratios by batch size."""

    def __init__(
        self, parameters: Parameters, lab: Lab, comparisons: list[Comparison], more: list[Any], note: str
    ) -> None:
        compared = [condition for comparison in comparisons for condition in comparison.conditions]
        self.ceiling = lab.ceiling(parameters.device, within=p.environments_of(compared))
        notes = [note, ceiling_text(self.ceiling)]
        super().__init__(lab.folder, [*comparisons, *more], notes, failures_beside(self.ceiling))

    def findings(self) -> list[str]:
        """How the subjects compare, and how throughput grows with the batch."""
        found = [_ratio_sentence(who, rows) for who, rows in self.ratios.groupby("subject", sort=False)]
        return found + [_growth_sentence(who, rows) for who, rows in self.throughputs.groupby("subject", sort=False)]

    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """``indicators``, ``processes`` and ``ratios``."""
        return {
            "indicators": (
                "Each subject at each batch size: means over processes, with 95 % intervals; of peak memory over "
                "those that measured it first.",
                indicators(self.throughputs),
            ),
            "processes": (PROCESSES, processes(self.throughputs)),
            "ratios": ("Throughput relative to the first subject at the same batch size.", self.ratios),
        }

    @figures.styled
    def draw(self) -> dict[str, tuple[str, Figure]]:
        """``ratios`` and ``indicators``."""
        compared = {"ratios": self._draw_ratios()} if len(self.ratios) else {}
        return {**compared, "indicators": self._draw_indicators()}

    def _draw_indicators(self) -> tuple[str, Figure]:
        frame = self.throughputs
        looks = figures.looks(frame["subject"])
        shown = {
            "samples_per_second": (f"throughput ({_unit(frame)}/s)", True),
            "step_ms": ("time of a step (ms)", True),
            "cpu_percent": ("CPU (% of the machine)", False),
            "memory_mib": ("peak memory (MiB)", False),
            "peak_share_percent": ("share of the peak (%)", False),
            "accelerator_percent": ("accelerator (%)", False),
            "accelerator_memory_mib": ("accelerator memory (MiB)", False),
        }
        shown = {name: how for name, how in shown.items() if "accelerator" not in name or frame[name].notna().any()}
        columns = 3 if frame["batch_size"].nunique() < 6 else 2  # more ticks need wider panels
        figure, panels = figures.panels(-(-len(shown) // columns), columns, height=1.8)
        for axes, (name, (label, log)) in zip(panels, shown.items(), strict=False):
            figures.line_panel(axes, frame, looks, "batch_size", name, "batch size", label, log_y=log)
        for axes in panels[len(shown) :]:
            axes.remove()
        caption = (
            "Indicators against the batch size. Points: means over processes; bars: 95 % intervals, where one is "
            "known. Share of the peak: the least time that a step's multiply-adds or bytes could take here, of the "
            "time that it took."
        )
        return caption, figures.finish(figure, looks)

    def _draw_ratios(self) -> tuple[str, Figure]:
        frame = self.ratios
        baseline = frame["baseline"].iloc[0]
        looks = figures.looks([baseline, *frame["subject"]])
        del looks[baseline]
        figure, (axes,) = figures.panels(1, 1, height=2.6, width=figures.COLUMN)
        label = f"throughput relative to\n{baseline}"
        figures.ratio_panel(axes, frame, looks, "batch_size", "batch size", label, margin=self.margin)
        caption = (
            f"Throughput relative to {baseline} at the same batch size, with 95 % intervals; above 1 is faster. "
            f"{figures.margin_text(self.margin)}"
        )
        return caption, figures.finish(figure, looks, figures.ratio_legend(frame, self.margin))


def _unit(frame: pd.DataFrame) -> str:
    return workloads.load(frame["workload"].iloc[0]).unit


def _ratio_sentence(who: str, rows: pd.DataFrame) -> str:
    each = "; ".join(f"batch {row['batch_size']}: {ratio_text(row)}" for _, row in rows.iterrows())
    return f"Throughput of {who} relative to {rows['baseline'].iloc[0]}: {each}."


def _growth_sentence(who: str, rows: pd.DataFrame) -> str:
    """How throughput and memory go with the batch size."""
    disturbed = (rows["disturbed"] > MOST).any()
    rows = rows.dropna(subset=["samples_per_second"]).sort_values("batch_size")
    if len(rows) < 2:
        noisy = " undisturbed" if disturbed else ""
        return f"{who}: too few batch sizes were measured{noisy} to say how throughput goes with the batch."
    first, last, best = rows.iloc[0], rows.iloc[-1], rows.loc[rows["samples_per_second"].idxmax()]
    throughput, *memory = (
        tables.interval(*(row[f"{name}{end}"] for end in ("", "_low", "_high")))
        for row, name in ((best, "samples_per_second"), (first, "memory_mib"), (last, "memory_mib"))
    )
    times = tables.number(best["samples_per_second"] / first["samples_per_second"])
    return (
        f"{who}: throughput is highest at batch {best['batch_size']} with {throughput} "
        f"{_unit(rows)}/s, {times} times that at batch {first['batch_size']}; "
        f"peak memory goes from {memory[0]} MiB at batch {first['batch_size']} "
        f"to {memory[1]} MiB at batch {last['batch_size']}{_without_interval(first, last)}."
    )


def _without_interval(*rows: pd.Series) -> str:
    """Which of these rows came first in too few processes for an interval of their peak memory."""
    return "".join(
        f" (at batch {row['batch_size']} without an interval: {row['first_in_process']} of its {row['processes']} "
        "processes measured it first)"
        for row in rows
        if pd.isna(row["memory_mib_low"])
    )
