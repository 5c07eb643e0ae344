"""The workload ``googlenet`` in MXNet."""

from __future__ import annotations

from types import ModuleType

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn
from mxnet.ndarray import NDArray

from benchlib.workloads import Values
from benchlib.workloads.googlenet.workload import BEFORE, BLOCKS, outputs


class Convolution(HybridBlock):
    """A convolution without bias, batch normalisation and ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2D(outputs, kernel, stride, padding=kernel // 2, use_bias=False, in_channels=inputs)
        self.norm = nn.BatchNorm(in_channels=outputs)
        self.relu = nn.Activation("relu")

    def hybrid_forward(self, F: ModuleType, x: NDArray) -> NDArray:
        return self.relu(self.norm(self.conv(x)))


class Block(HybridBlock):
    """Four ways side by side: (batch, inputs, side, side) to (batch, sum of the ways' channels, side, side)."""

    def __init__(self, inputs: int, one: int, three: tuple[int, int], five: tuple[int, int], pooled: int) -> None:
        super().__init__()
        self.one = Convolution(inputs, one, 1)
        self.reduce3 = Convolution(inputs, three[0], 1)
        self.three = Convolution(*three, 3)
        self.reduce5 = Convolution(inputs, five[0], 1)
        self.five = Convolution(*five, 5)
        self.pool = nn.MaxPool2D(3, strides=1, padding=1)
        self.pooled = Convolution(inputs, pooled, 1)

    def hybrid_forward(self, F: ModuleType, x: NDArray) -> NDArray:
        ways = (self.one(x), self.three(self.reduce3(x)), self.five(self.reduce5(x)), self.pooled(self.pool(x)))
        return F.concat(*ways, dim=1)


class Model(HybridBlock):
    """Images (batch, 3, size, size) to logits (batch, 10)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.conv1 = Convolution(3, 64, 7, stride=2)
        self.conv2 = Convolution(64, 64, 1)
        self.conv3 = Convolution(64, BEFORE, 3)
        self.pool = nn.MaxPool2D(3, strides=2, padding=1)
        inputs = BEFORE
        for name, ways in BLOCKS.items():
            setattr(self, name, Block(inputs, *ways))
            inputs = outputs(name)
        self.mean = nn.GlobalAvgPool2D()
        self.flatten = nn.Flatten()
        self.dropout = nn.Dropout(values["dropout"])
        self.dense = nn.Dense(10, in_units=inputs)

    def hybrid_forward(self, F: ModuleType, x: NDArray) -> NDArray:  # (batch, 3, size, size)
        x = self.pool(self.conv1(x))  # (batch, 64, size / 4, size / 4)
        x = self.pool(self.conv3(self.conv2(x)))  # (batch, 192, size / 8, size / 8)
        x = self.pool(self.block3b(self.block3a(x)))  # (batch, 480, size / 16, size / 16)
        x = self.block4e(self.block4d(self.block4c(self.block4b(self.block4a(x)))))
        x = self.block5b(self.block5a(self.pool(x)))  # (batch, 1024, size / 32, size / 32)
        return self.dense(self.dropout(self.flatten(self.mean(x))))  # (batch, 10)


cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: HybridBlock, batch: tuple[NDArray, NDArray]) -> NDArray:
    """Mean cross entropy of a batch: images, and labels of dtype int32."""
    images, labels = batch
    return cross_entropy(model(images), labels).mean()


def optimizer(model: HybridBlock, values: Values, learning_rate: float) -> gluon.Trainer:
    """Stochastic gradient descent with momentum and a penalty on all weights."""
    settings = {"learning_rate": learning_rate, "momentum": values["momentum"], "wd": values["weight_decay"]}
    return gluon.Trainer(model.collect_params(), "sgd", settings, kvstore=None)
