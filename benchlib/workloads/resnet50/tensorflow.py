"""The workload ``resnet50`` in TensorFlow."""

from __future__ import annotations

import keras
import tensorflow as tf
from keras import layers
from tensorflow import Tensor

from benchlib.workloads import Values
from benchlib.workloads._keras import SGD, BatchNormalization, Conv2D, built
from benchlib.workloads.resnet50.workload import EXPANSION, STAGES


class Convolution(layers.Layer):
    """A convolution without bias, and batch normalisation."""

    def __init__(self, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = Conv2D(outputs, kernel, stride, pixels=kernel // 2, use_bias=False)
        self.norm = BatchNormalization(momentum=0.9, epsilon=1e-5)

    def call(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))


class Block(layers.Layer):
    """(batch, side, side, inputs) to (batch, side / stride, side / stride, 4 * width)."""

    def __init__(self, width: int, stride: int, first: bool) -> None:
        super().__init__()
        self.reduce = Convolution(width, 1)
        self.conv = Convolution(width, 3, stride)
        self.expand = Convolution(EXPANSION * width, 1)
        self.shortcut = Convolution(EXPANSION * width, 1, stride) if first else layers.Identity()
        self.relu = layers.ReLU()

    def call(self, x: Tensor) -> Tensor:
        y = self.relu(self.reduce(x))
        y = self.relu(self.conv(y))
        return self.relu(self.expand(y) + self.shortcut(x))


class Model(keras.Model):
    """Images (batch, size, size, 3) to logits (batch, 10)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        small = values["stem"] == "3x3"
        self.stem = Convolution(64, 3) if small else Convolution(64, 7, stride=2)
        self.relu = layers.ReLU()
        self.around = layers.Identity() if small else layers.ZeroPadding2D(1)
        self.pool = layers.Identity() if small else layers.MaxPooling2D(3, strides=2)
        self.stage1, self.stage2, self.stage3, self.stage4 = _stages()
        self.dense = layers.Dense(10)

    def call(self, x: Tensor) -> Tensor:  # (batch, size, size, 3)
        x = self.pool(self.around(self.relu(self.stem(x))))  # (batch, size / 4, size / 4, 64)
        for block in (*self.stage1, *self.stage2, *self.stage3, *self.stage4):
            x = block(x)  # at last (batch, size / 32, size / 32, 2048)
        return self.dense(tf.reduce_mean(x, (1, 2)))  # (batch, 10)


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


def _stages() -> list[list[Block]]:
    return [
        [Block(width, 2 if number and not block else 1, first=not block) for block in range(blocks)]
        for number, (blocks, width) in enumerate(STAGES)
    ]
