"""The workload ``gru_library`` in JAX: ``nnx.RNN`` of an ``nnx.GRUCell``, with loss and optimizer of ``gru``."""

from __future__ import annotations

from flax import nnx
from jax import Array

from benchlib.workloads import Values
from benchlib.workloads.gru.jax import loss, optimizer

__all__ = ["build", "loss", "optimizer"]


class Model(nnx.Module):
    """Tokens (batch, length) to logits (batch, classes)."""

    def __init__(self, values: Values, rngs: nnx.Rngs) -> None:
        self.embedding = nnx.Embed(values["words"], values["embedding"], rngs=rngs)
        self.gru = nnx.RNN(nnx.GRUCell(values["embedding"], values["hidden"], rngs=rngs), return_carry=True)
        self.dense = nnx.Linear(values["hidden"], values["classes"], rngs=rngs)

    def __call__(self, tokens: Array) -> Array:  # (batch, length)
        last, _ = self.gru(self.embedding(tokens))
        return self.dense(last)  # (batch, classes)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values, nnx.Rngs(0))
