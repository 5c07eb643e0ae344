"""What was compared, on which machine, with which versions, knobs and settings in force."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd
from IPython.display import HTML

from benchlib import tables, workloads
from benchlib.condition import Condition
from benchlib.environments import DEFAULT
from benchlib.plotting import naming
from benchlib.provenance import knobs
from benchlib.store import Measurement
from benchlib.suite.report.gathered import Gathered, distinct

PLACE = ("cpu", "cores", "cpu_quota", "gpus", "npus")
"""What tells one machine from another."""


def compared(report: Gathered) -> HTML:
    """A row for each notebook, workload, subject and device: at which batch sizes."""
    named = naming.subjects(report.conditions)
    rows = [
        {
            **condition,
            "notebook": notebook,
            "subject": named[Condition(**condition)],
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
    for home, name in naming.implementations(map(_home, measured)).items():
        every = distinct(m.versions for m in measured if _home(m) == home and m.versions)
        rows += [(name, " ".join(f"{package} {version}" for package, version in one.items())) for one in every]
    rows.append(("code", ", ".join(sorted({m.commit for m in measured}))))
    frame = pd.DataFrame(rows, columns=["what", "it is"])
    return tables.html(frame, "The machine, and the versions of what was measured.")


def settings(report: Gathered) -> HTML:
    """What was in force in the workers, read back from the frameworks after the first step."""
    in_force: dict[tuple[str, str, str], dict[str, dict[str, None]]] = {}  # by subject, device and threads
    named = naming.subjects(m.condition for m in report.measured)
    for m in report.measured:
        who = (named[m.condition], m.condition.device, str(m.condition.threads or "all"))
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


def ledger(report: Gathered) -> HTML:
    """Every knob that was set, for what, why, and what it does here; what was left out of the workers' environments."""
    summaries = report.summaries.values()
    rows = [knob for summary in summaries for knob in summary["knobs"]]
    names = ["name", "value", "reason", "source", "framework", "environment", "device", "lane"]
    frame = pd.DataFrame(rows, columns=names).drop_duplicates()
    effects = [effect for summary in summaries for effect in summary.get("effects", [])]
    homes = list(zip(frame["framework"], frame["environment"], strict=True))
    frame["who"] = pd.Series(map(naming.implementations(homes).get, homes), frame.index, dtype=object)
    frame["effect"] = [_effect(row, effects) for row in frame.to_dict("records")]
    frame["knob"] = frame["name"] + "\n" + frame["value"]
    frame["why"] = frame["reason"] + " (" + frame["source"] + ")"
    rows = [
        {"knob": knob, "set for": _set_for(of), "measured effect": _effects(of), "why": why}
        for (knob, why), of in frame.groupby(["knob", "why"], sort=False)
    ]
    table = pd.DataFrame(rows, columns=["knob", "set for", "measured effect", "why"])
    caption = (
        "Knobs set for the workers. Measured effect: throughput with the knob over throughput without it, from the "
        "notebook instrument, whose workload and batch size it is true of."
    )
    left_out = sorted({name for summary in summaries for name in summary.get("left_out", [])})
    note = f"Set in the shell, and left out of the workers' environments: {', '.join(left_out)}."
    shown = tables.html(table, caption).data
    return HTML(shown + (tables.bullets([note]).data if left_out else ""))


def place(machine: dict[str, Any]) -> str:
    """A machine in a line."""
    virtual = " (virtual)" if machine.get("virtual") else ""
    quota = f" under a CPU quota of {machine['cpu_quota']:g}" if machine.get("cpu_quota") else ""
    memory = f", {machine['memory_gib']:g} GiB" if machine.get("memory_gib") else ""
    accelerators = [*(machine.get("gpus") or []), *(machine.get("npus") or [])]
    host = f"{machine['cores']} cores of {machine['cpu']}{virtual}{quota}{memory}"
    return f"{host}; {', '.join(accelerators) or 'no accelerator'}"


def listed(values: pd.Series) -> str:
    """What there is among some values, each once, in order."""
    return ", ".join(str(value) for value in sorted(set(values)))


def _machine_rows(described: dict[str, Any]) -> Iterator[tuple[str, str]]:
    names = {"cpu_quota": "CPU quota (cores)", "memory_gib": "memory (GiB)", "huge_pages": "huge pages"}
    for name, value in described.items():
        if value not in (None, ""):
            yield names.get(name, name), _text(value)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _set_for(rows: pd.DataFrame) -> str:
    """In which lanes and on which devices a knob is set, and of whom."""
    lanes = rows.groupby(["who", "device"], sort=False)["lane"].agg(lambda of: " and ".join(sorted(set(of))))
    whose: dict[str, list[str]] = {}
    for (who, device), lane in lanes.items():
        whose.setdefault(f"{lane}, {device}", []).append(who)
    return "\n".join(f"{where}: {', '.join(whos)}" for where, whos in whose.items())


def _effects(rows: pd.DataFrame) -> str:
    """What a knob was measured to do, and of whom it was not measured."""
    known = [*dict.fromkeys(rows["effect"].dropna())]
    unknown = ", ".join(dict.fromkeys(rows.loc[rows["effect"].isna(), "who"]))
    return "\n".join([*known, *([f"{unknown}: not measured in this profile"] if unknown else [])])


def _effect(knob: dict[str, Any], effects: list[dict[str, Any]]) -> str | None:
    """What a knob of the ledger was measured to do: alone, or at least together with the rest of its lane; None if it
    was not.
    """
    when = {one.name: one.when for one in knobs.declared(knob["framework"])}.get(knob["name"])
    if when == knobs.GATE:
        return "none: nothing is timed in the gate"
    if when != knobs.TUNED:
        return "not measured: lanes do not differ in it"
    place = _place(knob)
    for name, words in ((knob["name"], ""), (None, ", with the rest of the lane")):
        mine = [one for one in effects if _place(one) == place and one["knob"] == name]
        if mine:
            return "; ".join(f"{knob['who']} {one['mode']} {one['effect']}{words}" for one in mine)
    return None


def _place(row: dict[str, Any]) -> tuple[str, str, str]:
    """Where a knob is set, or has an effect."""
    return row["framework"], row.get("environment", DEFAULT), row["device"]


def _home(one: Measurement) -> tuple[str, str]:
    return one.condition.framework, one.condition.environment
