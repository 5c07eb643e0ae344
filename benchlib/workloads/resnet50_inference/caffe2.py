"""The workload ``resnet50_inference`` in Caffe2; the model is here, for there is no ``resnet50`` that trains."""

from __future__ import annotations

from caffe2.python import brew
from caffe2.python.core import BlobReference
from caffe2.python.model_helper import ModelHelper

from benchlib.workloads import Values, _caffe2
from benchlib.workloads.resnet50.workload import EXPANSION, STAGES


def convolution(
    net: ModelHelper, x: BlobReference, name: str, inputs: int, outputs: int, kernel: int, stride: int = 1
) -> BlobReference:
    """A convolution without bias, and batch normalisation."""
    x = brew.conv(net, x, f"{name}.conv", inputs, outputs, kernel=kernel, stride=stride, pad=kernel // 2, no_bias=True)
    return _caffe2.norm(net, x, f"{name}.norm", outputs)


def block(net: ModelHelper, x: BlobReference, name: str, inputs: int, width: int, stride: int) -> BlobReference:
    """(batch, inputs, side, side) to (batch, 4 * width, side / stride, side / stride)."""
    y = convolution(net, x, f"{name}.reduce", inputs, width, 1)
    y = convolution(net, brew.relu(net, y, y), f"{name}.conv", width, width, 3, stride)
    y = convolution(net, brew.relu(net, y, y), f"{name}.expand", width, EXPANSION * width, 1)
    if name.endswith(".0"):
        x = convolution(net, x, f"{name}.shortcut", inputs, EXPANSION * width, 1, stride)
    y = brew.sum(net, [y, x], f"{name}.sum")
    return brew.relu(net, y, y)


class Model:
    """Images (batch, 3, size, size) to logits (batch, 10) or features (batch, 2048)."""

    def __init__(self, values: Values) -> None:
        self.small, self.logits = values["stem"] == "3x3", values["output"] == "logits"

    def __call__(self, net: ModelHelper, x: BlobReference, training: bool) -> BlobReference:  # (batch, 3, size, size)
        x = convolution(net, x, "stem", 3, 64, 3) if self.small else convolution(net, x, "stem", 3, 64, 7, stride=2)
        x = brew.relu(net, x, x)
        if not self.small:
            x = brew.max_pool(net, x, "pool", kernel=3, stride=2, pad=1)  # (batch, 64, size / 4, size / 4)
        inputs = 64
        for stage, (blocks, width) in enumerate(STAGES, start=1):
            for number in range(blocks):
                stride = 2 if stage > 1 and not number else 1
                x = block(net, x, f"stage{stage}.{number}", inputs, width, stride)
                inputs = EXPANSION * width
        x = brew.average_pool(net, x, "mean", global_pooling=True)  # (batch, 2048, 1, 1)
        return brew.fc(net, x, "dense", inputs, 10) if self.logits else net.net.Flatten(x, "features")


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)
