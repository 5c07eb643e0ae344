"""The workload ``cnn`` in JAX."""

from __future__ import annotations

import optax
from flax import nnx
from jax import Array

from benchlib.workloads import Values


class Model(nnx.Module):
    """Images (batch, size, size, 3) to logits (batch, 10)."""

    def __init__(self, values: Values, rngs: nnx.Rngs) -> None:
        side = values["image_size"] // 4
        self.conv1 = nnx.Conv(3, 50, (3, 3), padding=1, rngs=rngs)
        self.conv2 = nnx.Conv(50, 50, (3, 3), padding=1, rngs=rngs)
        self.conv3 = nnx.Conv(50, 100, (3, 3), padding=1, rngs=rngs)
        self.conv4 = nnx.Conv(100, 100, (3, 3), padding=1, rngs=rngs)
        self.dropout1 = nnx.Dropout(values["conv_dropout"], rngs=rngs)
        self.dropout2 = nnx.Dropout(values["conv_dropout"], rngs=rngs)
        self.dropout3 = nnx.Dropout(values["dense_dropout"], rngs=rngs)
        self.dense1 = nnx.LinearGeneral((side, side, 100), 512, axis=(1, 2, 3), rngs=rngs)
        self.dense2 = nnx.Linear(512, 10, rngs=rngs)

    def __call__(self, x: Array) -> Array:  # (batch, size, size, 3)
        x = self.conv2(nnx.relu(self.conv1(x)))  # (batch, size, size, 50)
        x = self.dropout1(nnx.relu(nnx.max_pool(x, (2, 2), (2, 2))))  # (batch, size / 2, size / 2, 50)
        x = self.conv4(nnx.relu(self.conv3(x)))  # (batch, size / 2, size / 2, 100)
        x = self.dropout2(nnx.relu(nnx.max_pool(x, (2, 2), (2, 2))))  # (batch, size / 4, size / 4, 100)
        x = self.dropout3(nnx.relu(self.dense1(x)))  # (batch, 512)
        return self.dense2(x)  # (batch, 10)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values, nnx.Rngs(0))


def loss(model: nnx.Module, batch: tuple[Array, Array]) -> Array:
    """Mean cross entropy of a batch: images, and labels of dtype int32."""
    images, labels = batch
    logits = model(images).astype(float)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def optimizer(values: Values, learning_rate: float) -> optax.GradientTransformation:
    """Stochastic gradient descent with momentum."""
    return optax.sgd(learning_rate, momentum=values["momentum"])
