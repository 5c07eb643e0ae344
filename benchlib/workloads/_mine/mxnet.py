"""What a user's own model in MXNet gets by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mxnet as mx
from mxnet import gluon
from mxnet.gluon import HybridBlock, nn
from mxnet.ndarray import NDArray

from benchlib.workloads import Values

cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()


def build(make: Callable, document: dict[str, Any], values: Values) -> HybridBlock:
    """The user's model, with the shapes of all its weights."""
    model = make()
    model.initialize()
    model(*(mx.nd.zeros((2, *shape), dtype=_kind(name, document)) for name, shape in document["inputs"].items()))

    def scale(block: gluon.Block) -> None:
        if isinstance(block, nn.Dropout):
            block._rate *= values["dropout"]

    model.apply(scale)
    return model


def loss(document: dict[str, Any], model: HybridBlock, batch: tuple[NDArray, ...]) -> NDArray:
    """Mean cross entropy over all labels, or mean squared error."""
    *inputs, labels = batch
    outputs = model(*inputs)
    if "classes" not in document:
        return ((outputs - labels) ** 2).mean()
    if len(document["labels"]) == 2:  # (batch, classes, height, width)
        outputs = outputs.transpose((0, 2, 3, 1))
    return cross_entropy(outputs, labels).mean()


def optimizer(model: HybridBlock, values: Values, learning_rate: float) -> gluon.Trainer:
    """Stochastic gradient descent with momentum."""
    settings = {"learning_rate": learning_rate, "momentum": values["momentum"]}
    return gluon.Trainer(model.collect_params(), "sgd", settings, kvstore=None)


def _kind(name: str, document: dict[str, Any]) -> str:
    return "int32" if name in document["vocabularies"] else "float32"
