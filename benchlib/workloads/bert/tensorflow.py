"""The workload ``bert`` in TensorFlow."""

from __future__ import annotations

import math

import keras
import tensorflow as tf
from keras import layers
from tensorflow import Tensor

from benchlib.workloads import Values
from benchlib.workloads._keras import AdamW, built, gelu
from benchlib.workloads.bert.workload import EPSILON


class Layer(layers.Layer):
    """A transformer layer: (batch, length, hidden) to the same; ``unseen`` (batch, 1, 1, length) marks padding."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        hidden, inner = values["hidden"], values["intermediate"]
        self.heads = values["heads"]
        self.scale = 1 / math.sqrt(hidden // values["heads"])
        self.qkv = layers.Dense(3 * hidden)
        self.mixed = layers.Dense(hidden)
        self.norm1 = layers.LayerNormalization(epsilon=EPSILON)
        self.inner = layers.Dense(inner)
        self.outer = layers.Dense(hidden)
        self.norm2 = layers.LayerNormalization(epsilon=EPSILON)
        self.dropout1 = layers.Dropout(values["dropout"])
        self.dropout2 = layers.Dropout(values["dropout"])
        self.dropout3 = layers.Dropout(values["dropout"])

    def call(self, x: Tensor, unseen: Tensor) -> Tensor:
        x = self.norm1(x + self.dropout2(self.attention(x, unseen)))
        return self.norm2(x + self.dropout3(self.outer(gelu(self.inner(x)))))

    def attention(self, x: Tensor, unseen: Tensor) -> Tensor:
        _, length, hidden = x.shape
        qkv = tf.reshape(self.qkv(x), (-1, length, 3, self.heads, hidden // self.heads))
        q, k, v = tf.unstack(tf.transpose(qkv, (2, 0, 3, 1, 4)))  # (batch, heads, length, hidden / heads) each
        scores = tf.matmul(q * self.scale, k, transpose_b=True)  # (batch, heads, length, length)
        scores = tf.where(unseen, scores.dtype.min, scores)
        x = tf.matmul(self.dropout1(tf.nn.softmax(scores)), v)
        return self.mixed(tf.reshape(tf.transpose(x, (0, 2, 1, 3)), (-1, length, hidden)))


class Model(keras.Model):
    """Tokens and segments (batch, length), and places of masked words (batch, masked), to logits of these words
    (batch, masked, words). Also to logits of whether the second sentence follows the first (batch, 2).
    """

    def __init__(self, values: Values) -> None:
        super().__init__()
        hidden = values["hidden"]
        self.words = layers.Embedding(values["words"], hidden)
        self.places = layers.Embedding(values["length"], hidden)
        self.segments = layers.Embedding(2, hidden)
        self.norm = layers.LayerNormalization(epsilon=EPSILON)
        self.dropout = layers.Dropout(values["dropout"])
        self.layers_ = [Layer(values) for _ in range(values["layers"])]
        self.guess = layers.Dense(hidden)
        self.guess_norm = layers.LayerNormalization(epsilon=EPSILON)
        self.guess_bias = self.add_weight(name="guess_bias", shape=(values["words"],), initializer="zeros")
        self.pool = layers.Dense(hidden, activation="tanh")
        self.follows = layers.Dense(2)

    def call(self, tokens: Tensor, segments: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        unseen = (tokens == 0)[:, None, None, :]  # (batch, 1, 1, length)
        x = self.words(tokens) + self.places(tf.range(tokens.shape[1])) + self.segments(segments)
        x = self.dropout(self.norm(x))  # (batch, length, hidden)
        for layer in self.layers_:
            x = layer(x, unseen)
        masked = tf.gather(x, places, axis=1, batch_dims=1)  # (batch, masked, hidden)
        masked = self.guess_norm(gelu(self.guess(masked)))
        words = tf.tensordot(masked, self.words.embeddings, [[2], [1]]) + self.guess_bias  # (batch, masked, words)
        return words, self.follows(self.pool(x[:, 0]))


class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    """A learning rate that rises linearly for so many steps, then stays."""

    def __init__(self, learning_rate: float, steps: int) -> None:
        self.learning_rate, self.steps = learning_rate, steps

    def __call__(self, step: Tensor) -> Tensor:  # from 0
        return self.learning_rate * tf.minimum((tf.cast(step, keras.config.floatx()) + 1) / self.steps, 1.0)


def build(values: Values) -> keras.Model:
    """The model with these hyperparameters."""
    tokens = keras.Input((values["length"],), dtype="int32")
    return built(Model(values), tokens, tokens, keras.Input((values["masked"],), dtype="int32"))


def loss(model: keras.Model, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy of the masked words, those with label -1 left out, and that of the next sentence: their sum.
    All arrays of dtype int32.
    """
    tokens, segments, places, follows, labels = batch
    dtype = keras.config.floatx()
    words, next_sentence = (tf.cast(logits, dtype) for logits in model(tokens, segments, places, training=True))
    of_words = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(labels, 0), words)
    of_sentences = tf.nn.sparse_softmax_cross_entropy_with_logits(follows, next_sentence)
    counted = tf.cast(labels != -1, dtype)
    return tf.reduce_sum(of_words * counted) / tf.reduce_sum(counted) + tf.reduce_mean(of_sentences)


def optimizer(model: keras.Model, values: Values, learning_rate: float) -> keras.optimizers.Optimizer:
    """AdamW, with decay of matrices only; the learning rate rises linearly for ``warm_up`` steps, then stays."""
    adamw = AdamW(WarmUp(learning_rate, values["warm_up"]), values["epsilon"], weight_decay=values["weight_decay"])
    adamw.exclude_from_weight_decay([weight for weight in model.trainable_variables if len(weight.shape) == 1])
    return adamw
