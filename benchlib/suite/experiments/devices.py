"""The experiment ``devices``: what the GPU gives over the CPU, and all cores over few, in each framework."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import pandas as pd
from matplotlib.figure import Figure
from pydantic import model_validator

from benchlib import frameworks
from benchlib.analysis.comparison import DISTURBED
from benchlib.analysis.soundness import MOST
from benchlib.condition import Condition, DeviceName, WorkloadName, implementation
from benchlib.errors import shown
from benchlib.lab import Lab
from benchlib.measure import availability, nvml
from benchlib.suite import figures, tables
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.result import PROCESSES, Result, processes, ratio_text

INDICATORS = {
    "steps_per_second": "training steps per second",
    "cpu_percent": "CPU (% of the machine)",
    "memory_mib": "peak memory (MiB)",
    "accelerator_percent": "accelerator (%)",
    "accelerator_memory_mib": "its memory, driver (MiB)",
    "device_peak_mib": "its memory, framework (MiB)",
    "accelerator_power_w": "its power (W)",
    "joules_per_sample": "energy (J/sample)",
}
"""What the experiment shows of each condition, with units."""


class Parameters(p.Compared):
    """For each subject, the CPU with all threads (the baseline) against other devices and other numbers of threads."""

    workload: WorkloadName
    data: str
    batch_size: p.BatchSize
    hyperparameters: dict[str, Any]
    subjects: p.Grid[p.Subject]
    devices: p.Grid[DeviceName] | None  # None: all that this machine has
    threads: p.Grid[p.Count]  # on the CPU, beside as many as the framework takes by itself

    @model_validator(mode="after")
    def _fits(self) -> Self:
        places = len(self.devices or frameworks.every_device()) + len(self.threads)
        p.check_count("subjects, devices, threads", len(self.subjects) * places)
        if self.devices and "cpu" not in self.devices:
            raise ValueError(f"devices: {shown(self.devices)}: add cpu, which the others are compared with")
        _groups(self, self.devices or ["cpu"])
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be measured; on this machine, where the devices are not named."""
    return [condition for group in comparisons(parameters) for condition in group]


def comparisons(parameters: Parameters) -> list[list[Condition]]:
    """For each subject its conditions, baseline first."""
    return _groups(parameters, parameters.devices)


def measure(parameters: Parameters, lab: Lab) -> Devices:
    """Measure, or take from disk what was measured before."""
    notes = [] if parameters.devices else _missing(p.environments_of(parameters.subjects))
    return Devices(lab.folder, lab.compare_each(comparisons(parameters), **parameters.settings), notes)


class Devices(Result):
    """Steps per second, CPU, memory and GPU of each subject on each device, and ratios to its CPU with all threads."""

    notebook = "devices"
    in_report = ("indicators", "ratios", "processes")
    title = "Devices"

    def findings(self) -> list[str]:
        """A sentence for each device and number of threads."""
        return [
            f"{row['subject']}, {row['where']} against {row['baseline_where']}: throughput ratio {ratio_text(row)}."
            for _, row in self.ratios.iterrows()
        ]

    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """``indicators``, ``ratios`` and ``processes``."""
        frame = self.throughputs
        measured = [*tables.MEASURED, *(f"{name}_{end}" for name in tables.MEASURED for end in ("low", "high"))]
        shown = [*INDICATORS, "steps_per_second_low", "steps_per_second_high", "processes", "failed"]
        return {
            "indicators": (
                "Each framework on each device: means over processes, with 95 % intervals.",
                frame[[*(name for name in frame if name not in measured), *shown]],
            ),
            "ratios": ("Throughput relative to the same framework on the CPU with all threads.", self.ratios),
            "processes": (PROCESSES, processes(frame)),
        }

    @figures.styled
    def draw(self) -> dict[str, tuple[str, Figure]]:
        """``indicators``: a panel for each."""
        frame = self.throughputs
        shown = {
            name: label
            for name, label in INDICATORS.items()
            if name[:3] not in {"acc", "dev", "jou"} or frame[name].notna().any()
        }
        frame = frame.assign(note=[DISTURBED if share > MOST else None for share in frame["disturbed"]])
        looks = figures.looks(frame["subject"])
        columns = min(len(shown), 3)
        rows = -(-len(shown) // columns)
        figure, panels = figures.panels(rows, columns, height=0.45 + 0.24 * len(frame))
        for i, (axes, (name, label)) in enumerate(zip(panels, shown.items(), strict=False)):
            labels = frame["where"] if i % columns == 0 else [""] * len(frame)
            figures.bar_panel(axes, frame, looks, name, label, list(labels))
        for axes in panels[len(shown) :]:
            axes.remove()
        workload, batch = frame["workload"].iloc[0], frame["batch_size"].iloc[0]
        caption = f"{workload} at batch {batch}, on each device: means over processes, 95 % intervals where known."
        return {"indicators": (caption, figures.finish(figure, looks))}

    @cached_property
    def throughputs(self) -> pd.DataFrame:
        """With the place of each condition: its device and threads, in words."""
        return _with_place(super().throughputs)

    @cached_property
    def ratios(self) -> pd.DataFrame:
        """With the places of each condition and its baseline."""
        rows = self.frame[self.frame["quantity"] == "throughput_ratio"]
        places = map(_place, rows["baseline_device"], rows["baseline_threads"])
        return _with_place(super().ratios).assign(baseline_where=list(places))


def _groups(parameters: Parameters, devices: list[str] | None) -> list[list[Condition]]:
    """For each subject its conditions, baseline first."""
    groups = []
    for number, subject in enumerate(parameters.subjects):
        of_subject = dict.fromkeys(subject.choices, f"subjects.{number}")
        choices = {"workload": parameters.workload, **subject.choices, "data": parameters.data}
        choices |= {"hyperparameters": parameters.hyperparameters, "batch_size": parameters.batch_size}
        usable = devices or [
            device
            for device in availability.devices([subject.environment])
            if availability.available(subject.framework, device, subject.environment) is None
        ]
        usable = sorted(usable, key="cpu".__ne__)
        group = [p.condition(of_subject, **choices, device=device) for device in usable]
        group += [p.condition(of_subject, **choices, device="cpu", threads=threads) for threads in parameters.threads]
        groups.append(group)
    return groups


def _missing(within: list[str]) -> list[str]:
    """What cannot be used here in these environments, and why, in words."""
    lacking = [
        f"{implementation(row['framework'], row['environment'])}: {row['missing']}."
        for row in availability.survey(within)
        if row["missing"]
    ]
    told = [f"Not usable here: {' '.join(lacking)}"] if lacking else []
    if availability.devices(within) == ["cpu"]:
        there = (
            f"No framework here can use the GPU ({nvml.gpus()[0]['name']})" if nvml.gpus() else "There is no GPU here"
        )
        told.insert(0, f"{there}, so the CPU is compared with itself at other numbers of threads.")
    return [*told, *availability.troubles()]


def _place(device: str, threads: float | None) -> str:
    if pd.isna(threads):
        return f"{device}, all threads" if device == "cpu" else device
    return f"{device}, {tables.number(threads, 1)} thread" + "s" * (threads > 1)


def _with_place(frame: pd.DataFrame) -> pd.DataFrame:
    where = [_place(device, threads) for device, threads in zip(frame["device"], frame["threads"], strict=True)]
    return frame.assign(where=where)[["subject", "where", *frame.columns[1:]]]
