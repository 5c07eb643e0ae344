"""The workload ``bert`` in JAX."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import Array

from benchlib.workloads import Values
from benchlib.workloads.bert.workload import EPSILON


class Layer(nnx.Module):
    """A transformer layer: (batch, length, hidden) to the same; ``unseen`` (batch, 1, 1, length) marks padding."""

    def __init__(self, values: Values, rngs: nnx.Rngs) -> None:
        hidden, inner = values["hidden"], values["intermediate"]
        self.heads = values["heads"]
        self.scale = 1 / math.sqrt(hidden // values["heads"])
        self.qkv = nnx.Linear(hidden, 3 * hidden, rngs=rngs)
        self.mixed = nnx.Linear(hidden, hidden, rngs=rngs)
        self.norm1 = nnx.LayerNorm(hidden, epsilon=EPSILON, rngs=rngs)
        self.inner = nnx.Linear(hidden, inner, rngs=rngs)
        self.outer = nnx.Linear(inner, hidden, rngs=rngs)
        self.norm2 = nnx.LayerNorm(hidden, epsilon=EPSILON, rngs=rngs)
        self.dropout1 = nnx.Dropout(values["dropout"], rngs=rngs)
        self.dropout2 = nnx.Dropout(values["dropout"], rngs=rngs)
        self.dropout3 = nnx.Dropout(values["dropout"], rngs=rngs)

    def __call__(self, x: Array, unseen: Array) -> Array:
        x = self.norm1(x + self.dropout2(self.attention(x, unseen)))
        return self.norm2(x + self.dropout3(self.outer(gelu(self.inner(x)))))

    def attention(self, x: Array, unseen: Array) -> Array:
        batch, length, hidden = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, hidden // self.heads)
        q, k, v = qkv[:, :, 0], qkv[:, :, 1], qkv[:, :, 2]  # (batch, length, heads, hidden / heads) each
        scores = jnp.einsum("bqhd,bkhd->bhqk", q * self.scale, k)  # (batch, heads, length, length)
        scores = jnp.where(unseen, jnp.finfo(scores.dtype).min, scores)
        x = jnp.einsum("bhqk,bkhd->bqhd", self.dropout1(nnx.softmax(scores)), v)
        return self.mixed(x.reshape(batch, length, hidden))


class Model(nnx.Module):
    """Tokens and segments (batch, length), and places of masked words (batch, masked), to logits of these words
    (batch, masked, words). Also to logits of whether the second sentence follows the first (batch, 2).
    """

    def __init__(self, values: Values, rngs: nnx.Rngs) -> None:
        hidden = values["hidden"]
        self.words = nnx.Embed(values["words"], hidden, rngs=rngs)
        self.places = nnx.Embed(values["length"], hidden, rngs=rngs)
        self.segments = nnx.Embed(2, hidden, rngs=rngs)
        self.norm = nnx.LayerNorm(hidden, epsilon=EPSILON, rngs=rngs)
        self.dropout = nnx.Dropout(values["dropout"], rngs=rngs)
        self.layers = nnx.List([Layer(values, rngs) for _ in range(values["layers"])])
        self.guess = nnx.Linear(hidden, hidden, rngs=rngs)
        self.guess_norm = nnx.LayerNorm(hidden, epsilon=EPSILON, rngs=rngs)
        self.guess_bias = nnx.Param(jnp.zeros((values["words"],)))
        self.pool = nnx.Linear(hidden, hidden, rngs=rngs)
        self.follows = nnx.Linear(hidden, 2, rngs=rngs)

    def __call__(self, tokens: Array, segments: Array, places: Array) -> tuple[Array, Array]:
        unseen = (tokens == 0)[:, None, None, :]  # (batch, 1, 1, length)
        x = self.words(tokens) + self.places.embedding[...] + self.segments(segments)
        x = self.dropout(self.norm(x))  # (batch, length, hidden)
        for layer in self.layers:
            x = layer(x, unseen)
        masked = jnp.take_along_axis(x, places[:, :, None], axis=1)  # (batch, masked, hidden)
        masked = self.guess_norm(gelu(self.guess(masked)))
        words = self.words.attend(masked) + self.guess_bias[...]  # (batch, masked, words)
        return words, self.follows(jnp.tanh(self.pool(x[:, 0])))


def gelu(x: Array) -> Array:
    """The exact form, with the error function."""
    return nnx.gelu(x, approximate=False)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values, nnx.Rngs(0))


def loss(model: nnx.Module, batch: tuple[Array, ...]) -> Array:
    """Mean cross entropy of the masked words, those with label -1 left out, and that of the next sentence: their sum.
    All arrays of dtype int32.
    """
    tokens, segments, places, follows, labels = batch
    words, next_sentence = (logits.astype(float) for logits in model(tokens, segments, places))
    of_words = optax.softmax_cross_entropy_with_integer_labels(words, jnp.maximum(labels, 0))
    of_sentences = optax.softmax_cross_entropy_with_integer_labels(next_sentence, follows)
    return of_words.mean(where=labels != -1) + of_sentences.mean()


def optimizer(values: Values, learning_rate: float) -> optax.GradientTransformation:
    """AdamW, with decay of matrices only; the learning rate rises linearly for ``warm_up`` steps, then stays."""
    steps = values["warm_up"]
    rate = optax.linear_schedule(learning_rate / steps, learning_rate, steps - 1)
    return optax.adamw(
        lambda count: rate(count.astype(float)),  # an int32 would make it a float32 in fp64, too
        eps=values["epsilon"],
        weight_decay=values["weight_decay"],
        mask=lambda weights: jax.tree.map(lambda weight: weight.ndim > 1, weights),
    )
