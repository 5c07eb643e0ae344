"""The workload ``batchnorm2d`` in Chainer."""

from __future__ import annotations

from chainer import links as L

from benchlib.workloads import Values


def build(values: Values) -> L.BatchNormalization:
    """The operator: (batch, channels, size, size) to the same shape."""
    return L.BatchNormalization(values["channels"], decay=1 - values["momentum"], eps=1e-5)
