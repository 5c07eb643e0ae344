"""Keras 2, the part of TensorFlow before 2.16, by the names of Keras 3 for which the models are written.

Imported before ``keras``, which it then is. Tried with TensorFlow 2.3 and 2.11.
"""

from __future__ import annotations

import sys
from operator import attrgetter
from types import SimpleNamespace
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import nn_ops

IN_USE = tuple(map(int, tf.__version__.split(".")[:2])) < (2, 16)

if IN_USE:
    keras = sys.modules["keras"] = tf.keras
    keras.Layer = keras.layers.Layer
    keras.layers.Identity = keras.Layer  # which hands on what it is given
    keras.utils.set_random_seed = tf.random.set_seed
    keras.config = SimpleNamespace(
        floatx=keras.backend.floatx,
        set_floatx=keras.backend.set_floatx,
        set_dtype_policy=lambda name: None,  # that of floatx, as it is set
        dtype_policy=getattr(keras.mixed_precision, "experimental", keras.mixed_precision).global_policy,  # until 2.10
    )
    DROPS = ((tf.nn, "dropout"), (nn_ops, "dropout_v2"), (tf.compat.v2.nn, "dropout"))  # 2.3's layers call the second

    class Optimizer:
        """The part of Keras 3's that is used here. That of Keras 2 has another interface for those who derive from it,
        and looks its hyperparameters and its weights' places up in each step.
        """

        update_step: Any  # of one weight, which derived classes say

        def __init__(self, learning_rate: Any, name: str, global_clipnorm: float | None = None) -> None:
            scheduled = callable(learning_rate)
            self.learning_rate = learning_rate if scheduled else tf.Variable(learning_rate, dtype=keras.config.floatx())
            self.iterations = tf.Variable(0, dtype=tf.int64)
            self.variables = [self.iterations]
            self.global_clipnorm, self.built = global_clipnorm, False
            self._without_decay: set[int] = set()

        def build(self, variables: list[tf.Variable]) -> None:
            self.built, self._places = True, {id(one): place for place, one in enumerate(variables)}

        def add_optimizer_variables(self, variables: list[tf.Variable], name: str) -> list[tf.Variable]:
            added = [tf.Variable(tf.zeros_like(one)) for one in variables]
            self.variables += added
            return added

        def exclude_from_weight_decay(self, var_list: list[tf.Variable]) -> None:
            self._without_decay = {id(one) for one in var_list}

        def apply(self, grads: list[tf.Tensor], trainable_variables: list[tf.Variable]) -> None:
            rate = self.learning_rate(self.iterations) if callable(self.learning_rate) else self.learning_rate
            for gradient, variable in zip(self._clip_gradients(grads), trainable_variables):
                self.update_step(gradient, variable, rate)
            self.iterations.assign_add(1)

        def scale_loss(self, loss: tf.Tensor) -> tf.Tensor:
            return loss

        def _clip_gradients(self, grads: list[tf.Tensor]) -> list[tf.Tensor]:
            return grads

        def _get_variable_index(self, variable: tf.Variable) -> int:
            return self._places[id(variable)]

        def _use_weight_decay(self, variable: tf.Variable) -> bool:
            return id(variable) not in self._without_decay

    def raw(variable: tf.Variable) -> tf.Variable:
        """TensorFlow's variable of a weight, which here is one; its ``value`` is a method that reads it."""
        return variable

else:
    import keras  # type: ignore[no-redef]

    DROPS = ((tf.nn, "dropout"), (tf.nn.experimental, "stateless_dropout"), (tf.nn.experimental, "general_dropout"))
    Optimizer, raw = keras.optimizers.Optimizer, attrgetter("value")
