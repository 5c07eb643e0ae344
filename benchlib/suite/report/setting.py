"""What was compared, on which machine, with which versions, and with which settings in force."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.suite import tables
from benchlib.suite.report.gathered import Gathered, distinct

if TYPE_CHECKING:
    from IPython.display import HTML


def compared(report: Gathered) -> HTML:
    """A row for each notebook, workload, subject and device: at which batch sizes."""
    from IPython.display import HTML

    rows = [
        {
            **condition,
            "notebook": notebook,
            "subject": Condition(**condition).subject,
            "image size": condition["hyperparameters"].get("image_size", ""),
        }
        for notebook, summary in report.summaries.items()
        for condition in summary["conditions"]
    ]
    names = ["notebook", "workload", "data", "image size", "subject", "precision", "device"]
    groups = pd.DataFrame(rows, columns=[*names, "batch_size"]).groupby(names, sort=False)["batch_size"]
    frame = pd.DataFrame({"batch sizes": groups.agg(listed), "conditions": groups.size()}).reset_index()
    used = [workloads.load(name) for name in dict.fromkeys(frame["workload"])]
    sources = tables.bullets(f"{workload.name}: {workload.source}." for workload in used)
    return HTML(tables.html(frame, "What was compared.").data + sources.data)


def machine(report: Gathered) -> HTML:
    """The machines that the measurements were made on, the versions in use, and the code."""
    measured = report.measured
    rows = [row for one in distinct(m.machine for m in measured) for row in _machine_rows(one)]
    for name in dict.fromkeys(m.condition.implementation for m in measured):
        every = distinct(m.versions for m in measured if m.condition.implementation == name and m.versions)
        rows += [(name, " ".join(f"{package} {version}" for package, version in one.items())) for one in every]
    rows.append(("code", ", ".join(sorted({m.commit for m in measured}))))
    frame = pd.DataFrame(rows, columns=["what", "it is"])
    return tables.html(frame, "The machine, and the versions of what was measured.")


def settings(report: Gathered) -> HTML:
    """What was in force in the workers, read back from the frameworks after the first step."""
    in_force: dict[tuple[str, str, str], dict[str, dict[str, None]]] = {}  # by subject, device and threads
    for m in report.measured:
        who = (m.condition.subject, m.condition.device, str(m.condition.threads or "all"))
        for name, value in m.settings.items():
            if value is not None and (text := _text(value)):
                in_force.setdefault(who, {}).setdefault(name, {})[text] = None
    if not in_force:
        return tables.bullets(["There are no measurements."])
    order = list(dict.fromkeys(name for m in report.measured for name in m.settings))
    rows = [
        (*who, "; ".join(f"{name} {', '.join(by_name[name])}" for name in order if name in by_name))
        for who, by_name in in_force.items()
    ]
    frame = pd.DataFrame(rows, columns=["subject", "device", "threads asked for", "settings"])
    return tables.html(frame, "Settings in force, read back from the frameworks after the first step.")


def listed(values: pd.Series) -> str:
    """What there is among some values, each once, in order."""
    return ", ".join(str(value) for value in sorted(set(values)))


def _machine_rows(described: dict[str, Any]) -> Iterator[tuple[str, str]]:
    names = {"memory_gib": "memory (GiB)", "huge_pages": "huge pages"}
    for name, value in described.items():
        if value not in (None, ""):
            yield names.get(name, name), _text(value)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)
