"""The workload ``resnet50_v1_library`` in TensorFlow: ``keras.applications.ResNet50``, with the loss and the
optimizer of ``resnet50``. Its epsilon is 1.001e-5, and left so: beside a variance that is nothing.
"""

from __future__ import annotations

import keras
from keras import layers
from tensorflow import Tensor

from benchlib.workloads import Values
from benchlib.workloads._keras import built
from benchlib.workloads.resnet50.tensorflow import loss, optimizer
from benchlib.workloads.resnet50.workload import STAGES

__all__ = ["build", "loss", "optimizer"]


class Named(layers.Layer):
    """Layers of the library under the workload's names; nothing calls it."""

    def __init__(self, **parts: layers.Layer) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)


class Model(keras.Model):
    """The library's model, and its layers under the workload's names, by which the session for TensorFlow finds their
    weights.
    """

    def __init__(self, values: Values) -> None:
        super().__init__()
        size = values["image_size"]
        self._library = library = keras.applications.ResNet50(
            weights=None, input_shape=(size, size, 3), classes=10, classifier_activation=None
        )
        for layer in library.layers:
            if isinstance(layer, layers.BatchNormalization):
                layer.momentum = values["norm_momentum"]
        self.stem = self._convolution("conv1")
        self.stage1, self.stage2, self.stage3, self.stage4 = (
            [self._block(f"conv{stage}_block{block + 1}", first=not block) for block in range(blocks)]
            for stage, (blocks, _) in enumerate(STAGES, 2)
        )
        self.dense = library.get_layer("predictions")

    def call(self, x: Tensor, training: bool = False) -> Tensor:  # (batch, size, size, 3)
        return self._library(x, training=training)

    def _block(self, name: str, first: bool) -> Named:
        places = {"reduce": 1, "conv": 2, "expand": 3} | ({"shortcut": 0} if first else {})
        return Named(**{place: self._convolution(f"{name}_{number}") for place, number in places.items()})

    def _convolution(self, name: str) -> Named:
        return Named(conv=self._library.get_layer(f"{name}_conv"), norm=self._library.get_layer(f"{name}_bn"))


def build(values: Values) -> keras.Model:
    """The model with these hyperparameters."""
    return built(Model(values), keras.Input((values["image_size"], values["image_size"], 3)))
