"""The workload ``batchnorm2d`` in PyTorch."""

from __future__ import annotations

from torch import nn

from benchlib.workloads import Values


def build(values: Values) -> nn.BatchNorm2d:
    """The operator: (batch, channels, size, size) to the same shape."""
    return nn.BatchNorm2d(values["channels"], eps=1e-5, momentum=values["momentum"])
