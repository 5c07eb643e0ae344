"""The workload ``seq2seq`` in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import Array

from benchlib.workloads import Values
from benchlib.workloads._flax import GRU


class Model(nnx.Module):
    """Source (batch, length) and the target so far (batch, length) to logits of each next word (batch, length, words).
    Of the source the first ``lengths`` (batch,) tokens count.
    """

    def __init__(self, values: Values, rngs: nnx.Rngs) -> None:
        embedding, hidden = values["embedding"], values["hidden"]
        self.source = nnx.Embed(values["words"], embedding, rngs=rngs)
        self.target = nnx.Embed(values["target_words"], embedding, rngs=rngs)
        self.encoder = GRU(embedding, hidden, rngs)
        self.decoder = GRU(embedding, hidden, rngs)
        self.attention = nnx.Linear(hidden, hidden, use_bias=False, rngs=rngs)
        self.combined = nnx.Linear(2 * hidden, hidden, rngs=rngs)
        self.dense = nnx.Linear(hidden, values["target_words"], rngs=rngs)
        self.dropout1 = nnx.Dropout(values["dropout"], rngs=rngs)
        self.dropout2 = nnx.Dropout(values["dropout"], rngs=rngs)
        self.dropout3 = nnx.Dropout(values["dropout"], rngs=rngs)

    def __call__(self, source: Array, lengths: Array, target: Array) -> Array:
        memory, state = self.encode(source, lengths)
        return self.decode(target, state, memory, source == 0)[0]

    def encode(self, source: Array, lengths: Array) -> tuple[Array, Array]:
        memory, _ = self.encoder(self.dropout1(self.source(source)))  # (batch, length, hidden)
        return memory, memory[jnp.arange(len(lengths)), lengths - 1]  # (batch, hidden): after the last word

    def decode(self, target: Array, state: Array, memory: Array, unseen: Array) -> tuple[Array, Array]:
        x, state = self.decoder(self.dropout2(self.target(target)), state)  # (batch, length, hidden)
        scores = self.attention(x) @ memory.swapaxes(1, 2)  # (batch, target's length, source's length)
        scores = jnp.where(unseen[:, None], jnp.finfo(scores.dtype).min, scores)
        looked_at = nnx.softmax(scores) @ memory  # (batch, length, hidden)
        x = jnp.tanh(self.combined(jnp.concatenate((looked_at, x), axis=2)))
        return self.dense(self.dropout3(x)), state  # (batch, length, words)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values, nnx.Rngs(0))


def loss(model: nnx.Module, batch: tuple[Array, ...]) -> Array:
    """Mean cross entropy of the words, those with label -1 left out; all arrays of dtype int32."""
    source, lengths, target, labels = batch
    logits = model(source, lengths, target).astype(float)
    entropies = optax.softmax_cross_entropy_with_integer_labels(logits, jnp.maximum(labels, 0))
    return entropies.mean(where=labels != -1)


def optimizer(values: Values, learning_rate: float) -> optax.GradientTransformation:
    """Adam, of gradients that are cut to the norm ``clip``."""
    return optax.chain(clip(values["clip"]), optax.adam(learning_rate, eps=values["epsilon"]))


def clip(greatest: float) -> optax.GradientTransformation:
    """Cut all gradients together to the norm ``greatest``, as PyTorch's ``clip_grad_norm_`` does."""

    def cut(gradients: optax.Updates, _: optax.Params | None) -> optax.Updates:
        factor = jnp.minimum(greatest / (optax.tree.norm(gradients) + 1e-6), 1.0)
        return jax.tree.map(lambda gradient: gradient * factor, gradients)

    return optax.stateless(cut)


def predict(model: Model, inputs: tuple[Array, ...]) -> Array:
    """The translation (batch, length), word by word, the likeliest each time; of the target only the start is read."""
    source, lengths, target = inputs
    memory, state = model.encode(source, lengths)

    def step(carry: tuple[Array, Array], _: None) -> tuple[tuple[Array, Array], Array]:
        logits, state = model.decode(carry[0], carry[1], memory, source == 0)
        word = logits.argmax(2).astype(target.dtype)  # (batch, 1)
        return (word, state), word[:, 0]

    _, words = jax.lax.scan(step, (target[:, :1], state), length=target.shape[1])  # (length, batch)
    return words.T
