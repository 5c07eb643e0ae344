"""The workload ``resnet50_inference`` in PaddlePaddle."""

from __future__ import annotations

from paddle import nn

from benchlib.workloads import Values
from benchlib.workloads.resnet50.paddle import Model


def build(values: Values) -> Model:
    """Images (batch, 3, size, size) to logits (batch, 10) or features (batch, 2048)."""
    model = Model(values)
    if values["output"] == "features":
        model.dense = nn.Identity()
    return model
