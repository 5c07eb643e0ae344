"""The workload ``gru`` in JAX."""

from __future__ import annotations

import optax
from flax import nnx
from jax import Array

from benchlib.workloads import Values
from benchlib.workloads._flax import GRU


class Model(nnx.Module):
    """Tokens (batch, length) to logits (batch, classes)."""

    def __init__(self, values: Values, rngs: nnx.Rngs) -> None:
        self.embedding = nnx.Embed(values["words"], values["embedding"], rngs=rngs)
        self.gru = GRU(values["embedding"], values["hidden"], rngs)
        self.dense = nnx.Linear(values["hidden"], values["classes"], rngs=rngs)

    def __call__(self, tokens: Array) -> Array:  # (batch, length)
        x = self.embedding(tokens)  # (batch, length, embedding)
        _, last = self.gru(x)  # (batch, hidden): the state after the last token
        return self.dense(last)  # (batch, classes)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values, nnx.Rngs(0))


def loss(model: nnx.Module, batch: tuple[Array, Array]) -> Array:
    """Mean cross entropy of a batch: tokens and labels, both of dtype int32."""
    tokens, labels = batch
    logits = model(tokens).astype(float)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def optimizer(values: Values, learning_rate: float) -> optax.GradientTransformation:
    """Adam."""
    return optax.adam(learning_rate, eps=values["epsilon"])
