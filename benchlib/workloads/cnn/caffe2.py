"""The workload ``cnn`` in Caffe2."""

from __future__ import annotations

from caffe2.python import brew
from caffe2.python.core import BlobReference
from caffe2.python.model_helper import ModelHelper
from caffe2.python.optimizer import SgdOptimizer

from benchlib.workloads import Values
from benchlib.workloads._caffe2 import cross_entropy, dropout


class Model:
    """Images (batch, 3, size, size) to logits (batch, 10)."""

    def __init__(self, values: Values) -> None:
        self.side = values["image_size"] // 4
        self.conv_dropout, self.dense_dropout = values["conv_dropout"], values["dense_dropout"]

    def __call__(self, net: ModelHelper, x: BlobReference, training: bool) -> BlobReference:  # (batch, 3, size, size)
        x = brew.conv(net, x, "conv1", 3, 50, kernel=3, pad=1, no_gradient_to_input=True)
        x = brew.conv(net, brew.relu(net, x, x), "conv2", 50, 50, kernel=3, pad=1)  # (batch, 50, size, size)
        x = brew.relu(net, brew.max_pool(net, x, "pool1", kernel=2, stride=2), "relu2")
        x = dropout(net, x, self.conv_dropout, training)  # (batch, 50, size / 2, size / 2)
        x = brew.conv(net, x, "conv3", 50, 100, kernel=3, pad=1)
        x = brew.conv(net, brew.relu(net, x, x), "conv4", 100, 100, kernel=3, pad=1)
        x = brew.relu(net, brew.max_pool(net, x, "pool2", kernel=2, stride=2), "relu4")
        x = dropout(net, x, self.conv_dropout, training)  # (batch, 100, size / 4, size / 4)
        x = brew.fc(net, x, "dense1", 100 * self.side * self.side, 512)  # (batch, 512)
        x = dropout(net, brew.relu(net, x, x), self.dense_dropout, training)
        return brew.fc(net, x, "dense2", 512, 10)  # (batch, 10)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(net: ModelHelper, model: Model, batch: tuple[BlobReference, BlobReference]) -> BlobReference:
    """Mean cross entropy of a batch: images, and labels of dtype int32."""
    images, labels = batch
    return cross_entropy(net, model(net, images, True), labels)


def optimizer(values: Values, learning_rate: float) -> SgdOptimizer:
    """Stochastic gradient descent with momentum."""
    return SgdOptimizer(learning_rate, momentum=values["momentum"], nesterov=False)
