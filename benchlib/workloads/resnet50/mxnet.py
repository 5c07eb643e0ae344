"""The workload ``resnet50`` in MXNet."""

from __future__ import annotations

from types import ModuleType

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn
from mxnet.ndarray import NDArray

from benchlib.workloads import Values
from benchlib.workloads.resnet50.workload import EXPANSION, STAGES


class Convolution(HybridBlock):
    """A convolution without bias, and batch normalisation."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2D(outputs, kernel, stride, padding=kernel // 2, use_bias=False, in_channels=inputs)
        self.norm = nn.BatchNorm(in_channels=outputs)

    def hybrid_forward(self, F: ModuleType, x: NDArray) -> NDArray:
        return self.norm(self.conv(x))


class Block(HybridBlock):
    """(batch, inputs, side, side) to (batch, 4 * width, side / stride, side / stride)."""

    def __init__(self, inputs: int, width: int, stride: int, first: bool) -> None:
        super().__init__()
        self.reduce = Convolution(inputs, width, 1)
        self.conv = Convolution(width, width, 3, stride)
        self.expand = Convolution(width, EXPANSION * width, 1)
        self.shortcut = Convolution(inputs, EXPANSION * width, 1, stride) if first else nn.HybridSequential()
        self.relu = nn.Activation("relu")

    def hybrid_forward(self, F: ModuleType, x: NDArray) -> NDArray:
        y = self.relu(self.reduce(x))
        y = self.relu(self.conv(y))
        return self.relu(self.expand(y) + self.shortcut(x))


class Model(HybridBlock):
    """Images (batch, 3, size, size) to logits (batch, 10)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        small = values["stem"] == "3x3"
        self.stem = Convolution(3, 64, 3) if small else Convolution(3, 64, 7, stride=2)
        self.relu = nn.Activation("relu")
        self.pool = nn.HybridSequential() if small else nn.MaxPool2D(3, strides=2, padding=1)
        self.stage1, self.stage2, self.stage3, self.stage4 = _stages()
        self.mean = nn.GlobalAvgPool2D()
        self.flatten = nn.Flatten()
        self.dense = nn.Dense(10, in_units=EXPANSION * STAGES[-1][1])

    def hybrid_forward(self, F: ModuleType, x: NDArray) -> NDArray:  # (batch, 3, size, size)
        x = self.pool(self.relu(self.stem(x)))  # (batch, 64, size / 4, size / 4)
        x = self.stage2(self.stage1(x))  # (batch, 512, size / 8, size / 8)
        x = self.stage4(self.stage3(x))  # (batch, 2048, size / 32, size / 32)
        return self.dense(self.flatten(self.mean(x)))  # (batch, 10)


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


def _stages() -> list[nn.HybridSequential]:
    stages, inputs = [], 64
    for number, (blocks, width) in enumerate(STAGES):
        stage = nn.HybridSequential()
        stage.add(Block(inputs, width, 2 if number else 1, first=True))
        inputs = EXPANSION * width
        stage.add(*(Block(inputs, width, 1, first=False) for _ in range(blocks - 1)))
        stages.append(stage)
    return stages
