"""Layers, dropout and optimizers for Theano, which has operators only: written as its documentation and Lasagne have
them. A layer's weights are shared variables, attributes by the workload's names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Iterator, Mapping, Tuple

import numpy as np
import theano
from theano import tensor as T
from theano.sandbox.rng_mrg import MRG_RandomStreams
from theano.tensor import TensorVariable, nnet
from theano.tensor.sharedvar import TensorSharedVariable

streams = MRG_RandomStreams(1)
"""Of dropout's random numbers; a session sets its own, by its seed."""


class Layer:
    """A part of a model, called with its input: see ``forward`` of each."""

    forward: Any

    def __call__(self, *inputs: Any) -> TensorVariable:
        return self.forward(*inputs)


class Convolution(Layer):
    """(batch, inputs, side, side) to (batch, outputs, side / stride, side / stride), padded by half the kernel."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int = 1, bias: bool = True) -> None:
        self.pad, self.stride = kernel // 2, stride
        self.weight = zeros(outputs, inputs, kernel, kernel)
        self.bias = zeros(outputs) if bias else None

    def forward(self, x: TensorVariable) -> TensorVariable:
        stride = (self.stride, self.stride)
        y = nnet.conv2d(x, self.weight, border_mode=self.pad, subsample=stride, filter_flip=False)
        return y if self.bias is None else y + self.bias.dimshuffle("x", 0, "x", "x")


class BatchNorm(Layer):
    """Batch normalisation of images in evaluation behaviour."""

    def __init__(self, channels: int) -> None:
        self.weight, self.bias = zeros(channels), zeros(channels)
        self.running_mean, self.running_var = zeros(channels), zeros(channels)

    def forward(self, x: TensorVariable) -> TensorVariable:
        deviation = T.sqrt(self.running_var + 1e-5)
        each = [one.dimshuffle("x", 0, "x", "x") for one in (self.weight, self.bias, self.running_mean, deviation)]
        return nnet.bn.batch_normalization(x, *each, mode="high_mem")


class Dense(Layer):
    """(batch, inputs) to (batch, outputs)."""

    def __init__(self, inputs: int, outputs: int) -> None:
        self.weight, self.bias = zeros(outputs, inputs), zeros(outputs)

    def forward(self, x: TensorVariable) -> TensorVariable:
        return T.dot(x, self.weight.T) + self.bias


class Embedding(Layer):
    """Whole numbers to vectors of ``width`` numbers."""

    def __init__(self, words: int, width: int) -> None:
        self.weight = zeros(words, width)

    def forward(self, tokens: TensorVariable) -> TensorVariable:
        return self.weight[tokens]


class GRU(Layer):
    """A GRU layer over (length, batch, inputs), with cuDNN's biases. The products with its inputs are made of all steps
    at once, before the loop.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        self.hidden = hidden
        self.weight_ih_l0, self.bias_ih_l0 = zeros(3 * hidden, inputs), zeros(3 * hidden)
        self.weight_hh_l0, self.bias_hh_l0 = zeros(3 * hidden, hidden), zeros(3 * hidden)

    def forward(self, x: TensorVariable) -> TensorVariable:
        """The state (batch, hidden) after the last step."""
        given = T.dot(x, self.weight_ih_l0.T) + self.bias_ih_l0  # (length, batch, 3 * hidden)
        state = T.zeros((x.shape[1], self.hidden), x.dtype)
        weights = [self.weight_hh_l0, self.bias_hh_l0]
        states, _ = theano.scan(self.step, given, [state], weights, strict=True)
        return states[-1]

    def step(
        self, given: TensorVariable, state: TensorVariable, weight: TensorVariable, bias: TensorVariable
    ) -> TensorVariable:
        own, both = T.dot(state, weight.T) + bias, 2 * self.hidden  # (batch, 3 * hidden)
        gates = nnet.sigmoid(given[:, :both] + own[:, :both])
        reset, update = gates[:, : self.hidden], gates[:, self.hidden :]
        new = T.tanh(given[:, both:] + reset * own[:, both:])
        return new + update * (state - new)  # (batch, hidden)


