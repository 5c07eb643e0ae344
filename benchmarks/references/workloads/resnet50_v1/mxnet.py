"""The workload ``resnet50_v1`` in MXNet."""

from __future__ import annotations

from mxnet.gluon import HybridBlock, nn

from benchlib.workloads import Values
from benchlib.workloads.resnet50.mxnet import Convolution, Model, loss, optimizer

from .workload import BIASED, PLACES

__all__ = ["build", "loss", "optimizer"]


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    model, biased = Model(values), BIASED[values["biases"]]
    _replace(model.stem, 2 if values["stem"] == "7x7" else 1, "stem" in biased)
    for number, stage in enumerate((model.stage1, model.stage2, model.stage3, model.stage4)):
        for number_in_stage, block in enumerate(stage):
            stride = 2 if number and not number_in_stage else 1
            for place in PLACES:
                _replace(getattr(block, place), stride if place in ("reduce", "shortcut") else 1, place in biased)
    return model


def _replace(module: HybridBlock, stride: int, bias: bool) -> None:
    """Give a convolution and its normalisation another convolution, with this stride and with or without a bias."""
    if isinstance(module, Convolution):  # a shortcut may be none
        outputs, inputs, kernel, _ = module.conv.weight.shape
        module.conv = nn.Conv2D(outputs, kernel, stride, kernel // 2, use_bias=bias, in_channels=inputs)
