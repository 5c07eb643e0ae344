"""Layers that flax has not, or has with other weights than the rest: see ``settled`` of the workloads that use them.

The products of a recurrent layer with its inputs are made of all steps at once, before the loop. The loop is compiled
by itself, or eager mode would compile it anew whenever it is called.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from flax.nnx.nn.dtypes import promote_dtype
from jax import Array


class BatchNorm(nnx.BatchNorm):
    """``nnx.BatchNorm`` whose running variance is that of a sample (a sum over one number less), as PyTorch's."""

    def __call__(self, x: Array, **how: Any) -> Array:  # (batch, ..., channels)
        before = self.var[...]
        y = super().__call__(x, **how)
        if not self.use_running_average:
            numbers = x.size // x.shape[-1]
            kept = self.momentum * before
            self.var[...] = kept + (self.var[...] - kept) * numbers / (numbers - 1)
        return y


class Recurrent(nnx.Module):
    """The weights of a recurrent layer, as cuDNN has them: a bias of the state for each gate, too."""

    gates: int

    def __init__(self, inputs: int, hidden: int, rngs: nnx.Rngs) -> None:
        initial = nnx.initializers.lecun_normal()
        self.hidden, self.dtype = hidden, None
        self.weight_ih_l0 = nnx.Param(initial(rngs.params(), (self.gates * hidden, inputs)))
        self.weight_hh_l0 = nnx.Param(initial(rngs.params(), (self.gates * hidden, hidden)))
        self.bias_ih_l0 = nnx.Param(jnp.zeros((self.gates * hidden,)))
        self.bias_hh_l0 = nnx.Param(jnp.zeros((self.gates * hidden,)))

    def promoted(self, x: Array) -> tuple[Array, ...]:
        """The inputs, and the weights in the order above, in the type that the layer computes in."""
        weights = (self.weight_ih_l0, self.weight_hh_l0, self.bias_ih_l0, self.bias_hh_l0)
        return promote_dtype((x, *(weight[...] for weight in weights)), dtype=self.dtype)


class GRU(Recurrent):
    """A GRU layer over (batch, length, inputs)."""

    gates = 3

    def __call__(self, x: Array, state: Array | None = None) -> tuple[Array, Array]:
        """The outputs (batch, length, hidden), and the state (batch, hidden) after the last step."""
        x, weight_ih, weight_hh, bias_ih, bias_hh = self.promoted(x)
        given = x.swapaxes(0, 1) @ weight_ih.T + bias_ih  # (length, batch, 3 * hidden)
        state = jnp.zeros((len(x), self.hidden)) if state is None else state
        last, outputs = gru(given, state, weight_hh, bias_hh)
        return outputs.swapaxes(0, 1), last


class LSTM(Recurrent):
    """An LSTM layer over (length, batch, inputs)."""

    gates = 4

    def __call__(self, x: Array) -> Array:
        """The outputs (length, batch, hidden)."""
        x, weight_ih, weight_hh, bias_ih, bias_hh = self.promoted(x)
        given = x @ weight_ih.T + (bias_ih + bias_hh)  # (length, batch, 4 * hidden)
        return lstm(given, jnp.zeros((x.shape[1], self.hidden)), weight_hh)


@jax.jit
def gru(given: Array, state: Array, weight: Array, bias: Array) -> tuple[Array, Array]:
    """Inputs' products (length, batch, 3 * hidden) and first state to the last state (batch, hidden) and all states."""

    def step(state: Array, given: Array) -> tuple[Array, Array]:
        reset_x, update_x, new_x = jnp.split(given, 3, axis=1)
        reset_h, update_h, new_h = jnp.split(state.astype(weight.dtype) @ weight.T + bias, 3, axis=1)
        reset, update = nnx.sigmoid(reset_x + reset_h), nnx.sigmoid(update_x + update_h)
        new = jnp.tanh(new_x + reset * new_h)
        state = new + update * (state - new)  # (batch, hidden)
        return state, state

    return jax.lax.scan(step, state, given)


@jax.jit
def lstm(given: Array, zeros: Array, weight: Array) -> Array:
    """Inputs' products with all biases (length, batch, 4 * hidden) to all states (length, batch, hidden)."""

    def step(carry: tuple[Array, Array], given: Array) -> tuple[tuple[Array, Array], Array]:
        state, cell = carry
        entry, forget, new, exit_ = jnp.split(given + state.astype(weight.dtype) @ weight.T, 4, axis=1)
        cell = nnx.sigmoid(forget) * cell + nnx.sigmoid(entry) * jnp.tanh(new)
        state = nnx.sigmoid(exit_) * jnp.tanh(cell)  # (batch, hidden)
        return (state, cell), state

    return jax.lax.scan(step, (zeros, zeros), given)[1]
