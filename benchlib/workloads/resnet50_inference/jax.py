"""The workload ``resnet50_inference`` in JAX."""

from __future__ import annotations

from flax import nnx

from benchlib.workloads import Values
from benchlib.workloads.resnet50.jax import Model, identity


def build(values: Values) -> Model:
    """Images (batch, size, size, 3) to logits (batch, 10) or features (batch, 2048)."""
    model = Model(values, nnx.Rngs(0))
    if values["output"] == "features":
        model.dense = identity
    return model
