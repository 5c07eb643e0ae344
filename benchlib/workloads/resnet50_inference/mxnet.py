"""The workload ``resnet50_inference`` in MXNet."""

from __future__ import annotations

from mxnet.gluon import nn

from benchlib.workloads import Values
from benchlib.workloads.resnet50.mxnet import Model


def build(values: Values) -> Model:
    """Images (batch, 3, size, size) to logits (batch, 10) or features (batch, 2048)."""
    model = Model(values)
    if values["output"] == "features":
        model.dense = nn.HybridSequential()
    return model
