"""The workload ``googlenet`` in PaddlePaddle."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from benchlib.workloads import Values
from benchlib.workloads.googlenet.workload import BEFORE, BLOCKS, outputs


class Convolution(nn.Layer):
    """A convolution without bias, batch normalisation and ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2D(inputs, outputs, kernel, stride, padding=kernel // 2, bias_attr=False)
        self.norm = nn.BatchNorm2D(outputs)
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.relu(self.norm(self.conv(x)))


class Block(nn.Layer):
    """Four ways side by side: (batch, inputs, side, side) to (batch, sum of the ways' channels, side, side)."""

    def __init__(self, inputs: int, one: int, three: tuple[int, int], five: tuple[int, int], pooled: int) -> None:
        super().__init__()
        self.one = Convolution(inputs, one, 1)
        self.reduce3 = Convolution(inputs, three[0], 1)
        self.three = Convolution(*three, 3)
        self.reduce5 = Convolution(inputs, five[0], 1)
        self.five = Convolution(*five, 5)
        self.pool = nn.MaxPool2D(3, stride=1, padding=1)
        self.pooled = Convolution(inputs, pooled, 1)

    def forward(self, x: Tensor) -> Tensor:
        ways = (self.one(x), self.three(self.reduce3(x)), self.five(self.reduce5(x)), self.pooled(self.pool(x)))
        return paddle.concat(ways, 1)


class Model(nn.Layer):
    """Images (batch, 3, size, size) to logits (batch, 10)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.conv1 = Convolution(3, 64, 7, stride=2)
        self.conv2 = Convolution(64, 64, 1)
        self.conv3 = Convolution(64, BEFORE, 3)
        self.pool = nn.MaxPool2D(3, stride=2, padding=1)
        inputs = BEFORE
        for name, ways in BLOCKS.items():
            self.add_sublayer(name, Block(inputs, *ways))
            inputs = outputs(name)
        self.dropout = nn.Dropout(values["dropout"])
        self.dense = nn.Linear(inputs, 10)

    def forward(self, x: Tensor) -> Tensor:  # (batch, 3, size, size)
        x = self.pool(self.conv1(x))  # (batch, 64, size / 4, size / 4)
        x = self.pool(self.conv3(self.conv2(x)))  # (batch, 192, size / 8, size / 8)
        x = self.pool(self.block3b(self.block3a(x)))  # (batch, 480, size / 16, size / 16)
        x = self.block4e(self.block4d(self.block4c(self.block4b(self.block4a(x)))))
        x = self.block5b(self.block5a(self.pool(x)))  # (batch, 1024, size / 32, size / 32)
        return self.dense(self.dropout(x.mean((2, 3))))  # (batch, 10)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: nn.Layer, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean cross entropy of a batch: images, and labels of dtype int64. Paddle's own cuts that of a sample at 64."""
    images, labels = batch
    logits = model(images)  # (batch, 10)
    return (paddle.logsumexp(logits, 1) - logits.take_along_axis(labels.unsqueeze(1), 1).squeeze(1)).mean()


def optimizer(model: nn.Layer, values: Values, learning_rate: float) -> paddle.optimizer.Optimizer:
    """Stochastic gradient descent with momentum and a penalty on all weights."""
    return paddle.optimizer.Momentum(
        learning_rate, values["momentum"], parameters=model.parameters(), weight_decay=values["weight_decay"]
    )
