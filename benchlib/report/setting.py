"""On which machine, with which versions, knobs and settings it was measured, and under which keys it is kept."""

from __future__ import annotations

from typing import Any

import pandas as pd
from IPython.display import HTML

from benchlib import tables, workloads
from benchlib.cache import frame
from benchlib.plotting import naming
from benchlib.report.load import Results, join_distinct


def places(results: Results) -> list[str]:
    """Return each host that something was measured on, in a line."""
    return [*dict.fromkeys(f"{m.machine.get('host', 'a host')}: {_place(m.machine)}" for m in results.measured)]


def machine(results: Results) -> HTML:
    """Show the machines, the measured versions, and the sources of the workloads."""
    named = naming.implementations((m.condition.framework, m.condition.environment) for m in results.measured)
    rows: dict[tuple[str, str], None] = {}
    for one in results.measured:
        rows |= {(name.replace("_", " "), _text(value)): None for name, value in one.machine.items()}
    for one in results.measured:
        packages = ", ".join(f"{package} {version}" for package, version in one.versions.items())
        rows[naming.spelled(named[one.condition.framework, one.condition.environment]), packages] = None
    rows["benchlib", join_distinct(sorted({m.commit for m in results.measured}))] = None
    shown = pd.DataFrame([row for row in rows if row[1]], columns=["what", "it is"])
    used = (workloads.load(name) for name in dict.fromkeys(one.workload for one in results.conditions))
    sources = tables.bullets(f"{one.name}: {one.source}." for one in used)
    return HTML(tables.html(shown, "The machine, and the measured versions.").data + sources.data)


def settings(results: Results) -> HTML:
    """Show the settings in force in the workers, read back from the frameworks after the last step."""
    named = naming.subjects(m.condition for m in results.measured)
    rows: dict[tuple[str, str, str], dict[str, None]] = {}  # by subject, device and threads
    for m in results.measured:
        who = (naming.spelled(named[m.condition]), m.condition.device, str(m.condition.threads or "all"))
        settings_text = (f"{name} {_text(value)}" for name, value in m.settings.items() if value is not None)
        rows.setdefault(who, {}).update(dict.fromkeys(settings_text))
    columns = ["subject", "device", "threads asked for", "settings"]
    shown = pd.DataFrame([(*who, "; ".join(each)) for who, each in rows.items()], columns=columns)
    return tables.html(shown, "Settings in force, read back from the frameworks after the last step.")


def keys(results: Results) -> HTML:
    """Show each comparison and training run with the key of its measurements; write the table of all processes."""
    measured = frame(results.measured)
    if not len(measured):
        return tables.bullets(["There are no measurements."])
    measured.to_csv(results.folder / "tables" / "measurements.csv", index=False)
    groups = measured.groupby(["kind", "group"], sort=False)
    columns = {"conditions": groups["label"].agg(lambda of: join_distinct(of, " | ")), "processes": groups.size()}
    columns["seeds"] = groups["seed"].agg(lambda seeds: join_distinct(sorted(seeds)))
    caption = "All measurements of this report; tables/measurements.csv has a row for each process."
    return tables.html(pd.DataFrame(columns).reset_index(), caption)


def _place(of: dict[str, Any]) -> str:
    virtual = " (virtual)" if of.get("virtual") else ""
    quota = f" under a CPU quota of {of['cpu_quota']:g}" if of.get("cpu_quota") else ""
    memory = f", {of['memory_gib']:g} GiB" if of.get("memory_gib") else ""
    devices = ", ".join([*(of.get("gpus") or []), *(of.get("npus") or [])]) or "no accelerator"
    return f"{of['cores']} cores of {of['cpu']}{virtual}{quota}{memory}; {devices}"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)
