"""The workload ``resnet50_library`` in PyTorch: that of ``resnet50``, which the others are held against."""

from __future__ import annotations

from torch import nn

from benchlib.workloads import Values
from benchlib.workloads.resnet50.pytorch import build as own
from benchlib.workloads.resnet50.pytorch import loss, optimizer

__all__ = ["build", "loss", "optimizer", "with_momentum"]


def build(values: Values) -> nn.Module:
    """The model with these hyperparameters."""
    return with_momentum(own(values), values)


def with_momentum(model: nn.Module, values: Values) -> nn.Module:
    """The model, whose running statistics move as fast as ``values`` say."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = 1 - values["norm_momentum"]
    return model
