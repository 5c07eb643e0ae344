"""The workload ``conv2d`` in PyTorch."""

from __future__ import annotations

from torch import nn

from benchlib.workloads import Values


def build(values: Values) -> nn.Conv2d:
    """The operator: (batch, in_channels, size, size) to (batch, out_channels, size', size')."""
    return nn.Conv2d(
        values["in_channels"],
        values["out_channels"],
        values["kernel"],
        padding=values["padding"],
    )
