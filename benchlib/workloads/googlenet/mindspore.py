"""The workload ``googlenet`` in MindSpore."""

from __future__ import annotations

from mindspore import Tensor, nn, ops

from benchlib.workloads import Values
from benchlib.workloads.googlenet.workload import BEFORE, BLOCKS, outputs


class Convolution(nn.Cell):
    """A convolution without bias, batch normalisation and ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, pad_mode="pad", padding=kernel // 2, has_bias=False)
        self.norm = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Tensor:
        return self.relu(self.norm(self.conv(x)))


class Pool(nn.Cell):
    """The largest of 3x3 with stride 2 (batch, channels, side / 2, side / 2). Inputs are not negative, so padding with
    0 leaves it as it is. ``nn.MaxPool2d`` with ``pad_mode="pad"`` is three-dimensional inside, and slow.
    """

    def __init__(self) -> None:
        super().__init__()
        self.pad = nn.Pad(((0, 0), (0, 0), (1, 1), (1, 1)))
        self.pool = nn.MaxPool2d(3, stride=2)

    def construct(self, x: Tensor) -> Tensor:
        return self.pool(self.pad(x))


class Block(nn.Cell):
    """Four ways side by side: (batch, inputs, side, side) to (batch, sum of the ways' channels, side, side)."""

    def __init__(self, inputs: int, one: int, three: tuple[int, int], five: tuple[int, int], pooled: int) -> None:
        super().__init__()
        self.one = Convolution(inputs, one, 1)
        self.reduce3 = Convolution(inputs, three[0], 1)
        self.three = Convolution(*three, 3)
        self.reduce5 = Convolution(inputs, five[0], 1)
        self.five = Convolution(*five, 5)
        self.pool = nn.MaxPool2d(3, stride=1, pad_mode="same")  # with stride 1, "same" pads by 1 on every side
        self.pooled = Convolution(inputs, pooled, 1)

    def construct(self, x: Tensor) -> Tensor:
        ways = (self.one(x), self.three(self.reduce3(x)), self.five(self.reduce5(x)), self.pooled(self.pool(x)))
        return ops.cat(ways, 1)


class Model(nn.Cell):
    """Images (batch, 3, size, size) to logits (batch, 10)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.conv1 = Convolution(3, 64, 7, stride=2)
        self.conv2 = Convolution(64, 64, 1)
        self.conv3 = Convolution(64, BEFORE, 3)
        self.pool = Pool()
        inputs = BEFORE
        for name, ways in BLOCKS.items():
            setattr(self, name, Block(inputs, *ways))
            inputs = outputs(name)
        self.dropout = nn.Dropout(p=values["dropout"])
        self.dense = nn.Dense(inputs, 10)

    def construct(self, x: Tensor) -> Tensor:  # (batch, 3, size, size)
        x = self.pool(self.conv1(x))  # (batch, 64, size / 4, size / 4)
        x = self.pool(self.conv3(self.conv2(x)))  # (batch, 192, size / 8, size / 8)
        x = self.pool(self.block3b(self.block3a(x)))  # (batch, 480, size / 16, size / 16)
        x = self.block4e(self.block4d(self.block4c(self.block4b(self.block4a(x)))))
        x = self.block5b(self.block5a(self.pool(x)))  # (batch, 1024, size / 32, size / 32)
        return self.dense(self.dropout(x.mean((2, 3))))  # (batch, 10)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: nn.Cell, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean cross entropy of a batch: images, and labels of dtype int32."""
    images, labels = batch
    return ops.cross_entropy(model(images), labels)


def optimizer(model: nn.Cell, values: Values, learning_rate: float) -> nn.Optimizer:
    """Stochastic gradient descent with momentum and a penalty on all weights: as a group, because ``nn.SGD`` alone
    leaves out those of batch normalisation.
    """
    group = {"params": model.trainable_params(), "weight_decay": values["weight_decay"]}
    return nn.SGD([group], learning_rate=learning_rate, momentum=values["momentum"])
