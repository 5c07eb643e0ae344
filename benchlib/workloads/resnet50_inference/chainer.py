"""The workload ``resnet50_inference`` in Chainer."""

from __future__ import annotations

from chainer import functions as F

from benchlib.workloads import Values
from benchlib.workloads.resnet50.chainer import Model


def build(values: Values) -> Model:
    """Images (batch, 3, size, size) to logits (batch, 10) or features (batch, 2048)."""
    model = Model(values)
    if values["output"] == "features":
        del model.dense
        model.dense = F.identity
    return model
