"""The workload ``gru`` in TensorFlow."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import layers
from tensorflow import Tensor

from benchlib.workloads import Values
from benchlib.workloads._keras import GRU, AdamW, built


class Model(keras.Model):
    """Tokens (batch, length) to logits (batch, classes)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.embedding = layers.Embedding(values["words"], values["embedding"])
        self.gru = GRU(values["hidden"])
        self.dense = layers.Dense(values["classes"])

    def call(self, tokens: Tensor) -> Tensor:  # (batch, length)
        x = self.embedding(tokens)  # (batch, length, embedding)
        _, last = self.gru(x)  # (batch, hidden): the state after the last token
        return self.dense(last)  # (batch, classes)


def build(values: Values) -> keras.Model:
    """The model with these hyperparameters."""
    return built(Model(values), keras.Input((values["length"],), dtype="int32"))


def loss(model: keras.Model, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean cross entropy of a batch: tokens and labels, both of dtype int32."""
    tokens, labels = batch
    logits = tf.cast(model(tokens, training=True), keras.config.floatx())
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


def optimizer(model: keras.Model, values: Values, learning_rate: float) -> keras.optimizers.Optimizer:
    """Adam: AdamW without decay."""
    return AdamW(learning_rate, epsilon=values["epsilon"])
