"""The workload ``resnet50_v1`` in TensorFlow."""

from __future__ import annotations

import keras

from benchlib.workloads import Values
from benchlib.workloads._keras import built
from benchlib.workloads.resnet50.tensorflow import Convolution, Model, loss, optimizer

from .workload import BIASED, PLACES

__all__ = ["build", "loss", "optimizer"]


def build(values: Values) -> keras.Model:
    """The model with these hyperparameters: layers take what is changed before they are built."""
    model, biased = Model(values), BIASED[values["biases"]]
    convolutions = [("stem", model.stem)]
    for block in (*model.stage1, *model.stage2, *model.stage3, *model.stage4):
        block.reduce.conv.strides, block.conv.conv.strides = block.conv.conv.strides, block.reduce.conv.strides
        convolutions += [(place, getattr(block, place)) for place in PLACES]
    for place, layer in convolutions:
        if place in biased and isinstance(layer, Convolution):  # a shortcut may be none
            layer.conv.use_bias = True
    return built(model, keras.Input((values["image_size"], values["image_size"], 3)))
