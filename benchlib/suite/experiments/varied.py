"""The figure of ratios against a size, of which one thing is varied at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from benchlib.plotting import Ratios, Value, figures
from benchlib.plotting.style import subject_looks
from benchlib.tables import Measured

VARIED = {
    "batch_size": "batch size",
    "in_channels": "input channels",
    "in_features": "input channels",
    "channels": "input channels",
    "out_channels": "output channels",
    "out_features": "output channels",
}
"""What was varied, in words that operators share."""


def sizes_of(row: pd.Series) -> dict[str, Any]:
    """The batch size and the hyperparameters of a row."""
    return {"batch_size": row["batch_size"], **json.loads(row["hyperparameters"])}


@dataclass(frozen=True, kw_only=True)
class Varied(Ratios):
    """The ratios once for each thing varied that they belong to: the base size belongs to all of its operator."""

    bases: Sequence[tuple[str, Mapping[str, Any], Sequence[str]]]  # workload, its sizes, the names of what is varied
    hue: Value = "series"  # who is compared, and what was varied, where that is not the same for all

    def source(self, result: Measured) -> pd.DataFrame:
        rows, parts = super().source(result), []
        for workload, base, every in self.bases:
            for varied in every:
                own = [
                    row["workload"] == workload
                    and all(sizes_of(row).get(name) == value for name, value in base.items() if name != varied)
                    for _, row in rows.iterrows()
                ]
                parts.append(rows[own].assign(varied=VARIED.get(varied, varied.replace("_", " "))))
        every = pd.concat(parts)
        if every.empty:  # then it has no columns either
            return every
        apart = ", " + every["varied"] + " varied" if every["varied"].nunique() > 1 else ""
        return every.assign(series=every["subject"] + apart)


def looks(rows: pd.DataFrame) -> dict[str, figures.Look]:
    """Colour and marker say who, everywhere the same; the line, where several things were varied, which."""
    drawn = rows[["hue", "subject", "varied"]].drop_duplicates()
    by_subject = subject_looks(rows.assign(hue=rows["subject"]))
    by_varied = figures.looks(drawn["varied"])
    made = {}
    for _, row in drawn.iterrows():
        own, what = by_subject[row["subject"]], by_varied[row["varied"]]
        made[row["hue"]] = replace(own, line=what.line) if len(by_varied) > 1 else own
    return made
