"""Layers and optimizers that Keras has not, or has with other weights or mathematics than the rest: see ``settled`` of
the workloads that use them.
"""

from __future__ import annotations

import math
from typing import Any

import keras
import tensorflow as tf
from keras import layers
from tensorflow import Tensor, Variable

from benchlib.workloads import _keras2
from benchlib.workloads._keras2 import Optimizer, raw


def built(model: keras.Model, *inputs: keras.KerasTensor) -> keras.Model:
    """The model, with its weights made for such inputs."""
    tf.autograph.experimental.do_not_convert(model)(*inputs)  # Keras 2 would write modules of its code and import them
    return model


def gelu(x: Tensor) -> Tensor:
    """``tf.nn.gelu``, whose constant is of single precision: in double precision it is a formula, and before 2.4."""
    formula = x.dtype == tf.float64 or not hasattr(tf.nn, "gelu")
    return 0.5 * x * (1 + tf.math.erf(x / math.sqrt(2))) if formula else tf.nn.gelu(x)


class DenseOfImage(layers.Dense):
    """``layers.Dense`` of all places of an ``image`` (height, width, channels) that was flattened. The workload's
    weights have them channel by channel; the session lays them out as they come here.
    """

    def __init__(self, units: int, image: tuple[int, int, int]) -> None:
        super().__init__(units)
        self.image = image


class Conv2D(layers.Conv2D):
    """``layers.Conv2D`` that pads by a number of pixels on each side. "same" pads by more at the end where the stride
    is 2, and a layer that pads before it moves the image once more.
    """

    def __init__(self, filters: int, kernel_size: int, strides: int = 1, pixels: int = 0, **named: Any) -> None:
        super().__init__(filters, kernel_size, strides, padding="valid", **named)
        self.pixels = pixels

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        super().build(input_shape)
        if _keras2.IN_USE:
            self._convolution_op = self.convolution_op  # what Keras 2 calls in its place, else without our padding

    def compute_output_shape(self, input_shape: tuple[int | None, ...]) -> tuple[int | None, ...]:
        batch, *sides, channels = input_shape
        padded = [None if side is None else side + 2 * self.pixels for side in sides]
        return super().compute_output_shape((batch, *padded, channels))

    def convolution_op(self, inputs: Tensor, kernel: Tensor) -> Tensor:  # (batch, height, width, channels)
        return tf.nn.conv2d(inputs, tf.convert_to_tensor(kernel), list(self.strides), self.around())

    def around(self) -> str | list[list[int]]:
        """The padding, by name where it has one: the operator has faster paths for the names, which the same padding in
        pixels does not take.
        """
        if not self.pixels:
            return "VALID"
        if set(self.strides) == {1} and set(self.kernel_size) == {2 * self.pixels + 1}:
            return "SAME"
        around = [self.pixels, self.pixels]
        return [[0, 0], around, around, [0, 0]]


class BatchNormalization(layers.BatchNormalization):
    """``layers.BatchNormalization`` as the one operator that TensorFlow has for it. Its running variance is that of a
    sample (a sum over one number less), as PyTorch's. That operator has no double precision: there it is a formula.
    """

    def call(self, inputs: Tensor, training: bool = False, mask: None = None) -> Tensor:
        """Of images (batch, height, width, channels), none of which is masked."""
        if inputs.dtype == tf.float64:
            return self.written_out(inputs, training)
        outputs, mean, variance, *_ = tf.raw_ops.FusedBatchNormV3(
            x=inputs,
            scale=raw(self.gamma),
            offset=raw(self.beta),
            mean=raw(self.moving_mean),
            variance=raw(self.moving_variance),
            epsilon=self.epsilon,
            exponential_avg_factor=1 - self.momentum,
            is_training=training,
        )
        if training:
            self.moving_mean.assign(mean)
            self.moving_variance.assign(variance)
        return outputs

    def written_out(self, x: Tensor, training: bool) -> Tensor:
        mean, variance = raw(self.moving_mean), raw(self.moving_variance)
        if training:
            mean, variance = tf.nn.moments(x, (0, 1, 2))
            numbers = tf.cast(tf.size(x[..., 0]), x.dtype)
            for moving, now in ((self.moving_mean, mean), (self.moving_variance, variance * numbers / (numbers - 1))):
                moving.assign(self.momentum * raw(moving) + (1 - self.momentum) * now)
        return tf.nn.batch_normalization(x, mean, variance, raw(self.beta), raw(self.gamma), self.epsilon)


