"""Layers that flax has not, or has with other weights than the rest: see ``settled`` of the workloads that use them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
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


class GRU(nnx.Module):
    """A GRU layer over (batch, length, inputs), with the weights of cuDNN's: a bias of the state for each gate, too.

    The products with the inputs are made of all steps at once, before the loop.
    """

    def __init__(self, inputs: int, hidden: int, rngs: nnx.Rngs) -> None:
        initial = nnx.initializers.lecun_normal()
        self.hidden = hidden
        self.weight_ih_l0 = nnx.Param(initial(rngs.params(), (3 * hidden, inputs)))
        self.weight_hh_l0 = nnx.Param(initial(rngs.params(), (3 * hidden, hidden)))
        self.bias_ih_l0 = nnx.Param(jnp.zeros((3 * hidden,)))
        self.bias_hh_l0 = nnx.Param(jnp.zeros((3 * hidden,)))

    def __call__(self, x: Array, state: Array | None = None) -> tuple[Array, Array]:
        """The outputs (batch, length, hidden), and the state (batch, hidden) after the last step."""
        weight, bias = self.weight_hh_l0[...].T, self.bias_hh_l0[...]
        given = x.swapaxes(0, 1) @ self.weight_ih_l0[...].T + self.bias_ih_l0[...]  # (length, batch, 3 * hidden)

        def step(state: Array, given: Array) -> tuple[Array, Array]:
            reset_x, update_x, new_x = jnp.split(given, 3, axis=1)
            reset_h, update_h, new_h = jnp.split(state @ weight + bias, 3, axis=1)
            reset, update = nnx.sigmoid(reset_x + reset_h), nnx.sigmoid(update_x + update_h)
            new = jnp.tanh(new_x + reset * new_h)
            state = new + update * (state - new)  # (batch, hidden)
            return state, state

        first = jnp.zeros((x.shape[0], self.hidden), given.dtype) if state is None else state
        last, outputs = jax.lax.scan(step, first, given)
        return outputs.swapaxes(0, 1), last


class LSTM(nnx.Module):
    """An LSTM layer over (length, batch, inputs), with the weights of cuDNN's: a bias of the state, too.

    The products with the inputs are made of all steps at once, before the loop.
    """

    def __init__(self, inputs: int, hidden: int, rngs: nnx.Rngs) -> None:
        initial = nnx.initializers.lecun_normal()
        self.hidden = hidden
        self.weight_ih_l0 = nnx.Param(initial(rngs.params(), (4 * hidden, inputs)))
        self.weight_hh_l0 = nnx.Param(initial(rngs.params(), (4 * hidden, hidden)))
        self.bias_ih_l0 = nnx.Param(jnp.zeros((4 * hidden,)))
        self.bias_hh_l0 = nnx.Param(jnp.zeros((4 * hidden,)))

    def __call__(self, x: Array) -> Array:
        """The outputs (length, batch, hidden)."""
        weight = self.weight_hh_l0[...].T
        given = (
            x @ self.weight_ih_l0[...].T + self.bias_ih_l0[...] + self.bias_hh_l0[...]
        )  # (length, batch, 4 * hidden)

        def step(carry: tuple[Array, Array], given: Array) -> tuple[tuple[Array, Array], Array]:
            state, cell = carry
            entry, forget, new, exit_ = jnp.split(given + state @ weight, 4, axis=1)
            cell = nnx.sigmoid(forget) * cell + nnx.sigmoid(entry) * jnp.tanh(new)
            state = nnx.sigmoid(exit_) * jnp.tanh(cell)  # (batch, hidden)
            return (state, cell), state

        zeros = jnp.zeros((x.shape[1], self.hidden), given.dtype)
        _, outputs = jax.lax.scan(step, (zeros, zeros), given)
        return outputs
