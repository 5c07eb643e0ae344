"""What a user's own model in MindSpore gets by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mindspore import Tensor, nn, ops

from benchlib.workloads import Values


def build(make: Callable, document: dict[str, Any], values: Values) -> nn.Cell:
    """The user's model."""
    model = make()
    for _, cell in model.cells_and_names():
        if isinstance(cell, nn.Dropout):
            cell.p *= values["dropout"]
            cell.keep_prob = 1 - cell.p
    return model


def loss(document: dict[str, Any]) -> Callable:
    """Mean cross entropy over all labels, or mean squared error; MindSpore compiles it from its source."""
    return _cross_entropy if "classes" in document else _squared_error


def _cross_entropy(model: nn.Cell, batch: tuple[Tensor, ...]) -> Tensor:
    outputs, labels = model(*batch[:-1]), batch[-1]
    if outputs.ndim == 3:  # (batch, length, classes)
        outputs, labels = outputs.reshape((-1, outputs.shape[2])), labels.reshape((-1,))
    return ops.cross_entropy(outputs, labels)


def _squared_error(model: nn.Cell, batch: tuple[Tensor, ...]) -> Tensor:
    return ops.mse_loss(model(*batch[:-1]), batch[-1])


def optimizer(model: nn.Cell, values: Values, learning_rate: float) -> nn.Optimizer:
    """Stochastic gradient descent with momentum."""
    return nn.SGD(model.trainable_params(), learning_rate=learning_rate, momentum=values["momentum"])
