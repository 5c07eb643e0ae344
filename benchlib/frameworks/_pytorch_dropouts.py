"""The dropouts of a PyTorch model: seen one by one, or given masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import functional as F

from benchlib.frameworks import Draw, NoMasks

try:
    from torch.overrides import TorchFunctionMode
except ImportError:
    from benchlib.frameworks._pytorch_old import TorchFunctionMode

RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_DROPOUT = F.dropout  # itself, while another stands in its place
_ATTENTION = getattr(F, "scaled_dot_product_attention", None)


class Dropping(TorchFunctionMode):
    """Calls ``drop`` at each dropout of a forward pass, and ``attend`` at each attention that is one operator. Layers
    of a recurrent operator that drops between them are called one by one.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, getattr(function, "__name__", "")
        if function in (Tensor.backward, torch.autograd.backward, torch.autograd.grad):
            engine = torch.autograd.Variable._execution_engine
            seen = SimpleNamespace(run_backward=self.see(engine.run_backward), queue_callback=engine.queue_callback)
            with patch.object(torch.autograd.Variable, "_execution_engine", seen):
                return function(*args, **kwargs)
        return self.substitute(function, name, args, kwargs)

    def see(self, run: Callable) -> Callable:
        """The way back in this mode, which sees a layer that is computed again there."""

        def seen(*args, **kwargs):
            with self:
                return run(*args, **kwargs)

        return seen

    def substitute(self, function: Callable, name: str, args: tuple, kwargs: dict) -> Any:
        """The result of a function, of which each dropout is this mode's."""
        if "dropout" in name:
            return self.drop(function, *args, **kwargs)
        if name == "scaled_dot_product_attention":
            return self.attend(function, *args, **kwargs)
        if name == "multi_head_attention_forward":  # it calls these by their names in its module
            mine = {"dropout": partial(self.drop, _DROPOUT)}
            if _ATTENTION:
                mine["scaled_dot_product_attention"] = partial(self.attend, _ATTENTION)
            with patch.multiple(F, **mine):
                return function(*args, **kwargs)
        if name in RECURRENT:
            return _recur(function, partial(self.drop, _DROPOUT), *args)
        return function(*args, **kwargs)


class Dropouts(Dropping):
    """A record of each call of a function that drops, a module's or a model's own: its name, input and output."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[tuple[str, Tensor, Tensor]] = []

    def drop(self, function: Callable, given: Tensor, *args, **kwargs) -> Tensor:
        before = given.clone()  # it may be done in place
        left = function(given, *args, **kwargs)
        self.all.append((function.__name__, before, left.clone()))
        return left

    def attend(self, function: Callable, *args, **kwargs) -> Tensor:
        self.all.append((function.__name__, *_attention_weights(function, *args, **kwargs)))
        return function(*args, **kwargs)


class Masks(Dropping):
    """Each dropout multiplies by a mask that ``take`` gives for a shape and a probability."""

    def __init__(self, take: Callable[[Sequence[int], float], Tensor]) -> None:
        super().__init__()
        self.take = take

    def drop(
        self, function: Callable, given: Tensor, p: float = 0.5, training=True, inplace=False, train=True
    ) -> Tensor:
        name = function.__name__.rstrip("_")
        if p == 0 or not (training and train):
            return given
        if name not in ("dropout", "feature_dropout", "dropout1d", "dropout2d", "dropout3d"):
            raise NoMasks(f"its model has {name!r}, which does not multiply by a mask")
        mask = self.take(given.shape, p)
        if name != "dropout":  # whole channels, by the first number of each
            leading = 1 if (name, given.dim()) in (("dropout1d", 2), ("dropout3d", 4)) else 2
            mask = mask[(slice(None),) * leading + (slice(1),) * (given.dim() - leading)]
        scaled = mask.to(given.dtype) / (1 - p) if p < 1 else torch.zeros_like(given)
        return given.mul_(scaled) if inplace or function.__name__.endswith("_") else given * scaled

    def attend(
        self, function: Callable, query: Tensor, key: Tensor, value: Tensor, attn_mask=None, dropout_p=0.0, *args, **kw
    ) -> Tensor:
        if dropout_p == 0:
            return function(query, key, value, attn_mask, dropout_p, *args, **kw)
        weights, _ = _attention_weights(function, query, key, value, attn_mask, 0.0, *args, **kw)
        value = value.repeat_interleave(query.shape[-3] // value.shape[-3], -3) if kw.get("enable_gqa") else value
        return self.drop(_DROPOUT, weights, dropout_p) @ value


class DrawnMasks(Masks):
    """Masks of one forward pass, as they are drawn. A layer that is computed again on the way back finds the random
    numbers of its first pass, if its model keeps them: by the next one a mask is found again.
    """

    def __init__(self, draw: Draw, device: torch.device) -> None:
        super().__init__(self.take_drawn)
        self.draw, self.device = draw, device
        self.places: dict[int, int] = {}  # by that random number

    def take_drawn(self, shape: Sequence[int], p: float) -> Tensor:
        place = self.places.setdefault(int(torch.randint(2**62, ())), len(self.places))
        return torch.tensor(self.draw(place, tuple(shape), p), device=self.device)


def _attention_weights(
    attend: Callable, query: Tensor, key: Tensor, value: Tensor, attn_mask=None, dropout_p=0.0, *args, **others
) -> tuple[Tensor, Tensor]:
    """The weights of an attention that is one operator, without and with its dropout. They are its output with the
    identity in place of the values.
    """
    length = key.shape[-2]
    identity = torch.eye(length, dtype=value.dtype, device=value.device).expand(*value.shape[:-2], length, length)
    return tuple(attend(query, key, identity, attn_mask, p, *args, **others) for p in (0.0, dropout_p))


def _recur(operator: Callable, drop: Callable[[Tensor, float], Tensor], *args) -> tuple[Tensor, ...]:
    """A recurrent operator, which drops between its layers, layer by layer."""
    before = 2 if isinstance(args[3], bool) else 3  # arguments before the weights; of a packed sequence it has one more
    given, *sizes = args[: before - 1]
    weights, bias, layers, p, training, bidirectional, *others = args[before:]
    if p == 0 or not training or layers == 1:
        return operator(*args)
    each, ways, states = len(weights) // layers, 1 + bidirectional, []
    for layer in range(layers):
        own = _narrow(args[before - 1], ways * layer, ways)
        own_weights = weights[each * layer : each * (layer + 1)]
        given, *state = operator(given, *sizes, own, own_weights, bias, 1, 0.0, training, bidirectional, *others)
        states.append(state)
        if layer < layers - 1:
            given = drop(given, p)
    return (given, *map(torch.cat, zip(*states)))


def _narrow(state: Tensor | Sequence[Tensor], first: int, layers: int) -> Any:
    """The part of some layers of a recurrent operator's state, which may be of several tensors."""
    if isinstance(state, Tensor):
        return state[first : first + layers]
    return tuple(one[first : first + layers] for one in state)
