"""The workload ``linear`` in JAX."""

from __future__ import annotations

from flax import nnx

from benchlib.workloads import Values


def build(values: Values) -> nnx.Linear:
    """The operator: (batch, in_features) to (batch, out_features)."""
    return nnx.Linear(values["in_features"], values["out_features"], rngs=nnx.Rngs(0))
