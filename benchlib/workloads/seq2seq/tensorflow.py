"""The workload ``seq2seq`` in TensorFlow."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import layers
from tensorflow import Tensor

from benchlib.workloads import Values
from benchlib.workloads._keras import GRU, AdamW, built


class Model(keras.Model):
    """Source (batch, length) and the target so far (batch, length) to logits of each next word (batch, length, words).
    Of the source the first ``lengths`` (batch,) tokens count.
    """

    def __init__(self, values: Values) -> None:
        super().__init__()
        embedding, hidden = values["embedding"], values["hidden"]
        self.source = layers.Embedding(values["words"], embedding)
        self.target = layers.Embedding(values["target_words"], embedding)
        self.encoder = GRU(hidden)
        self.decoder = GRU(hidden)
        self.attention = layers.Dense(hidden, use_bias=False)
        self.combined = layers.Dense(hidden, activation="tanh")
        self.dense = layers.Dense(values["target_words"])
        self.dropout1 = layers.Dropout(values["dropout"])
        self.dropout2 = layers.Dropout(values["dropout"])
        self.dropout3 = layers.Dropout(values["dropout"])

    def call(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        memory, state = self.encode(source, lengths)
        return self.decode(target, state, memory, source == 0)[0]

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        memory, _ = self.encoder(self.dropout1(self.source(source)))  # (batch, length, hidden)
        return memory, tf.gather(memory, lengths - 1, axis=1, batch_dims=1)  # (batch, hidden): after the last word

    def decode(self, target: Tensor, state: Tensor, memory: Tensor, unseen: Tensor) -> tuple[Tensor, Tensor]:
        x, state = self.decoder(self.dropout2(self.target(target)), state)  # (batch, length, hidden)
        scores = tf.matmul(self.attention(x), memory, transpose_b=True)  # (batch, target's length, source's length)
        scores = tf.where(unseen[:, None], scores.dtype.min, scores)
        looked_at = tf.nn.softmax(scores) @ memory  # (batch, length, hidden)
        x = self.combined(tf.concat((looked_at, x), 2))
        return self.dense(self.dropout3(x)), state  # (batch, length, words)


def build(values: Values) -> keras.Model:
    """The model with these hyperparameters."""
    words, lengths = keras.Input((values["length"],), dtype="int32"), keras.Input((), dtype="int32")
    return built(Model(values), words, lengths, words)


def loss(model: keras.Model, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy of the words, those with label -1 left out; all arrays of dtype int32."""
    source, lengths, target, labels = batch
    logits = tf.cast(model(source, lengths, target, training=True), keras.config.floatx())
    entropies = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(labels, 0), logits)
    counted = tf.cast(labels != -1, keras.config.floatx())
    return tf.reduce_sum(entropies * counted) / tf.reduce_sum(counted)


def optimizer(model: keras.Model, values: Values, learning_rate: float) -> keras.optimizers.Optimizer:
    """Adam (AdamW without decay), of gradients that are cut to the norm ``clip``."""
    return AdamW(learning_rate, epsilon=values["epsilon"], global_clipnorm=values["clip"])


def predict(model: Model, inputs: tuple[Tensor, ...]) -> Tensor:
    """The translation (batch, length), word by word, the likeliest each time; of the target only the start is read."""
    source, lengths, target = inputs
    memory, state = model.encode(source, lengths)

    def step(before: tuple[Tensor, Tensor], _: Tensor) -> tuple[Tensor, Tensor]:
        word, state = before
        logits, state = model.decode(word, state, memory, source == 0)
        return tf.argmax(logits, 2, word.dtype), state  # (batch, 1)

    words, _ = tf.scan(step, tf.range(target.shape[1]), (target[:, :1], state))  # (length, batch, 1)
    return tf.transpose(words[:, :, 0])