class _Recurrent(layers.Layer):
    """A recurrent layer with the weights of cuDNN's: a bias of the state for each gate, too.

    They lie as the operators want them, so that no step has to rearrange them. On a GPU that is as cuDNN does, else
    (inputs, gates * units) with the gates in the order ``gates``, by their places in cuDNN's. The session lays out the
    workload's weights, which are like cuDNN's, as they come here.
    """

    gates: tuple[int, ...]
    mode: str  # as cuDNN's operator calls it

    def __init__(self, units: int) -> None:
        super().__init__()
        self.units, self.as_cudnn = units, _on_gpu()

    def build(self, input_shape: tuple[int | None, ...]) -> None:
        rows = len(self.gates) * self.units
        way = 1 if self.as_cudnn else -1
        self.weight_ih = self.add_weight(name="weight_ih_l0", shape=(rows, input_shape[-1])[::way])
        self.weight_hh = self.add_weight(name="weight_hh_l0", shape=(rows, self.units)[::way])
        self.bias_ih = self.add_weight(name="bias_ih_l0", shape=(rows,), initializer="zeros")
        self.bias_hh = self.add_weight(name="bias_hh_l0", shape=(rows,), initializer="zeros")

    def weights_as(self, dtype: tf.DType) -> list[Tensor]:
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return [tf.cast(tf.convert_to_tensor(weight), dtype) for weight in weights]

    def of_cudnn(self, x: Tensor, state: Tensor) -> Tensor:
        """The outputs (length, batch, units) of (length, batch, inputs), on a GPU. Never run."""
        state = tf.expand_dims(state, 0)
        return tf.raw_ops.CudnnRNN(
            input=x,
            input_h=state,
            input_c=tf.zeros_like(state) if self.mode == "lstm" else tf.zeros((), x.dtype),
            params=tf.concat([tf.reshape(weight, (-1,)) for weight in self.weights_as(x.dtype)], 0),
            rnn_mode=self.mode,
            is_training=True,  # or it hands out nothing to compute gradients from
        ).output


