"""The workload ``batchnorm2d`` in MXNet."""

from __future__ import annotations

from mxnet.gluon import nn

from benchlib.workloads import Values


def build(values: Values) -> nn.BatchNorm:
    """The operator: (batch, channels, size, size) to the same shape."""
    return nn.BatchNorm(epsilon=1e-5, momentum=1 - values["momentum"], in_channels=values["channels"])
