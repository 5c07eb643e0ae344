"""The workload ``batchnorm2d`` in JAX."""

from __future__ import annotations

from flax import nnx

from benchlib.workloads import Values
from benchlib.workloads._flax import BatchNorm


def build(values: Values) -> BatchNorm:
    """The operator: (batch, size, size, channels) to the same shape."""
    return BatchNorm(values["channels"], momentum=1 - values["momentum"], epsilon=1e-5, rngs=nnx.Rngs(0))
