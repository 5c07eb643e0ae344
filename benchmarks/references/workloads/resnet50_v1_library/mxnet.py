"""The workload ``resnet50_v1_library`` in MXNet: ``resnet50_v1`` of Gluon's model zoo, with the loss and the
optimizer of ``resnet50``.
"""

from __future__ import annotations

from types import ModuleType

from mxnet import nd
from mxnet.gluon import HybridBlock, nn
from mxnet.gluon.model_zoo import vision
from mxnet.ndarray import NDArray

from benchlib.workloads import Values
from benchlib.workloads.resnet50.mxnet import loss, optimizer

__all__ = ["build", "loss", "optimizer"]

IN_BODY = {"reduce": 0, "conv": 3, "expand": 6}
"""Places of convolutions in the body of a block; behind each is its normalisation."""


class Named(HybridBlock):
    """Blocks of the library under the workload's names; nothing calls it."""

    def __init__(self, **blocks: HybridBlock) -> None:
        super().__init__()
        for name, block in blocks.items():
            setattr(self, name, block)


class Model(HybridBlock):
    """The library's model, and its blocks under the workload's names, by which the session for MXNet finds their
    parameters. The model itself is no child, or it would have them under its own names, too.
    """

    def __init__(self, values: Values) -> None:
        super().__init__()
        library = vision.resnet50_v1(classes=10)
        library.infer_shape(nd.zeros((1, 3, values["image_size"], values["image_size"])))
        conv, norm, _, _, *stages, _ = library.features
        self.stem = Named(conv=conv, norm=norm)
        self.stage1, self.stage2, self.stage3, self.stage4 = map(_stage, stages)
        self.dense = library.output
        self.library = library.__call__
        self.apply(lambda block: _set_momentum(block, values["norm_momentum"]))

    def hybrid_forward(self, F: ModuleType, x: NDArray) -> NDArray:  # (batch, 3, size, size)
        return self.library(x)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def _stage(blocks: nn.HybridSequential) -> nn.HybridSequential:
    stage = nn.HybridSequential()
    for block in blocks:
        places = {name: Named(conv=block.body[at], norm=block.body[at + 1]) for name, at in IN_BODY.items()}
        if block.downsample is not None:
            places["shortcut"] = Named(conv=block.downsample[0], norm=block.downsample[1])
        stage.add(Named(**places))
    return stage


def _set_momentum(block: HybridBlock, momentum: float) -> None:
    if isinstance(block, nn.BatchNorm):
        block._kwargs["momentum"] = momentum
