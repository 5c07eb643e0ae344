"""Layers and an optimizer that CNTK has not on the CPU, or has otherwise than the rest: see ``settled`` of the
workloads that use them.
"""

from __future__ import annotations

import math

import cntk as C
import numpy as np
from cntk.default_options import default_override_or, get_default_override
from cntk.layers import Recurrence


def weight(*shape: int) -> C.Parameter:
    """A parameter of the type that is set, as CNTK's own layers make theirs."""
    return C.parameter(shape, dtype=get_default_override(None, dtype=default_override_or(np.float32)))


class Embedding:
    """Numbers of words to rows of a table. The gradient of ``gather`` is dense, which Adam wants on the CPU; that of a
    sparse product, as CNTK's own embedding is, is not.
    """

    def __init__(self, words: int, size: int) -> None:
        self.size = size
        self.weight = weight(words, size)

    def __call__(self, tokens: C.Variable) -> C.Function:  # a sequence of (1)
        return C.reshape(C.gather(self.weight, tokens), self.size)


class Convolution2D:
    """A convolution without bias, padded by half its kernel: by CNTK itself, but where the image is smaller than the
    kernel, which it refuses.
    """

    def __init__(self, outputs: int, kernel: int, stride: int = 1) -> None:
        self.kernel, self.stride = kernel, stride
        self.weight = weight(outputs, C.InferredDimension, kernel, kernel)

    def __call__(self, x: C.Function) -> C.Function:
        fits, border = self.kernel <= x.shape[-1], self.kernel // 2
        if not fits:
            x = C.pad(x, [(0, 0), (border, border), (border, border)])
        padded = [False, fits and border > 0, fits and border > 0]
        return C.convolution(self.weight, x, strides=(self.stride, self.stride), auto_padding=padded)


class GRU:
    """A GRU layer over a sequence, with a bias of the state for each gate, too, as cuDNN has it."""

    def __init__(self, inputs: int, hidden: int) -> None:
        self.hidden = hidden
        self.weight_ih_l0 = weight(3 * hidden, inputs)
        self.weight_hh_l0 = weight(3 * hidden, hidden)
        self.bias_ih_l0 = weight(3 * hidden)
        self.bias_hh_l0 = weight(3 * hidden)

    def __call__(self, x: C.Function) -> C.Function:
        """The state (hidden) after the last step. The products with the inputs are made of all steps at once."""
        gates, new = slice(0, 2 * self.hidden), slice(2 * self.hidden, 3 * self.hidden)

        def step(state: C.Variable, given: C.Variable) -> C.Function:
            own = C.times_transpose(state, self.weight_hh_l0) + self.bias_hh_l0
            both = C.sigmoid(given[gates] + own[gates])
            reset, update = both[: self.hidden], both[self.hidden :]
            candidate = C.tanh(given[new] + reset * own[new])
            return candidate + update * (state - candidate)

        given = C.times_transpose(x, self.weight_ih_l0) + self.bias_ih_l0  # (3 * hidden)
        return C.sequence.last(Recurrence(step)(given))


class Adam(C.learners.UserLearner):
    """``C.adam`` that adds epsilon after the bias is corrected, as PyTorch's; batches have one size.

    CNTK's own adds it before. Here its average of squares is the corrected one, because its momentum changes from step
    to step; the correction that it still makes is taken out of the rate.
    """

    def __init__(self, parameters: list[C.Parameter], learning_rate: float, epsilon: float) -> None:
        super().__init__(parameters, C.learning_parameter_schedule(learning_rate), as_numpy=False)
        self.weights, self.rate, self.epsilon = parameters, learning_rate, epsilon
        self.own: C.learners.Learner | None = None

    def reset_smoothed_gradients(self) -> None:
        self.own = None

    def update(self, gradients: dict, count: int, sweep_end: bool = False) -> bool:
        if self.own is None:
            self.own = self._adam(count)
        return self.own.update(gradients, count)

    def _adam(self, count: int) -> C.learners.Learner:
        momenta = [1 - 0.001 / (1 - 0.999**step) for step in range(1, STEPS)]
        rates = [self.rate / math.sqrt(1 - momentum**step) for step, momentum in enumerate(momenta, 1)]
        whole = {"minibatch_size": C.learners.IGNORE}
        return C.adam(
            self.weights,
            C.learning_parameter_schedule(rates, epoch_size=count, **whole),
            C.momentum_schedule(0.9, **whole),
            variance_momentum=C.momentum_schedule(momenta, epoch_size=count, **whole),
            epsilon=self.epsilon,
            **whole,
        )


STEPS = 20_000
"""After these the correction is 1 within 3e-9."""
