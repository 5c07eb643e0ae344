"""The workload ``conv2d`` in JAX."""

from __future__ import annotations

from flax import nnx

from benchlib.workloads import Values


def build(values: Values) -> nnx.Conv:
    """The operator: (batch, size, size, in_channels) to (batch, size', size', out_channels)."""
    return nnx.Conv(
        values["in_channels"],
        values["out_channels"],
        (values["kernel"], values["kernel"]),
        padding=values["padding"],
        rngs=nnx.Rngs(0),
    )
