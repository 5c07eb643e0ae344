"""What a user's own model in JAX gets by default."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import optax
from flax import linen, nnx
from jax import Array

from benchlib.workloads import Values
from benchlib.workloads._flax import BatchNorm
from benchlib.workloads._mine import _jax_linen


def build(make: Callable, document: dict[str, Any], values: Values) -> nnx.Module:
    """The user's model. Its running variances are those of a sample, as PyTorch's."""
    asked = inspect.signature(make.__init__ if isinstance(make, type) else make).parameters
    model = make(rngs=nnx.Rngs(0)) if "rngs" in asked else make()
    if isinstance(model, linen.Module):
        inputs = [_like(name, shape, document) for name, shape in document["inputs"].items()]
        model = _jax_linen.Model(model, inputs)
    for _, module in nnx.iter_modules(model):
        if type(module) is nnx.BatchNorm:
            module.__class__ = BatchNorm
        if isinstance(module, nnx.Dropout):
            module.rate *= values["dropout"]
        if isinstance(module, nnx.MultiHeadAttention):
            module.dropout_rate *= values["dropout"]
    return model


def loss(document: dict[str, Any], model: nnx.Module, batch: tuple[Array, ...]) -> Array:
    """Mean cross entropy over all labels, or mean squared error."""
    *inputs, labels = batch
    outputs = model(*inputs).astype(float)
    if "classes" not in document:
        return jnp.mean(jnp.square(outputs - labels))
    return optax.softmax_cross_entropy_with_integer_labels(outputs, labels).mean()


def optimizer(values: Values, learning_rate: float) -> optax.GradientTransformation:
    """Stochastic gradient descent with momentum."""
    return optax.sgd(learning_rate, momentum=values["momentum"])


def _like(name: str, shape: list[int], document: dict[str, Any]) -> Array:
    """Zeros as an input of the model is, images with the channels innermost."""
    moved = (*shape[1:], shape[0]) if len(shape) == 3 else tuple(shape)
    return jnp.zeros((2, *moved), jnp.int32 if name in document["vocabularies"] else None)
