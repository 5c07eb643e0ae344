"""The workload ``resnet50`` in Chainer."""

from __future__ import annotations

import chainer
import numpy as np
from chainer import Variable
from chainer import functions as F
from chainer import links as L

from benchlib.workloads import Values
from benchlib.workloads.resnet50.workload import EXPANSION, STAGES


class Convolution(chainer.Chain):
    """A convolution without bias, and batch normalisation."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        with self.init_scope():
            self.conv = L.Convolution2D(inputs, outputs, kernel, stride, pad=kernel // 2, nobias=True)
            self.norm = L.BatchNormalization(outputs, eps=1e-5)

    def forward(self, x: Variable) -> Variable:
        return self.norm(self.conv(x))


class Block(chainer.Chain):
    """(batch, inputs, side, side) to (batch, 4 * width, side / stride, side / stride)."""

    def __init__(self, inputs: int, width: int, stride: int, first: bool) -> None:
        super().__init__()
        with self.init_scope():
            self.reduce = Convolution(inputs, width, 1)
            self.conv = Convolution(width, width, 3, stride)
            self.expand = Convolution(width, EXPANSION * width, 1)
            self.shortcut = Convolution(inputs, EXPANSION * width, 1, stride) if first else F.identity

    def forward(self, x: Variable) -> Variable:
        y = F.relu(self.reduce(x))
        y = F.relu(self.conv(y))
        return F.relu(self.expand(y) + self.shortcut(x))


class Stage(chainer.ChainList):
    """Blocks one behind the other. ``chainer.Sequential`` runs them so, too, but numbers them 0, 3, 2, 1."""

    def forward(self, x: Variable) -> Variable:
        for block in self:
            x = block(x)
        return x


class Model(chainer.Chain):
    """Images (batch, 3, size, size) to logits (batch, 10)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.small = values["stem"] == "3x3"
        with self.init_scope():
            self.stem = Convolution(3, 64, 3) if self.small else Convolution(3, 64, 7, stride=2)
            self.stage1, self.stage2, self.stage3, self.stage4 = _stages()
            self.dense = L.Linear(EXPANSION * STAGES[-1][1], 10)

    def forward(self, x: Variable) -> Variable:  # (batch, 3, size, size)
        x = F.relu(self.stem(x))
        if not self.small:
            x = F.max_pooling_2d(x, 3, stride=2, pad=1, cover_all=False)  # (batch, 64, size / 4, size / 4)
        x = self.stage2(self.stage1(x))  # (batch, 512, size / 8, size / 8)
        x = self.stage4(self.stage3(x))  # (batch, 2048, size / 32, size / 32)
        return self.dense(F.mean(x, axis=(2, 3)))  # (batch, 10)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: chainer.Chain, batch: tuple[np.ndarray, np.ndarray]) -> Variable:
    """Mean cross entropy of a batch: images, and labels of dtype int32."""
    images, labels = batch
    return F.softmax_cross_entropy(model(images), labels)


def optimizer(model: chainer.Chain, values: Values, learning_rate: float) -> chainer.Optimizer:
    """Stochastic gradient descent with momentum and a penalty on all weights."""
    found = chainer.optimizers.MomentumSGD(lr=learning_rate, momentum=values["momentum"]).setup(model)
    found.add_hook(chainer.optimizer_hooks.WeightDecay(values["weight_decay"]))
    return found


def _stages() -> list[Stage]:
    stages, inputs = [], 64
    for number, (blocks, width) in enumerate(STAGES):
        stage = [Block(inputs, width, 2 if number else 1, first=True)]
        inputs = EXPANSION * width
        stages.append(Stage(*stage, *(Block(inputs, width, 1, first=False) for _ in range(blocks - 1))))
    return stages
