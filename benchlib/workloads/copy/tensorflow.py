"""The workload ``copy`` in TensorFlow."""

from __future__ import annotations

from collections.abc import Callable

import tensorflow as tf
from keras import layers
from tensorflow import Tensor

from benchlib.workloads import Values


class Copy(layers.Layer):
    """An array (batch, elements) to a new one with the same numbers."""

    def call(self, x: Tensor) -> Tensor:
        return copied(x)


@tf.custom_gradient
def copied(x: Tensor) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """The same numbers in memory of their own, which ``tf.identity`` would not give them."""
    return tf.raw_ops.DeepCopy(x=x), lambda gradient: gradient


def build(values: Values) -> Copy:
    """The operator: (batch, elements) to (batch, elements)."""
    return Copy()
