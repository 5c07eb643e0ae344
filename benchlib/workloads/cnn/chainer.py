"""The workload ``cnn`` in Chainer."""

from __future__ import annotations

import chainer
import numpy as np
from chainer import Variable
from chainer import functions as F
from chainer import links as L

from benchlib.workloads import Values
from benchlib.workloads._chainer import dropout


class Model(chainer.Chain):
    """Images (batch, 3, size, size) to logits (batch, 10)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        side = values["image_size"] // 4
        self.conv_dropout, self.dense_dropout = values["conv_dropout"], values["dense_dropout"]
        with self.init_scope():
            self.conv1 = L.Convolution2D(3, 50, 3, pad=1)
            self.conv2 = L.Convolution2D(50, 50, 3, pad=1)
            self.conv3 = L.Convolution2D(50, 100, 3, pad=1)
            self.conv4 = L.Convolution2D(100, 100, 3, pad=1)
            self.dense1 = L.Linear(100 * side * side, 512)
            self.dense2 = L.Linear(512, 10)

    def forward(self, x: Variable) -> Variable:  # (batch, 3, size, size)
        x = self.conv2(F.relu(self.conv1(x)))  # (batch, 50, size, size)
        x = dropout(F.relu(pool(x)), self.conv_dropout)  # (batch, 50, size / 2, size / 2)
        x = self.conv4(F.relu(self.conv3(x)))  # (batch, 100, size / 2, size / 2)
        x = dropout(F.relu(pool(x)), self.conv_dropout)  # (batch, 100, size / 4, size / 4)
        x = dropout(F.relu(self.dense1(x)), self.dense_dropout)  # (batch, 512): a dense layer flattens
        return self.dense2(x)  # (batch, 10)


def pool(x: Variable) -> Variable:
    """The largest of four."""
    return F.max_pooling_2d(x, 2, stride=2, cover_all=False)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: chainer.Chain, batch: tuple[np.ndarray, np.ndarray]) -> Variable:
    """Mean cross entropy of a batch: images, and labels of dtype int32."""
    images, labels = batch
    return F.softmax_cross_entropy(model(images), labels)


def optimizer(model: chainer.Chain, values: Values, learning_rate: float) -> chainer.Optimizer:
    """Stochastic gradient descent with momentum."""
    return chainer.optimizers.MomentumSGD(lr=learning_rate, momentum=values["momentum"]).setup(model)
