"""Layers and an optimizer that Chainer has otherwise than the rest: see ``settled`` of the workloads that use them.

The products of a recurrent layer with its inputs are made of all steps at once, before the loop.
"""

from __future__ import annotations

import math

import chainer
import numpy as np
from chainer import Variable, optimizers
from chainer import functions as F
from chainer.optimizers.adam import AdamRule


def dropout(x: Variable, p: float) -> Variable:
    """``F.dropout`` by NumPy: iDeep's seeds its random numbers with the clock, and drops the same for a second."""
    with chainer.using_config("use_ideep", "never"):
        return F.dropout(x, p)


class Recurrent(chainer.Link):
    """The weights of a recurrent layer, as cuDNN has them: a bias of the state for each gate, too."""

    gates: int

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.hidden = hidden
        with self.init_scope():
            self.weight_ih_l0 = chainer.Parameter(chainer.initializers.LeCunNormal(), (self.gates * hidden, inputs))
            self.weight_hh_l0 = chainer.Parameter(chainer.initializers.LeCunNormal(), (self.gates * hidden, hidden))
            self.bias_ih_l0 = chainer.Parameter(0, self.gates * hidden)
            self.bias_hh_l0 = chainer.Parameter(0, self.gates * hidden)


class GRU(Recurrent):
    """A GRU layer over (length, batch, inputs)."""

    gates = 3

    def forward(self, x: Variable) -> Variable:
        """The state (batch, hidden) after the last step."""
        given = F.linear(x, self.weight_ih_l0, self.bias_ih_l0, n_batch_axes=2)  # (length, batch, 3 * hidden)
        state = np.zeros((x.shape[1], self.hidden), x.dtype)
        for gates_x, new_x in zip(*map(F.separate, F.split_axis(given, [2 * self.hidden], 2))):
            own = F.linear(state, self.weight_hh_l0, self.bias_hh_l0)  # (batch, 3 * hidden)
            gates_h, new_h = F.split_axis(own, [2 * self.hidden], 1)
            reset, update = F.split_axis(F.sigmoid(gates_x + gates_h), 2, 1)
            state = F.linear_interpolate(update, state, F.tanh(new_x + reset * new_h))  # (batch, hidden)
        return state


class LSTM(Recurrent):
    """An LSTM layer over (length, batch, inputs)."""

    gates = 4

    def forward(self, x: Variable) -> Variable:
        """The outputs (length, batch, hidden)."""
        order = np.arange(4 * self.hidden, dtype=np.int32).reshape(4, self.hidden)[[2, 0, 1, 3]].T.ravel()
        weight_ih, weight_hh, bias = (
            F.permutate(one, order)  # unit by unit the new, the entry, the forget and the exit gate, as F.lstm has them
            for one in (self.weight_ih_l0, self.weight_hh_l0, self.bias_ih_l0 + self.bias_hh_l0)
        )
        given = F.linear(x, weight_ih, bias, n_batch_axes=2)  # (length, batch, 4 * hidden)
        cell = state = np.zeros((x.shape[1], self.hidden), x.dtype)
        states = []
        for one in F.separate(given):
            cell, state = F.lstm(cell, one + F.linear(state, weight_hh))  # (batch, hidden) each
            states.append(state)
        return F.stack(states)


class Adam(optimizers.Adam):
    """``optimizers.Adam`` that adds epsilon after the bias is corrected, as PyTorch's: Chainer's own corrects the whole
    quotient, epsilon included, by its learning rate.
    """

    def create_update_rule(self) -> AdamRule:
        return _AdamRule(self.hyperparam)


class _AdamRule(AdamRule):
    def update_core(self, param: chainer.Parameter) -> None:
        given = self.hyperparam.parent
        self.hyperparam.eps = given.eps * math.sqrt(1 - given.beta2**self.t)
        super().update_core(param)
