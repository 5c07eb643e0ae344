"""The workload ``resnet50`` in PaddlePaddle."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from benchlib.workloads import Values
from benchlib.workloads.resnet50.workload import EXPANSION, STAGES


class Convolution(nn.Layer):
    """A convolution without bias, and batch normalisation."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2D(inputs, outputs, kernel, stride, padding=kernel // 2, bias_attr=False)
        self.norm = nn.BatchNorm2D(outputs)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(x))


class Block(nn.Layer):
    """(batch, inputs, side, side) to (batch, 4 * width, side / stride, side / stride)."""

    def __init__(self, inputs: int, width: int, stride: int, first: bool) -> None:
        super().__init__()
        self.reduce = Convolution(inputs, width, 1)
        self.conv = Convolution(width, width, 3, stride)
        self.expand = Convolution(width, EXPANSION * width, 1)
        self.shortcut = Convolution(inputs, EXPANSION * width, 1, stride) if first else nn.Identity()
        self.relu = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.reduce(x))
        y = self.relu(self.conv(y))
        return self.relu(self.expand(y) + self.shortcut(x))


class Model(nn.Layer):
    """Images (batch, 3, size, size) to logits (batch, 10)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        small = values["stem"] == "3x3"
        self.stem = Convolution(3, 64, 3) if small else Convolution(3, 64, 7, stride=2)
        self.relu = nn.ReLU()
        self.pool = nn.Identity() if small else nn.MaxPool2D(3, stride=2, padding=1)
        self.stage1, self.stage2, self.stage3, self.stage4 = _stages()
        self.dense = nn.Linear(EXPANSION * STAGES[-1][1], 10)

    def forward(self, x: Tensor) -> Tensor:  # (batch, 3, size, size)
        x = self.pool(self.relu(self.stem(x)))  # (batch, 64, size / 4, size / 4)
        x = self.stage2(self.stage1(x))  # (batch, 512, size / 8, size / 8)
        x = self.stage4(self.stage3(x))  # (batch, 2048, size / 32, size / 32)
        return self.dense(x.mean((2, 3)))  # (batch, 10)


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


def _stages() -> list[nn.Sequential]:
    stages, inputs = [], 64
    for number, (blocks, width) in enumerate(STAGES):
        stage = [Block(inputs, width, 2 if number else 1, first=True)]
        inputs = EXPANSION * width
        stages.append(nn.Sequential(*stage, *(Block(inputs, width, 1, first=False) for _ in range(blocks - 1))))
    return stages
