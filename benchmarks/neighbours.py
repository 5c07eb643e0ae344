"""Comparisons such as a report has beside any one, to which they lend their variances: for other benchmarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchlib.condition import Condition
from benchlib.lab import Lab

TASKS: tuple[dict[str, Any], ...] = (
    {"workload": "cnn", "batch_size": 4, "hyperparameters": {"image_size": 8}},
    {"workload": "cnn", "batch_size": 128, "hyperparameters": {"image_size": 8}},
    {"workload": "lstm", "batch_size": 32, "hyperparameters": {"embedding": 32, "hidden": 48}},
    {"workload": "conv2d", "batch_size": 8, "hyperparameters": {}},
)
PILOT = {"precision": 0.99, "budget_s": 600.0, "block_s": 0.1, "pilot": 3}  # no more than that


def lend(lab: Lab, subjects: Sequence[Mapping[str, str]]) -> None:
    """Measure the pilots of comparisons of these subjects (framework, mode, lane), the first their baseline."""
    for task in TASKS:
        lab.compare([Condition(**task, **subject) for subject in subjects], **PILOT)
