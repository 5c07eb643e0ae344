"""The workload ``conv2d`` in Chainer."""

from __future__ import annotations

from chainer import links as L

from benchlib.workloads import Values


def build(values: Values) -> L.Convolution2D:
    """The operator: (batch, in_channels, size, size) to (batch, out_channels, size', size')."""
    return L.Convolution2D(
        values["in_channels"],
        values["out_channels"],
        values["kernel"],
        pad=values["padding"],
    )
