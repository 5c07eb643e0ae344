"""The workload ``conv2d`` in TensorFlow."""

from __future__ import annotations

from benchlib.workloads import Values
from benchlib.workloads._keras import Conv2D


def build(values: Values) -> Conv2D:
    """The operator: (batch, size, size, in_channels) to (batch, size', size', out_channels)."""
    convolution = Conv2D(
        values["out_channels"],
        values["kernel"],
        pixels=values["padding"],
    )
    convolution.build((None, values["image_size"], values["image_size"], values["in_channels"]))
    return convolution
