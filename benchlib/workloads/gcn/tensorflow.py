"""The workload ``gcn`` in TensorFlow."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import layers
from tensorflow import Tensor

from benchlib.workloads import Values
from benchlib.workloads._keras import AdamW, built, raw


class Convolution(layers.Layer):
    """Node features (nodes, inputs) to (nodes, outputs): transformed, then summed over each node's neighbours."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.linear = layers.Dense(outputs, use_bias=False)
        self.bias = self.add_weight(name="bias", shape=(outputs,), initializer="zeros")

    def call(self, x: Tensor, sources: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        x = self.linear(x)  # (nodes, outputs)
        messages = tf.gather(x, sources) * weights[:, None]  # (edges, outputs)
        return tf.math.unsorted_segment_sum(messages, targets, tf.shape(x)[0]) + self.bias  # (nodes, outputs)


class Model(keras.Model):
    """A graph as a batch of one: features (1, nodes, features), edges (1, edges, 2) and weights (1, edges), to logits
    (1, nodes, classes).
    """

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.conv1 = Convolution(values["hidden"])
        self.conv2 = Convolution(values["classes"])
        self.relu = layers.ReLU()
        self.dropout1 = layers.Dropout(values["dropout"])
        self.penalty = values["weight_decay"]
        self.dropout2 = layers.Dropout(values["dropout"])

    def call(self, features: Tensor, edges: Tensor, weights: Tensor) -> Tensor:
        sources, targets = edges[0, :, 0], edges[0, :, 1]  # (edges,) each
        x = self.dropout1(features[0])  # (nodes, features)
        x = self.relu(self.conv1(x, sources, targets, weights[0]))  # (nodes, hidden)
        x = self.conv2(self.dropout2(x), sources, targets, weights[0])  # (nodes, classes)
        return x[None]  # (1, nodes, classes)


def build(values: Values) -> keras.Model:
    """The model with these hyperparameters."""
    features = keras.Input((None, values["features"]), batch_size=1)
    edges, weights = keras.Input((None, 2), batch_size=1, dtype="int32"), keras.Input((None,), batch_size=1)
    return built(Model(values), features, edges, weights)


def loss(model: Model, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy over the nodes whose label is not -1, and the penalty on the first layer; labels (1, nodes) of
    dtype int32.
    """
    features, edges, weights, labels = batch
    logits = tf.cast(model(features, edges, weights, training=True), keras.config.floatx())
    entropies = tf.nn.sparse_softmax_cross_entropy_with_logits(tf.maximum(labels, 0), logits)
    counted = tf.cast(labels != -1, keras.config.floatx())
    entropy = tf.reduce_sum(entropies * counted) / tf.reduce_sum(counted)
    return entropy + model.penalty / 2 * sum(
        tf.reduce_sum(tf.square(raw(weight))) for weight in model.conv1.trainable_variables
    )


def optimizer(model: keras.Model, values: Values, learning_rate: float) -> keras.optimizers.Optimizer:
    """Adam: AdamW without decay."""
    return AdamW(learning_rate, epsilon=values["epsilon"])
