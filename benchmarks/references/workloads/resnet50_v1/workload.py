"""What the workload ``resnet50_v1`` is: ``resnet50`` with the stride of a block in its first convolution, as in the
paper, and biases of convolutions, where Keras's and Gluon's own models have them.

Each framework's file takes the model of ``resnet50`` and changes these alone. A bias before batch normalisation has a
gradient of 0, which rounding makes something of: TensorFlow and PyTorch differ in those of the stem's and of the first
shortcut's in every trial, and the gate calls them different for it.
"""

from __future__ import annotations

from dataclasses import replace

from benchlib.workloads import Hyperparameter, Values, Weight
from benchlib.workloads.resnet50.workload import WORKLOAD as RESNET50
from benchlib.workloads.resnet50.workload import weights as own

PLACES = ("reduce", "conv", "expand", "shortcut")
"""Of convolutions in a block."""

BIASED = {"all": ("stem", *PLACES), "on the way": ("reduce", "expand")}
"""Which convolutions have a bias: in Keras all, in Gluon those of 1x1 that are no shortcut."""


def weights(values: Values) -> dict[str, Weight]:
    """Those of ``resnet50``, and the biases."""
    found = own(values)
    for name, weight in own(values).items():
        *_, place, layer, kind = f".{name}".split(".")
        if layer == "conv" and kind == "weight" and place in BIASED[values["biases"]]:
            found[name.replace("conv.weight", "conv.bias")] = Weight(weight.shape[:1], "zeros")
    return found


WORKLOAD = replace(
    RESNET50,
    name="resnet50_v1",
    title="ResNet-50 v1",
    weights=weights,
    work=None,  # that of resnet50 is another
    hyperparameters={
        **RESNET50.hyperparameters,
        "biases": Hyperparameter("all", "convolutions that have a bias", choices=tuple(BIASED)),
    },
    gate=replace(RESNET50.gate, learning_rate=1e-4),  # with CAREFUL_RATE the second step meets a kink, in TensorFlow
)
