"""The workload ``batchnorm2d`` in TensorFlow."""

from __future__ import annotations

from benchlib.workloads import Values
from benchlib.workloads._keras import BatchNormalization


def build(values: Values) -> BatchNormalization:
    """The operator: (batch, size, size, channels) to the same shape."""
    norm = BatchNormalization(momentum=1 - values["momentum"], epsilon=1e-5)
    norm.build((None, values["image_size"], values["image_size"], values["channels"]))
    return norm
