"""The workload ``lstm`` in JAX."""

from __future__ import annotations

import jax.numpy as jnp
import optax
from flax import nnx
from jax import Array

from benchlib.workloads import Values
from benchlib.workloads._flax import LSTM


class Bidirectional(nnx.Module):
    """A layer that reads (length, batch, inputs) in both directions: two of (length, batch, hidden).

    The way back begins at a sequence's own end. Tokens after the end are not used.
    """

    def __init__(self, inputs: int, hidden: int, rngs: nnx.Rngs) -> None:
        self.ahead = LSTM(inputs, hidden, rngs)
        self.back = LSTM(inputs, hidden, rngs)

    def __call__(self, x: Array, lengths: Array) -> tuple[Array, Array]:
        return self.ahead(x), reverse(self.back(reverse(x, lengths)), lengths)


class Model(nnx.Module):
    """Tokens (batch, length), of which the first ``lengths`` (batch,) count, to logits (batch, classes)."""

    def __init__(self, values: Values, rngs: nnx.Rngs) -> None:
        self.embedding = nnx.Embed(values["words"], values["embedding"], rngs=rngs)
        self.dropout1 = nnx.Dropout(values["dropout"], rngs=rngs)
        self.layer1 = Bidirectional(values["embedding"], values["hidden"], rngs)
        self.dropout2 = nnx.Dropout(values["dropout"], rngs=rngs)
        self.layer2 = Bidirectional(2 * values["hidden"], values["hidden"], rngs)
        self.dropout3 = nnx.Dropout(values["dropout"], rngs=rngs)
        self.dense = nnx.Linear(2 * values["hidden"], values["classes"], rngs=rngs)

    def __call__(self, tokens: Array, lengths: Array) -> Array:
        x = self.dropout1(self.embedding(tokens.T))  # (length, batch, embedding)
        x = self.dropout2(jnp.concatenate(self.layer1(x, lengths), axis=2))  # (length, batch, 2 * hidden)
        ahead, back = self.layer2(x, lengths)  # (length, batch, hidden) each
        last = ahead[lengths - 1, jnp.arange(len(lengths))]  # (batch, hidden)
        x = jnp.concatenate((last, back[0]), axis=1)  # (batch, 2 * hidden): after the last token, and back at the first
        return self.dense(self.dropout3(x))  # (batch, classes)


def reverse(x: Array, lengths: Array) -> Array:
    """(length, batch, features) with the first ``lengths`` of each sequence in reverse order, the rest as it is."""
    places = jnp.arange(len(x))[:, None]  # (length, 1)
    places = jnp.where(places < lengths, lengths - 1 - places, places)  # (length, batch)
    return jnp.take_along_axis(x, places[:, :, None], axis=0)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values, nnx.Rngs(0))


def loss(model: nnx.Module, batch: tuple[Array, ...]) -> Array:
    """Mean cross entropy of a batch: tokens, lengths and labels, all of dtype int32."""
    tokens, lengths, labels = batch
    logits = model(tokens, lengths).astype(float)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def optimizer(values: Values, learning_rate: float) -> optax.GradientTransformation:
    """Adam."""
    return optax.adam(learning_rate, eps=values["epsilon"])
