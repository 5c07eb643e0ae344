"""The workload ``resnet50`` in JAX."""

from __future__ import annotations

from collections.abc import Callable

import optax
from flax import nnx
from jax import Array

from benchlib.workloads import Values
from benchlib.workloads._flax import BatchNorm
from benchlib.workloads.resnet50.workload import EXPANSION, STAGES


class Convolution(nnx.Module):
    """A convolution without bias, and batch normalisation."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, *, rngs: nnx.Rngs) -> None:
        self.conv = nnx.Conv(inputs, outputs, (kernel, kernel), stride, padding=kernel // 2, use_bias=False, rngs=rngs)
        self.norm = BatchNorm(outputs, momentum=0.9, use_fast_variance=False, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        return self.norm(self.conv(x))


class Block(nnx.Module):
    """(batch, side, side, inputs) to (batch, side / stride, side / stride, 4 * width)."""

    def __init__(self, inputs: int, width: int, stride: int, first: bool, rngs: nnx.Rngs) -> None:
        self.reduce = Convolution(inputs, width, 1, rngs=rngs)
        self.conv = Convolution(width, width, 3, stride, rngs=rngs)
        self.expand = Convolution(width, EXPANSION * width, 1, rngs=rngs)
        self.shortcut = Convolution(inputs, EXPANSION * width, 1, stride, rngs=rngs) if first else identity

    def __call__(self, x: Array) -> Array:
        y = nnx.relu(self.reduce(x))
        y = nnx.relu(self.conv(y))
        return nnx.relu(self.expand(y) + self.shortcut(x))


class Model(nnx.Module):
    """Images (batch, size, size, 3) to logits (batch, 10)."""

    def __init__(self, values: Values, rngs: nnx.Rngs) -> None:
        small = values["stem"] == "3x3"
        self.stem = Convolution(3, 64, 3, rngs=rngs) if small else Convolution(3, 64, 7, stride=2, rngs=rngs)
        self.pool = identity if small else pool
        self.stage1, self.stage2, self.stage3, self.stage4 = _stages(rngs)
        self.dense: Callable[[Array], Array] = nnx.Linear(EXPANSION * STAGES[-1][1], 10, rngs=rngs)

    def __call__(self, x: Array) -> Array:  # (batch, size, size, 3)
        x = self.pool(nnx.relu(self.stem(x)))  # (batch, size / 4, size / 4, 64)
        for stage in (self.stage1, self.stage2, self.stage3, self.stage4):
            for block in stage:
                x = block(x)  # at last (batch, size / 32, size / 32, 2048)
        return self.dense(x.mean((1, 2)))  # (batch, 10)


def identity(x: Array) -> Array:
    """Return the argument."""
    return x


def pool(x: Array) -> Array:
    """The largest of each 3x3 pixels: (batch, side, side, channels) to (batch, side / 2, side / 2, channels)."""
    return nnx.max_pool(x, (3, 3), (2, 2), padding=((1, 1), (1, 1)))


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values, nnx.Rngs(0))


def loss(model: nnx.Module, batch: tuple[Array, Array]) -> Array:
    """Mean cross entropy of a batch: images, and labels of dtype int32."""
    images, labels = batch
    logits = model(images).astype(float)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def optimizer(values: Values, learning_rate: float) -> optax.GradientTransformation:
    """Stochastic gradient descent with momentum and a penalty on all weights."""
    return optax.chain(
        optax.add_decayed_weights(values["weight_decay"]), optax.sgd(learning_rate, momentum=values["momentum"])
    )


def _stages(rngs: nnx.Rngs) -> list[nnx.List]:
    stages, inputs = [], 64
    for number, (blocks, width) in enumerate(STAGES):
        stage = [Block(inputs, width, 2 if number else 1, first=True, rngs=rngs)]
        inputs = EXPANSION * width
        stages.append(nnx.List([*stage, *(Block(inputs, width, 1, False, rngs) for _ in range(blocks - 1))]))
    return stages
