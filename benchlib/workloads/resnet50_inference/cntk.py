"""The workload ``resnet50_inference`` in CNTK. Its model is here: ``resnet50`` has no file for CNTK."""

from __future__ import annotations

import cntk as C
from cntk.layers import BatchNormalization, Dense, GlobalAveragePooling, MaxPooling

from benchlib.workloads import Values
from benchlib.workloads._cntk import Convolution2D
from benchlib.workloads.resnet50.workload import EXPANSION, STAGES


class Convolution:
    """A convolution without bias, and batch normalisation."""

    def __init__(self, outputs: int, kernel: int, stride: int = 1) -> None:
        self.conv = Convolution2D(outputs, kernel, stride)
        self.norm = BatchNormalization(map_rank=1, epsilon=1e-5)

    def __call__(self, x: C.Variable) -> C.Function:
        return self.norm(self.conv(x))


class Block:
    """(inputs, side, side) to (4 * width, side / stride, side / stride)."""

    def __init__(self, width: int, stride: int, first: bool) -> None:
        self.reduce = Convolution(width, 1)
        self.conv = Convolution(width, 3, stride)
        self.expand = Convolution(EXPANSION * width, 1)
        self.shortcut = Convolution(EXPANSION * width, 1, stride) if first else C.layers.identity

    def __call__(self, x: C.Variable) -> C.Function:
        y = C.relu(self.reduce(x))
        y = C.relu(self.conv(y))
        return C.relu(self.expand(y) + self.shortcut(x))


class Model:
    """Images (3, size, size) to logits (10): of one sample, as CNTK's shapes are."""

    def __init__(self, values: Values) -> None:
        self.small = values["stem"] == "3x3"
        self.stem = Convolution(64, 3) if self.small else Convolution(64, 7, stride=2)
        self.pool = MaxPooling((3, 3), strides=2, pad=True)
        self.stage1, self.stage2, self.stage3, self.stage4 = (
            [Block(width, 2 if number and not block else 1, first=not block) for block in range(blocks)]
            for number, (blocks, width) in enumerate(STAGES)
        )
        self.mean = GlobalAveragePooling()
        self.dense = Dense(10)

    def __call__(self, x: C.Variable) -> C.Function:  # (3, size, size)
        x = C.relu(self.stem(x))
        if not self.small:
            x = self.pool(x)  # (64, size / 4, size / 4)
        for block in (*self.stage1, *self.stage2, *self.stage3, *self.stage4):
            x = block(x)  # (2048, size / 32, size / 32) in the end
        return self.dense(self.mean(x))  # (10)


def inputs(values: Values) -> tuple[C.Variable]:
    """Images, of which the equivalence gate wants gradients."""
    return (C.input_variable((3, values["image_size"], values["image_size"]), needs_gradient=True),)


def build(values: Values) -> Model:
    """Images (3, size, size) to logits (10) or features (2048)."""
    model = Model(values)
    if values["output"] == "features":
        model.dense = C.layers.identity
    return model
