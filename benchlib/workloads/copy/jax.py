"""The workload ``copy`` in JAX."""

from __future__ import annotations

from flax import nnx
from jax import Array

from benchlib.workloads import Values


class Copy(nnx.Module):
    """An array (batch, elements) to a new one with the same numbers."""

    def __call__(self, x: Array) -> Array:
        return x.copy()


def build(values: Values) -> Copy:
    """The operator: (batch, elements) to (batch, elements)."""
    return Copy()
