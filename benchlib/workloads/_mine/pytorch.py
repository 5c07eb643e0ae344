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
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p *= values["dropout"]
        elif isinstance(getattr(module, "dropout", None), float):  # of attention and recurrent layers
            module.dropout *= values["dropout"]
    for name, weight in model.named_parameters():
        if name in document.get("frozen", ()):
            weight.requires_grad_(False)
    return model


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
