"""The experiment ``devices``: what the GPU gives over the CPU, and all cores over few, in each framework."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, Self

import pandas as pd
from pydantic import model_validator

from benchlib import findings, frameworks, tables
from benchlib.condition import Condition, DeviceName, WorkloadName, implementation
from benchlib.errors import shown
from benchlib.lab import Lab
from benchlib.plotting import Bars, Picture
from benchlib.provenance import nvml
from benchlib.runner import availability
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments import subjects
from benchlib.suite.experiments.result import Declaration, Result
from benchlib.tables import (
    CONDITION,
    ENDED,
    HYPERPARAMETERS,
    OF_PROCESSES,
    PROCESSES,
    RATIO,
    Column,
    Table,
    ratio_text,
)

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
    subjects: p.Subjects[p.Subject]
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


def measure(parameters: Parameters, lab: Lab) -> Result:
    """Measure, or take from disk what was measured before."""
    notes = [] if parameters.devices else _missing(p.environments_of(parameters.subjects))
    notes += subjects.left_out(parameters.subjects, [parameters.workload], parameters.devices or ["cpu"])
    return Result(DECLARATION, lab.folder, lab.compare_each(comparisons(parameters), **parameters.settings), notes)


def _where(row: pd.Series, of: str = "") -> str:
    """The device and the threads of a row, or of its baseline, in words."""
    device, threads = row[f"{of}device"], row[f"{of}threads"]
    if pd.isna(threads):
        return f"{device}, all threads" if device == "cpu" else device
    return f"{device}, {tables.number(threads, 1)} thread" + "s" * (threads > 1)


def _baseline_where(row: pd.Series) -> str:
    return _where(row, "baseline_")


def _without_accelerator(result: Result) -> Iterator[str]:
    """What the question has no answer to."""
    rows = result.rows("steps_per_second")
    if len(rows) and set(rows["device"]) == {"cpu"}:
        yield "What a GPU brings was not measured: everything ran on the CPU."


def _findings(result: Result) -> Iterator[str]:
    """A sentence for each device and number of threads."""
    for _, row in result.rows("throughput_ratio").iterrows():
        places = f"{_where(row)} against {_baseline_where(row)}"
        yield f"{row['subject']}, {places}: throughput ratio {ratio_text(row)}."


def _caption(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    where = f"{first['workload']} at batch {first['batch_size']}, on each device"
    return f"{where}: means over processes, 95 % intervals where known."


_OF = ("subject", Column("where", _where), *CONDITION[1:], HYPERPARAMETERS)


DECLARATION = Declaration(
    notebook="devices",
    title="Devices",
    question="What does a GPU bring, and at which cost of CPU, GPU and memory? Without one: one thread against all.",
    answers=[
        _without_accelerator,
        findings.effects(lambda row: "", who=lambda row: f"{row['subject']} on {_where(row)}", to=_baseline_where),
    ],
    in_report=("indicators", "ratios", "processes"),
    tables={
        "indicators": Table(
            "Each framework on each device: means over processes, with 95 % intervals.",
            "steps_per_second",
            (
                *_OF,
                *(Column(name, name, ends=name == "steps_per_second") for name in INDICATORS),
                "processes",
                "failed",
            ),
        ),
        "ratios": Table(
            "Throughput relative to the same framework on the CPU with all threads.",
            "throughput_ratio",
            (*_OF, *RATIO, *ENDED, Column("baseline_where", _baseline_where)),
        ),
        "processes": PROCESSES.but(columns=(*_OF, *OF_PROCESSES)),
    },
    figures={
        "indicators": Picture(
            caption=_caption,
            panels=[Bars(quantity=name, xlabel=label, labels=_where) for name, label in INDICATORS.items()],
            columns=3,
        )
    },
    findings=[_findings],
)


def _groups(parameters: Parameters, devices: list[str] | None) -> list[list[Condition]]:
    """For each subject its conditions, baseline first."""
    groups = []
    for number, subject in enumerate(parameters.subjects):
        of_subject = functools.partial(subjects.of_one, parameters, f"subjects.{number}", subject)
        usable = devices or [
            device
            for device in availability.devices([subject.environment])
            if availability.available(subject.framework, device, subject.environment) is None
        ]
        usable = sorted(usable, key="cpu".__ne__)
        group = [one for device in usable for one in of_subject(device=("devices", device))]
        for count in parameters.threads:
            group += of_subject(device=("devices", "cpu"), threads=("threads", count))
        groups.append(group)
    return [group for group in groups if group]


def _missing(within: list[str]) -> list[str]:
    """What cannot be used here in these environments, and why, in words."""
    lacking = [
        f"{implementation(row['framework'], row['environment'])}: {row['missing']}."
        for row in availability.survey(within)
        if row["missing"]
    ]
    sentences = [f"Not usable here: {' '.join(dict.fromkeys(lacking))}"] if lacking else []
    if availability.devices(within) == ["cpu"]:
        gpus = nvml.gpus()
        there = f"No framework here can use the GPU ({gpus[0]['name']})" if gpus else "There is no GPU here"
        sentences.insert(0, f"{there}, so the CPU is compared with itself at other numbers of threads.")
    return sentences
