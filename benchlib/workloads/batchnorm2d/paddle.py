"""The workload ``batchnorm2d`` in PaddlePaddle."""

from __future__ import annotations

from paddle import nn

from benchlib.workloads import Values


def build(values: Values) -> nn.BatchNorm2D:
    """The operator: (batch, channels, size, size) to the same shape."""
    return nn.BatchNorm2D(values["channels"], 1 - values["momentum"], 1e-5)
