"""The ledger of knobs: every setting outside the code that was set, for what, why, and what it does here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from benchlib import knobs
from benchlib.condition import implementation
from benchlib.environments import DEFAULT
from benchlib.suite import showing, tables
from benchlib.suite.report.gathered import Gathered

if TYPE_CHECKING:
    from IPython.display import HTML


def ledger(report: Gathered) -> HTML:
    """A row for each knob and its value; and what was left out of the workers' environments."""
    from IPython.display import HTML

    summaries = report.summaries.values()
    rows = [knob for summary in summaries for knob in summary["knobs"]]
    names = ["name", "value", "reason", "source", "framework", "environment", "device", "lane"]
    frame = pd.DataFrame(rows, columns=names).drop_duplicates()
    effects = [effect for summary in summaries for effect in summary.get("effects", [])]
    where = showing.implementations(frame) + " " + frame["lane"] + " " + frame["device"]
    frame["effect"] = [_effect(row, effects) for row in frame.to_dict("records")]
    frame["knob"] = frame["name"] + "\n" + frame["value"]
    frame["why"] = frame["reason"] + " (" + frame["source"] + ")"
    groups = frame.assign(where=where).groupby(["knob", "why"], sort=False)
    table = groups.agg(**{"set for": ("where", _lines), "measured effect": ("effect", _lines)}).reset_index()
    caption = (
        "Knobs set for the workers. Measured effect: throughput with the knob over throughput without it, from the "
        "notebook instrument, whose workload and batch size it is true of."
    )
    left_out = sorted({name for summary in summaries for name in summary.get("left_out", [])})
    note = f"Set in the shell, and left out of the workers' environments: {', '.join(left_out)}."
    shown = tables.html(table[["knob", "set for", "measured effect", "why"]], caption).data
    return HTML(shown + (tables.bullets([note]).data if left_out else ""))


def _effect(knob: dict[str, Any], effects: list[dict[str, Any]]) -> str:
    """What a knob of the ledger was measured to do: alone, or at least together with the rest of its lane."""
    when = {one.name: one.when for one in knobs.declared(knob["framework"])}.get(knob["name"])
    if when == knobs.GATE:
        return "none: nothing is timed in the gate"
    if when != knobs.TUNED:
        return "not measured: lanes do not differ in it"
    place = _place(knob)
    for name, words in ((knob["name"], ""), (None, ", with the rest of the lane")):
        mine = [one for one in effects if _place(one) == place and one["knob"] == name]
        if mine:
            return "; ".join(f"{place[0]} {one['mode']} {one['effect']}{words}" for one in mine)
    return f"{place[0]}: not measured in this profile"


def _place(row: dict[str, Any]) -> tuple[str, str]:
    """Where a knob is set, or has an effect."""
    return implementation(row["framework"], row.get("environment", DEFAULT)), row["device"]


def _lines(values: pd.Series) -> str:
    return "\n".join(dict.fromkeys(values))
