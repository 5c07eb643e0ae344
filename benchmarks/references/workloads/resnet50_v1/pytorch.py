"""The workload ``resnet50_v1`` in PyTorch, which the others are held against."""

from __future__ import annotations

import torch
from torch import nn

from benchlib.workloads import Values
from benchlib.workloads.resnet50.pytorch import Convolution, Model, loss, optimizer

from .workload import BIASED, PLACES

__all__ = ["build", "loss", "optimizer"]


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    model, biased = Model(values), BIASED[values["biases"]]
    convolutions = [("stem", model.stem)]
    for stage in (model.stage1, model.stage2, model.stage3, model.stage4):
        for block in stage:
            block.reduce.conv.stride, block.conv.conv.stride = block.conv.conv.stride, block.reduce.conv.stride
            convolutions += [(place, getattr(block, place)) for place in PLACES]
    for place, module in convolutions:
        if place in biased and isinstance(module, Convolution):  # a shortcut may be none
            module.conv.bias = nn.Parameter(torch.zeros(module.conv.out_channels))
    return model
