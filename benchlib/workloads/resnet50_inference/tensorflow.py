"""The workload ``resnet50_inference`` in TensorFlow."""

from __future__ import annotations

import keras
from keras import layers

from benchlib.workloads import Values
from benchlib.workloads._keras import built
from benchlib.workloads.resnet50.tensorflow import Model


def build(values: Values) -> keras.Model:
    """Images (batch, size, size, 3) to logits (batch, 10) or features (batch, 2048)."""
    model = Model(values)
    if values["output"] == "features":
        model.dense = layers.Identity()
    return built(model, keras.Input((values["image_size"], values["image_size"], 3)))
