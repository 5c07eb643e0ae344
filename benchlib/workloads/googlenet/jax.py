"""The workload ``googlenet`` in JAX."""

from __future__ import annotations

import jax.numpy as jnp
import optax
from flax import nnx
from jax import Array

from benchlib.workloads import Values
from benchlib.workloads._flax import BatchNorm
from benchlib.workloads.googlenet.workload import BEFORE, BLOCKS, outputs


class Convolution(nnx.Module):
    """A convolution without bias, batch normalisation and ReLU."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, *, rngs: nnx.Rngs) -> None:
        self.conv = nnx.Conv(inputs, outputs, (kernel, kernel), stride, padding=kernel // 2, use_bias=False, rngs=rngs)
        self.norm = BatchNorm(outputs, momentum=0.9, use_fast_variance=False, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        return nnx.relu(self.norm(self.conv(x)))


class Block(nnx.Module):
    """Four ways side by side: (batch, side, side, inputs) to (batch, side, side, sum of the ways' channels)."""

    def __init__(
        self, inputs: int, one: int, three: tuple[int, int], five: tuple[int, int], pooled: int, rngs: nnx.Rngs
    ) -> None:
        self.one = Convolution(inputs, one, 1, rngs=rngs)
        self.reduce3 = Convolution(inputs, three[0], 1, rngs=rngs)
        self.three = Convolution(*three, 3, rngs=rngs)
        self.reduce5 = Convolution(inputs, five[0], 1, rngs=rngs)
        self.five = Convolution(*five, 5, rngs=rngs)
        self.pooled = Convolution(inputs, pooled, 1, rngs=rngs)

    def __call__(self, x: Array) -> Array:
        ways = (self.one(x), self.three(self.reduce3(x)), self.five(self.reduce5(x)), self.pooled(pool(x, stride=1)))
        return jnp.concatenate(ways, axis=3)


class Model(nnx.Module):
    """Images (batch, size, size, 3) to logits (batch, 10)."""

    def __init__(self, values: Values, rngs: nnx.Rngs) -> None:
        self.conv1 = Convolution(3, 64, 7, stride=2, rngs=rngs)
        self.conv2 = Convolution(64, 64, 1, rngs=rngs)
        self.conv3 = Convolution(64, BEFORE, 3, rngs=rngs)
        inputs = BEFORE
        for name, ways in BLOCKS.items():
            setattr(self, name, Block(inputs, *ways, rngs=rngs))
            inputs = outputs(name)
        self.dropout = nnx.Dropout(values["dropout"], rngs=rngs)
        self.dense = nnx.Linear(inputs, 10, rngs=rngs)

    def __call__(self, x: Array) -> Array:  # (batch, size, size, 3)
        x = pool(self.conv1(x))  # (batch, size / 4, size / 4, 64)
        x = pool(self.conv3(self.conv2(x)))  # (batch, size / 8, size / 8, 192)
        x = pool(self.block3b(self.block3a(x)))  # (batch, size / 16, size / 16, 480)
        x = self.block4e(self.block4d(self.block4c(self.block4b(self.block4a(x)))))
        x = self.block5b(self.block5a(pool(x)))  # (batch, size / 32, size / 32, 1024)
        return self.dense(self.dropout(x.mean((1, 2))))  # (batch, 10)


def pool(x: Array, stride: int = 2) -> Array:
    """The largest of each 3x3 pixels, from (batch, side, side, channels)."""
    return nnx.max_pool(x, (3, 3), (stride, stride), padding=((1, 1), (1, 1)))


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
