"""The workload ``conv2d`` in PaddlePaddle."""

from __future__ import annotations

from paddle import nn

from benchlib.workloads import Values


def build(values: Values) -> nn.Conv2D:
    """The operator: (batch, in_channels, size, size) to (batch, out_channels, size', size')."""
    return nn.Conv2D(
        values["in_channels"],
        values["out_channels"],
        values["kernel"],
        padding=values["padding"],
    )
