"""What a user's own model in TensorFlow gets by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from keras import layers
from tensorflow import Tensor

from benchlib.workloads import Values
from benchlib.workloads._keras import SGD, BatchNormalization, built


def build(make: Callable, document: dict[str, Any], values: Values) -> keras.Model:
    """The user's model. Its running variances are those of a sample, as PyTorch's."""
    keras.backend.clear_session()  # layers get the same names each time
    model = make()
    if not model.built:
        model = built(model, *(_input(name, shape, document) for name, shape in document["inputs"].items()))
    for layer in model._flatten_layers():
        if type(layer) is layers.BatchNormalization and layer.scale and layer.center and layer.input_spec.ndim == 4:
            layer.__class__ = BatchNormalization
        if isinstance(layer, layers.Dropout):
            layer.rate *= values["dropout"]
        elif isinstance(vars(layer).get("dropout"), float):  # of recurrent cells
            layer.dropout *= values["dropout"]
    return model


def loss(document: dict[str, Any], model: keras.Model, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy over all labels, or mean squared error."""
    *inputs, labels = batch
    outputs = tf.cast(model(*inputs, training=True), keras.config.floatx())
    if "classes" not in document:
        return tf.reduce_mean(tf.square(outputs - labels))
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs))


def optimizer(model: keras.Model, values: Values, learning_rate: float) -> keras.optimizers.Optimizer:
    """Stochastic gradient descent with momentum."""
    return SGD(learning_rate, momentum=values["momentum"])


def _input(name: str, shape: list[int], document: dict[str, Any]) -> keras.KerasTensor:
    """An input of the model, images with the channels innermost."""
    moved = (*shape[1:], shape[0]) if len(shape) == 3 else tuple(shape)
    return keras.Input(moved, dtype="int32" if name in document["vocabularies"] else None)
