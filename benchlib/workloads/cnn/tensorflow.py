"""The workload ``cnn`` in TensorFlow."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import layers
from tensorflow import Tensor

from benchlib.workloads import Values
from benchlib.workloads._keras import SGD, DenseOfImage, built


class Model(keras.Model):
    """Images (batch, size, size, 3) to logits (batch, 10)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        side = values["image_size"] // 4
        self.conv1 = layers.Conv2D(50, 3, padding="same")
        self.conv2 = layers.Conv2D(50, 3, padding="same")
        self.conv3 = layers.Conv2D(100, 3, padding="same")
        self.conv4 = layers.Conv2D(100, 3, padding="same")
        self.relu = layers.ReLU()
        self.pool = layers.MaxPooling2D(2)
        self.dropout1 = layers.Dropout(values["conv_dropout"])
        self.dropout2 = layers.Dropout(values["conv_dropout"])
        self.dropout3 = layers.Dropout(values["dense_dropout"])
        self.flatten = layers.Flatten()
        self.dense1 = DenseOfImage(512, (side, side, 100))
        self.dense2 = layers.Dense(10)

    def call(self, x: Tensor) -> Tensor:  # (batch, size, size, 3)
        x = self.conv2(self.relu(self.conv1(x)))  # (batch, size, size, 50)
        x = self.dropout1(self.relu(self.pool(x)))  # (batch, size / 2, size / 2, 50)
        x = self.conv4(self.relu(self.conv3(x)))  # (batch, size / 2, size / 2, 100)
        x = self.dropout2(self.relu(self.pool(x)))  # (batch, size / 4, size / 4, 100)
        x = self.dropout3(self.relu(self.dense1(self.flatten(x))))  # (batch, 512)
        return self.dense2(x)  # (batch, 10)


def build(values: Values) -> keras.Model:
    """The model with these hyperparameters."""
    return built(Model(values), keras.Input((values["image_size"], values["image_size"], 3)))


def loss(model: keras.Model, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean cross entropy of a batch: images, and labels of dtype int32."""
    images, labels = batch
    logits = tf.cast(model(images, training=True), keras.config.floatx())
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


def optimizer(model: keras.Model, values: Values, learning_rate: float) -> keras.optimizers.Optimizer:
    """Stochastic gradient descent with momentum."""
    return SGD(learning_rate, momentum=values["momentum"])
