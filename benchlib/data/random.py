"""Random numbers, for operators: each batch is drawn, and nothing is read."""

from __future__ import annotations

from benchlib.data import DataSet

DATA_SET = DataSet(
    "random numbers",
    "random: inputs and output gradients drawn from a seeded generator; there is nothing to learn and no accuracy.",
    None,
)
