"""What training takes by learning rate: to the threshold, and for an epoch."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from benchlib import tables
from benchlib.suite.experiments.result import Result
from benchlib.tables import Column, Table


def thresholds(threshold: str) -> Table:
    """What it took to a threshold, which is said in words."""
    return Table(
        f"To {threshold}: medians over seeds, with runs that did not reach it as the longest.",
        "epochs_to_threshold",
        (
            *("subject", "learning_rate"),
            Column("reached", lambda row: f"{row['processes']} of {row['runs']}"),
            *("epochs_to_threshold", "seconds_to_threshold"),
            Column("epochs_longest", lambda row: int(row["epochs_longest"])),
            *("epoch_s", Column("times_left_out", _left_out)),
        ),
    )


def _left_out(row: pd.Series) -> str | None:
    """Of how many runs the times do not count."""
    return f"{row['left_out']} of {row['runs']} (disturbed)" if row["left_out"] else None


def threshold_findings(result: Result, threshold: str) -> Iterator[str]:
    """Which runs reached the threshold, and how fast."""
    for who, rows in result.rows("epochs_to_threshold").groupby("subject", sort=False):
        rows = rows.sort_values("learning_rate")
        each = "; ".join(f"{row['learning_rate']:g}: {_reached(row)}" for _, row in rows.iterrows())
        yield f"{who}, to {threshold} (median over seeds, without compilation), by learning rate: {each}."


def _reached(row: pd.Series) -> str:
    if row["failed"] == row["runs"]:
        return "every run failed"
    note = f", {row['failed']} failed" if row["failed"] else ""
    note += f", times left out: {lost}" if (lost := _left_out(row)) else ""
    reached = f"{row['processes']} of {row['runs']} runs{note}"
    if pd.isna(row["estimate"]):
        return f"not reached in {row['epochs_longest']:g} epochs ({reached} did)"
    seconds = f", {tables.number(row['seconds_to_threshold'])} s" if pd.notna(row["seconds_to_threshold"]) else ""
    return f"{row['estimate']:g} epochs{seconds} ({reached})"


def epoch_findings(result: Result) -> Iterator[str]:
    """How epoch times differ."""
    for who, rows in result.rows("epoch_s").groupby("subject", sort=False):
        means = rows["estimate"].dropna()
        fast, slow = (tables.number(end) for end in (means.min(), means.max()))
        if not len(means):
            yield f"{who}: no epoch was timed{' that was not disturbed' if rows['left_out'].any() else ''}."
        elif len(means) == 1:
            yield f"{who}: an epoch takes {fast} s."
        else:
            spread = (rows["highest"] / rows["lowest"]).max()
            same = f"; runs with the same rate are up to {100 * (spread - 1):.0f} % apart" if spread > 1 else ""
            apart = f"{100 * (means.max() / means.min() - 1):.0f} % apart"
            yield f"{who}: an epoch takes {fast} to {slow} s over the learning rates, {apart}{same}."