def zeros(*shape: int) -> TensorSharedVariable:
    """A shared variable in the precision that is set."""
    return theano.shared(np.zeros(shape, theano.config.floatX))


def pool(x: TensorVariable) -> TensorVariable:
    """The largest of four, in images of even sides: pool_2d's gradient goes to all that are equally large, and a
    maximum's to the first, as PyTorch's.
    """
    columns = T.maximum(x[:, :, :, ::2], x[:, :, :, 1::2])
    return T.maximum(columns[:, :, ::2], columns[:, :, 1::2])


def dropout(x: TensorVariable, p: float, training: bool) -> TensorVariable:
    """In training, a share ``p`` of the numbers is dropped, and the others are larger for it."""
    return x * mask(x, p) / (1 - p) if training and p else x


def mask(x: TensorVariable, p: float) -> TensorVariable:
    """1 where a number of ``x`` is kept, else 0."""
    return streams.binomial(x.shape, p=1 - p, dtype=x.dtype)


def cross_entropy(logits: TensorVariable, labels: TensorVariable) -> TensorVariable:
    """The mean over a batch."""
    return nnet.categorical_crossentropy(nnet.softmax(logits), labels).mean()


Updates = Iterator[Tuple[TensorSharedVariable, TensorVariable]]
Gradients = Mapping[TensorSharedVariable, TensorVariable]


class Momentum:
    """Stochastic gradient descent with momentum; ``state`` is 0 at first."""

    def __init__(self, weights: Sequence[TensorSharedVariable], learning_rate: float, momentum: float) -> None:
        self.learning_rate, self.momentum = learning_rate, momentum
        self.velocities = {weight: like(weight) for weight in weights}
        self.state = [*self.velocities.values()]

    def updates(self, gradients: Gradients) -> Updates:
        """The new values of the weights that have gradients, and of their state."""
        for weight, gradient in gradients.items():
            velocity = self.momentum * self.velocities[weight] + gradient
            yield self.velocities[weight], velocity
            yield weight, weight - self.learning_rate * velocity


class Adam:
    """Adam, which adds epsilon after the bias is corrected."""

    def __init__(self, weights: Sequence[TensorSharedVariable], learning_rate: float, epsilon: float) -> None:
        self.learning_rate, self.epsilon = learning_rate, epsilon
        self.steps = theano.shared(np.array(0.0))  # in double precision: 1 - 0.999 has few digits
        self.means = {weight: like(weight) for weight in weights}
        self.squares = {weight: like(weight) for weight in weights}
        self.state = [self.steps, *self.means.values(), *self.squares.values()]

    def updates(self, gradients: Gradients) -> Updates:
        """The new values of the weights that have gradients, and of their state."""
        steps = self.steps + 1
        root = T.sqrt(1 - 0.999**steps)
        rate, epsilon = (
            T.cast(one, theano.config.floatX)
            for one in (self.learning_rate * root / (1 - 0.9**steps), self.epsilon * root)
        )
        yield self.steps, steps
        for weight, gradient in gradients.items():
            mean = 0.9 * self.means[weight] + 0.1 * gradient
            square = 0.999 * self.squares[weight] + 0.001 * gradient**2
            yield self.means[weight], mean
            yield self.squares[weight], square
            yield weight, weight - rate * mean / (T.sqrt(square) + epsilon)


def like(weight: TensorSharedVariable) -> TensorSharedVariable:
    """Zeros of the same shape."""
    return theano.shared(np.zeros_like(weight.get_value(borrow=True)))


def weights(layer: Any, prefix: str = "") -> dict[str, TensorSharedVariable]:
    """All weights of a layer and of those in it, by the workload's names."""
    found = {}
    parts = enumerate(layer) if isinstance(layer, list) else vars(layer).items()
    for name, part in parts:
        if isinstance(part, TensorSharedVariable):
            found[f"{prefix}{name}"] = part
        elif isinstance(part, (Layer, list)):
            found.update(weights(part, f"{prefix}{name}."))
    return found


def trained(layer: Any) -> dict[str, TensorSharedVariable]:
    """Those without running statistics."""
    return {name: one for name, one in weights(layer).items() if ".running_" not in name}
