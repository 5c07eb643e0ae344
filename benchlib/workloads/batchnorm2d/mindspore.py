"""The workload ``batchnorm2d`` in MindSpore."""

from __future__ import annotations

from mindspore import nn

from benchlib.workloads import Values


def build(values: Values) -> nn.BatchNorm2d:
    """The operator: (batch, channels, size, size) to the same shape."""
    return nn.BatchNorm2d(values["channels"], eps=1e-5, momentum=1 - values["momentum"])
