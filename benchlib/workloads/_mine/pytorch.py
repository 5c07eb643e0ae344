"""What a user's own model in PyTorch gets by default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from benchlib.workloads import Values


def build(make: Callable, document: dict[str, Any], values: Values) -> nn.Module:
    """The user's model; the weights that others have joined with another one are 0 and stay so."""
    model = make()
    as_usual, factor = values["dropout"] == 1, values["dropout"]
    for name, drop in _DROPS.items():
        setattr(nn.functional, name, drop if as_usual else _dropping(drop, factor))
    if _ATTENTION:
        nn.functional.scaled_dot_product_attention = _ATTENTION if as_usual else _attending(factor)
    for module in model.modules():
        if isinstance(module, nn.RNNBase):
            module.dropout *= values["dropout"]
    for name, weight in model.named_parameters():
        if name in document.get("frozen", ()):
            weight.requires_grad_(False)
    return model


_DROPS = {name: drop for name, drop in vars(nn.functional).items() if name.rstrip("123d").endswith("dropout")}
"""PyTorch's functions that drop, which its modules and users' code call."""

_ATTENTION = getattr(nn.functional, "scaled_dot_product_attention", None)


def _dropping(drop: Callable, factor: float) -> Callable:
    """Functions, for torch.compile wants names of what stands in for one."""

    def dropping(x: Tensor, p: float = 0.5, *how: Any, **named: Any) -> Tensor:
        return drop(x, p * factor, *how, **named)

    return dropping


def _attending(factor: float) -> Callable:
    def attending(q: Tensor, k: Tensor, v: Tensor, mask: Any = None, p: float = 0.0, **named: Any) -> Tensor:
        return _ATTENTION(q, k, v, named.pop("attn_mask", mask), factor * named.pop("dropout_p", p), **named)

    return attending


def loss(document: dict[str, Any], model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy over all labels, or mean squared error."""
    *inputs, labels = batch
    outputs = model(*inputs)
    if "classes" not in document:
        return nn.functional.mse_loss(outputs, labels)
    if outputs.dim() == 3:  # (batch, length, classes)
        outputs, labels = outputs.flatten(0, 1), labels.flatten()
    return nn.functional.cross_entropy(outputs, labels)


def optimizer(model: nn.Module, values: Values, learning_rate: float) -> torch.optim.Optimizer:
    """Stochastic gradient descent with momentum."""
    weights = [one for one in model.parameters() if one.requires_grad]
    return torch.optim.SGD(weights, lr=learning_rate, momentum=values["momentum"])
