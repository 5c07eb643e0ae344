"""The workload ``googlenet`` in TensorFlow."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import layers
from tensorflow import Tensor

from benchlib.workloads import Values
from benchlib.workloads._keras import SGD, BatchNormalization, Conv2D, built
from benchlib.workloads.googlenet.workload import BEFORE, BLOCKS


class Convolution(layers.Layer):
    """A convolution without bias, batch normalisation and ReLU."""

    def __init__(self, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = Conv2D(outputs, kernel, stride, pixels=kernel // 2, use_bias=False)
        self.norm = BatchNormalization(momentum=0.9, epsilon=1e-5)
        self.relu = layers.ReLU()

    def call(self, x: Tensor) -> Tensor:
        return self.relu(self.norm(self.conv(x)))


class Block(layers.Layer):
    """Four ways side by side: (batch, side, side, inputs) to (batch, side, side, sum of the ways' channels)."""

    def __init__(self, one: int, three: tuple[int, int], five: tuple[int, int], pooled: int) -> None:
        super().__init__()
        self.one = Convolution(one, 1)
        self.reduce3 = Convolution(three[0], 1)
        self.three = Convolution(three[1], 3)
        self.reduce5 = Convolution(five[0], 1)
        self.five = Convolution(five[1], 5)
        self.pool = layers.MaxPooling2D(3, strides=1, padding="same")
        self.pooled = Convolution(pooled, 1)

    def call(self, x: Tensor) -> Tensor:
        ways = (self.one(x), self.three(self.reduce3(x)), self.five(self.reduce5(x)), self.pooled(self.pool(x)))
        return tf.concat(ways, 3)


class Model(keras.Model):
    """Images (batch, size, size, 3) to logits (batch, 10)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.conv1 = Convolution(64, 7, stride=2)
        self.conv2 = Convolution(64, 1)
        self.conv3 = Convolution(BEFORE, 3)
        self.around = layers.ZeroPadding2D(1)
        self.pool = layers.MaxPooling2D(3, strides=2)
        for name, ways in BLOCKS.items():
            setattr(self, name, Block(*ways))
        self.dropout = layers.Dropout(values["dropout"])
        self.dense = layers.Dense(10)

    def call(self, x: Tensor) -> Tensor:  # (batch, size, size, 3)
        x = self.pool(self.around(self.conv1(x)))  # (batch, size / 4, size / 4, 64)
        x = self.pool(self.around(self.conv3(self.conv2(x))))  # (batch, size / 8, size / 8, 192)
        x = self.pool(self.around(self.block3b(self.block3a(x))))  # (batch, size / 16, size / 16, 480)
        x = self.block4e(self.block4d(self.block4c(self.block4b(self.block4a(x)))))
        x = self.block5b(self.block5a(self.pool(self.around(x))))  # (batch, size / 32, size / 32, 1024)
        return self.dense(self.dropout(tf.reduce_mean(x, (1, 2))))  # (batch, 10)


def build(values: Values) -> keras.Model:
    """The model with these hyperparameters."""
    return built(Model(values), keras.Input((values["image_size"], values["image_size"], 3)))


def loss(model: keras.Model, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean cross entropy of a batch: images, and labels of dtype int32."""
    images, labels = batch
    logits = tf.cast(model(images, training=True), keras.config.floatx())
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))


def optimizer(model: keras.Model, values: Values, learning_rate: float) -> keras.optimizers.Optimizer:
    """Stochastic gradient descent with momentum and a penalty on all weights."""
    return SGD(learning_rate, momentum=values["momentum"], penalty=values["weight_decay"])
