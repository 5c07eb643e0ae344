"""The workload ``lstm`` in TensorFlow."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import layers
from tensorflow import Tensor

from benchlib.workloads import Values
from benchlib.workloads._keras import LSTM, AdamW, built


class Bidirectional(layers.Layer):
    """A layer that reads (length, batch, inputs) in both directions: two of (length, batch, hidden).

    The way back begins at a sequence's own end. Tokens after the end are not used.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.ahead = LSTM(hidden)
        self.back = LSTM(hidden)

    def call(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        return self.ahead(x), reverse(self.back(reverse(x, lengths)), lengths)


class Model(keras.Model):
    """Tokens (batch, length), of which the first ``lengths`` (batch,) count, to logits (batch, classes)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.embedding = layers.Embedding(values["words"], values["embedding"])
        self.dropout1 = layers.Dropout(values["dropout"])
        self.layer1 = Bidirectional(values["hidden"])
        self.dropout2 = layers.Dropout(values["dropout"])
        self.layer2 = Bidirectional(values["hidden"])
        self.dropout3 = layers.Dropout(values["dropout"])
        self.dense = layers.Dense(values["classes"])

    def call(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        x = self.dropout1(self.embedding(tf.transpose(tokens)))  # (length, batch, embedding)
        x = self.dropout2(tf.concat(self.layer1(x, lengths), 2))  # (length, batch, 2 * hidden)
        ahead, back = self.layer2(x, lengths)  # (length, batch, hidden) each
        last = tf.gather_nd(ahead, tf.stack((lengths - 1, tf.range(tf.size(lengths))), 1))  # (batch, hidden)
        x = tf.concat((last, back[0]), 1)  # (batch, 2 * hidden): after the last token, and back at the first
        return self.dense(self.dropout3(x))  # (batch, classes)


def reverse(x: Tensor, lengths: Tensor) -> Tensor:
    """(length, batch, features) with the first ``lengths`` of each sequence in reverse order, the rest as it is."""
    return tf.reverse_sequence(x, lengths, seq_axis=0, batch_axis=1)


def build(values: Values) -> keras.Model:
    """The model with these hyperparameters."""
    return built(Model(values), keras.Input((values["length"],), dtype="int32"), keras.Input((), dtype="int32"))


def loss(model: keras.Model, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy of a batch: tokens, lengths and labels, all of dtype int32."""
    tokens, lengths, labels = batch
    logits = tf.cast(model(tokens, lengths, training=True), keras.config.floatx())
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


def optimizer(model: keras.Model, values: Values, learning_rate: float) -> keras.optimizers.Optimizer:
    """Adam: AdamW without decay."""
    return AdamW(learning_rate, epsilon=values["epsilon"])
