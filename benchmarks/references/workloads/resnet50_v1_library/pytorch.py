"""The workload ``resnet50_v1_library`` in PyTorch: that of ``resnet50_v1``, which the others are held against."""

from __future__ import annotations

from torch import nn

from benchlib.workloads import Values

from ..resnet50_library.pytorch import with_momentum
from ..resnet50_v1.pytorch import build as own
from ..resnet50_v1.pytorch import loss, optimizer

__all__ = ["build", "loss", "optimizer"]


def build(values: Values) -> nn.Module:
    """The model with these hyperparameters."""
    return with_momentum(own(values), values)
