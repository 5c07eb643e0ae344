"""The workload ``resnet50_inference`` in Theano; the model is here, for there is no ``resnet50`` that trains."""

from __future__ import annotations

from theano.tensor import TensorVariable
from theano.tensor.nnet import relu
from theano.tensor.signal.pool import pool_2d

from benchlib.workloads import Values
from benchlib.workloads import _theano as layers
from benchlib.workloads._theano import BatchNorm, Dense, Layer
from benchlib.workloads.resnet50.workload import EXPANSION, STAGES


class Convolution(Layer):
    """A convolution without bias, and batch normalisation."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        self.conv = layers.Convolution(inputs, outputs, kernel, stride, bias=False)
        self.norm = BatchNorm(outputs)

    def forward(self, x: TensorVariable) -> TensorVariable:
        return self.norm(self.conv(x))


class Block(Layer):
    """(batch, inputs, side, side) to (batch, 4 * width, side / stride, side / stride)."""

    def __init__(self, inputs: int, width: int, stride: int, first: bool) -> None:
        self.reduce = Convolution(inputs, width, 1)
        self.conv = Convolution(width, width, 3, stride)
        self.expand = Convolution(width, EXPANSION * width, 1)
        self.shortcut = Convolution(inputs, EXPANSION * width, 1, stride) if first else None

    def forward(self, x: TensorVariable) -> TensorVariable:
        y = relu(self.reduce(x))
        y = relu(self.conv(y))
        return relu(self.expand(y) + (self.shortcut(x) if self.shortcut else x))


class Model(Layer):
    """Images (batch, 3, size, size) to logits (batch, 10) or features (batch, 2048)."""

    def __init__(self, values: Values) -> None:
        self.small = values["stem"] == "3x3"
        self.stem = Convolution(3, 64, 3) if self.small else Convolution(3, 64, 7, stride=2)
        self.stage1, self.stage2, self.stage3, self.stage4 = _stages()
        self.dense = Dense(EXPANSION * STAGES[-1][1], 10) if values["output"] == "logits" else None

    def forward(self, x: TensorVariable, training: bool) -> TensorVariable:  # (batch, 3, size, size)
        x = relu(self.stem(x))
        if not self.small:
            x = pool_2d(x, (3, 3), ignore_border=True, stride=(2, 2), pad=(1, 1))  # (batch, 64, size / 4, size / 4)
        for block in [*self.stage1, *self.stage2, *self.stage3, *self.stage4]:
            x = block(x)  # at last (batch, 2048, size / 32, size / 32)
        x = x.mean((2, 3))
        return self.dense(x) if self.dense else x


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def _stages() -> list[list[Block]]:
    stages, inputs = [], 64
    for number, (blocks, width) in enumerate(STAGES):
        stage = [Block(inputs, width, 2 if number else 1, first=True)]
        inputs = EXPANSION * width
        stages.append([*stage, *(Block(inputs, width, 1, first=False) for _ in range(blocks - 1))])
    return stages