class GRU(_Recurrent):
    """A GRU layer over (batch, length, inputs).

    The products with the inputs are made of all steps at once, before the loop; ``layers.GRU`` leaves them to each
    step.
    """

    gates, mode = (0, 1, 2), "gru"  # reset, update, new

    def call(self, x: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The outputs (batch, length, units), and the state (batch, units) after the last step."""
        x = tf.transpose(x, (1, 0, 2))  # (length, batch, inputs)
        first = tf.zeros((tf.shape(x)[1], self.units), x.dtype) if state is None else state
        outputs = self.of_cudnn(x, first) if self.as_cudnn else self.scanned(x, first)
        return tf.transpose(outputs, (1, 0, 2)), outputs[-1]

    def scanned(self, x: Tensor, first: Tensor) -> Tensor:
        weight_ih, weight_hh, bias_ih, bias_hh = self.weights_as(x.dtype)
        length, _, inputs = x.shape
        given = tf.matmul(tf.reshape(x, (-1, inputs)), weight_ih) + bias_ih
        given = tf.reshape(given, (length, -1, 3 * self.units))

        def step(state: Tensor, given: Tensor) -> Tensor:
            both_x, new_x = tf.split(given, (2 * self.units, self.units), axis=1)
            both_h, new_h = tf.split(tf.matmul(state, weight_hh) + bias_hh, (2 * self.units, self.units), axis=1)
            reset, update = tf.split(tf.sigmoid(both_x + both_h), 2, axis=1)
            new = tf.tanh(new_x + reset * new_h)
            return new + update * (state - new)  # (batch, units)

        return tf.scan(step, given, first)


class LSTM(_Recurrent):
    """An LSTM layer over (length, batch, inputs), as the one operator that TensorFlow has for it on the CPU;
    ``layers.LSTM`` is a loop there. It computes in fp32 where it is given bf16, for which it is not made. For double
    precision it is not made either: there the layer is a loop.
    """

    gates, mode = (0, 2, 1, 3), "lstm"  # entry, new, forget, exit

    def call(self, x: Tensor) -> Tensor:
        """The outputs (length, batch, units)."""
        state = tf.zeros((tf.shape(x)[1], self.units), x.dtype)
        if self.as_cudnn:
            return self.of_cudnn(x, state)
        return self.scanned(x, state) if x.dtype == tf.float64 else self.in_one(x)

    def scanned(self, x: Tensor, first: Tensor) -> Tensor:
        weight_ih, weight_hh, bias_ih, bias_hh = self.weights_as(x.dtype)

        def step(before: tuple[Tensor, Tensor], given: Tensor) -> tuple[Tensor, Tensor]:
            state, cell = before
            gates = tf.matmul(given, weight_ih) + tf.matmul(state, weight_hh) + bias_ih + bias_hh
            entry, new, forget, exit_ = tf.split(gates, 4, axis=1)
            cell = tf.sigmoid(forget) * cell + tf.sigmoid(entry) * tf.tanh(new)
            return tf.sigmoid(exit_) * tf.tanh(cell), cell  # (batch, units) each

        return tf.scan(step, x, (first, first))[0]

    def in_one(self, x: Tensor) -> Tensor:
        dtype = tf.float16 if x.dtype == tf.float16 else tf.float32
        weight_ih, weight_hh, bias_ih, bias_hh = self.weights_as(dtype)
        state, unused = tf.zeros((tf.shape(x)[1], self.units), dtype), tf.zeros((self.units,), dtype)
        # Not BlockLSTMV2, whose gates are in cuDNN's order: its gradient is that of this one, and wrong (2.21).
        block = tf.raw_ops.BlockLSTM(
            seq_len_max=tf.shape(x, tf.int64)[0],
            x=tf.cast(x, dtype),
            cs_prev=state,
            h_prev=state,
            w=tf.concat((weight_ih, weight_hh), 0),
            wci=unused,
            wcf=unused,
            wco=unused,
            b=bias_ih + bias_hh,
            forget_bias=0.0,
            cell_clip=0.0,
        )
        return tf.cast(block.h, x.dtype)


class SGD(Optimizer):
    """Stochastic gradient descent with momentum, and an L2 ``penalty`` on all weights, as a factor of them.

    The rate is applied to the velocity when a weight moves, as in PyTorch. ``keras.optimizers.SGD`` takes it into the
    velocity, which is another update where the rate changes. Its ``weight_decay`` is no part of the gradient.
    """

    def __init__(self, learning_rate: Any, momentum: float, penalty: float = 0.0) -> None:
        super().__init__(learning_rate, name="sgd")
        self.momentum, self.penalty = momentum, penalty

    def build(self, variables: list[keras.Variable]) -> None:
        if not self.built:
            super().build(variables)
            self.velocities = self.add_optimizer_variables(variables, "velocity")

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        velocity = self.velocities[self._get_variable_index(variable)]
        tf.raw_ops.ResourceApplyMomentum(
            var=variable.handle,
            accum=raw(velocity).handle,
            lr=tf.cast(learning_rate, variable.dtype),
            grad=gradient + self.penalty * variable if self.penalty else gradient,
            momentum=self.momentum,
        )


class AdamW(Optimizer):
    """Adam, with decoupled ``weight_decay`` if there is one; epsilon is added after the bias is corrected, as in
    PyTorch. ``keras.optimizers.Adam`` and its ``AdamW`` add it before, and work the correction and the learning rate
    out anew for each weight. Gradients are clipped as in PyTorch, too.
    """

    def __init__(self, learning_rate: Any, epsilon: float, weight_decay: float = 0.0, **named: Any) -> None:
        super().__init__(learning_rate, name="adamw", **named)
        self.beta_1, self.beta_2, self.epsilon, self.decay = 0.9, 0.999, epsilon, weight_decay

    def build(self, variables: list[keras.Variable]) -> None:
        if not self.built:
            super().build(variables)
            self.means = self.add_optimizer_variables(variables, "mean")
            self.squares = self.add_optimizer_variables(variables, "square")

    def apply(self, grads: list[Tensor], trainable_variables: list[keras.Variable] | None = None) -> None:
        step = tf.cast(raw(self.iterations) + 1, keras.config.floatx())
        beta_1, beta_2 = (tf.constant(beta, step.dtype) for beta in (self.beta_1, self.beta_2))
        self.beta_1_power, self.beta_2_power = tf.pow(beta_1, step), tf.pow(beta_2, step)
        # The operator adds epsilon before the bias is corrected: so it comes out the same.
        self.epsilon_before = self.epsilon * tf.sqrt(1 - self.beta_2_power)
        super().apply(grads, trainable_variables)

    def _clip_gradients(self, grads: list[Tensor]) -> list[Tensor]:
        """Keras's divides by the norm; PyTorch's ``clip_grad_norm_`` adds 1e-6 to it."""
        if not self.global_clipnorm:
            return super()._clip_gradients(grads)
        norm = tf.sqrt(tf.add_n([tf.reduce_sum(tf.square(gradient)) for gradient in grads]))
        factor = tf.minimum(self.global_clipnorm / (norm + 1e-6), 1.0)
        return [gradient * tf.cast(factor, gradient.dtype) for gradient in grads]

    def update_step(self, gradient: Tensor, variable: Variable, learning_rate: Tensor) -> None:
        place = self._get_variable_index(variable)
        rate = tf.cast(learning_rate, variable.dtype)
        if self.decay and self._use_weight_decay(variable):  # which exclude_from_weight_decay has said
            variable.assign_sub(rate * self.decay * variable)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=raw(self.means[place]).handle,
            v=raw(self.squares[place]).handle,
            beta1_power=self.beta_1_power,
            beta2_power=self.beta_2_power,
            lr=rate,
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon_before,
            grad=gradient,
        )


def _on_gpu() -> bool:
    return bool(tf.config.list_logical_devices("GPU"))
