"""How training losses in mixed precision differ from those in fp32: rows of the frame, table, figure and findings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pandas as pd

from benchlib.plotting import Curves, Picture, naming
from benchlib.stats import derived_ratios
from benchlib.stats.training_runs import TrainingRuns
from benchlib.suite.experiments.result import Result
from benchlib.tables import Column, Table, interval_text


def rows(runs: TrainingRuns) -> list[dict[str, Any]]:
    """Of each condition in mixed precision, relative to the same in fp32."""
    pairs = [(one, one.but(precision="fp32")) for one in runs.conditions if one.precision != "fp32"]
    return [derived_ratios.loss_ratio(runs, one, exact) for one, exact in pairs if exact in runs.conditions]


NONE_DIVERGED = "none"


def _diverged(row: pd.Series) -> str:
    """How many of how many runs diverged, in words."""
    if row["diverged"] == 0:
        return NONE_DIVERGED
    first = f"first in epoch {row['diverged_lowest']:.0f}"
    return f"{row['diverged']:.0f} of {row['diverged_processes']} seeds ({first})"


TABLE = Table(
    "Training loss of the last epoch, its ratio to that of the same framework and mode in fp32 within "
    "seeds, and the first epoch's time over the geometric mean of the others', with the compilation: "
    "means over seeds, with 95 % intervals. A run diverged if the loss of an epoch is not finite: its "
    "losses are in none of the means.",
    "final_loss",
    (
        *("task", "subject", Column("epochs_trained", "epochs"), Column("loss", "final_loss")),
        *(Column("diverged", _diverged), Column("runs", "processes")),
        *(Column("first_epoch", "first_epoch_ratio"), "loss_ratio"),
    ),
)
PICTURE = Picture(
    caption="Training loss by epoch in each precision: lines are means over seeds, bands go from the lowest to "
    "the highest.",
    panels=[Curves(y="loss", ylabel="training loss", hue="precision")],
    each=lambda row: f"{row['task']}\n{naming.implementation_of(row)} {row['mode']} {row['lane']}",
    columns=3,
)


def findings(result: Result) -> Iterator[str]:
    """How mixed precision's losses differ from those of fp32, and what diverged."""
    ratios = result.rows("loss_ratio")
    for task, known in ratios[ratios["estimate"].notna()].groupby("task", sort=False):
        each = "; ".join(f"{row['subject']} {interval_text(row, of_ratio=True)}" for _, row in known.iterrows())
        epochs = known["epochs"].iloc[0]
        yield f"{task}, training loss after {epochs} epochs relative to fp32 from the same seeds: {each}."
    runs = result.rows("diverged")
    for _, row in runs[runs["estimate"] > 0].iterrows():
        yield f"{row['task']}: {row['subject']} diverged in {_diverged(row)}."
