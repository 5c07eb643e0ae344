"""The workload ``resnet50_inference``, free of any framework."""

from __future__ import annotations

import math

import numpy as np

from benchlib.workloads import Gate, Hyperparameter, Values, Weight, Work, Workload
from benchlib.workloads.layers import Convolution, convolutions_weights, convolutions_work, dense_weights
from benchlib.workloads.resnet50.workload import EXPANSION, STAGES, convolutions
from benchlib.workloads.settled import (
    BEHAVIOUR,
    CAFFE2_NORM,
    CHAINER,
    CHAINER_NORM,
    CHAINER_POOLING,
    CNTK_NORM,
    CNTK_PADDING,
    CNTK_WEIGHTS,
    INITIAL_WEIGHTS,
    JAX_IMAGES,
    JAX_PADDING,
    JAX_WEIGHTS,
    MXNET,
    MXNET_NORM,
    NORM_NAMES,
    PADDING,
    PADDLE_NORM,
    PADDLE_WEIGHTS,
    POOLING,
    TENSORFLOW_IMAGES,
    TENSORFLOW_NORM,
    TENSORFLOW_PADDING,
    TENSORFLOW_POOLING,
    TENSORFLOW_WEIGHTS,
    THEANO_CONVOLUTION,
    THEANO_NORM,
    WITHOUT_BIAS,
)

FEATURES = EXPANSION * STAGES[-1][1]
CLASSES = 10


def outputs(values: Values) -> int:
    """Numbers that the model hands out for an image."""
    return FEATURES if values["output"] == "features" else CLASSES


def weights(values: Values) -> dict[str, Weight]:
    """Those of ``resnet50``, with batch normalisation as after training; features need no dense layer."""
    found = convolutions_weights(convolutions(values), norm_bias=0.0)
    for one in convolutions(values):
        found.update(_norm(one))
    return found if values["output"] == "features" else {**found, **dense_weights("dense", FEATURES, CLASSES)}


def _norm(convolution: Convolution) -> dict[str, Weight]:
    """Batch normalisation behind a convolution: all four arrays differ between channels and from each other.

    With those that ``resnet50`` starts from, mean 0, variance 1, scale 1 and bias 0, it would be the identity. No step
    changes them here. A framework that left the means out, or took the scale for the variance, would compute the same,
    unseen by the equivalence gate.
    """
    # The variance that the kernels of convolutions_weights make of inputs whose squares are 1/2 on average. Normally
    # distributed ones behind a ReLU are so: such a variance keeps the outputs at order 1.
    variance = convolution.inputs / convolution.outputs
    # A branch that is added to a shortcut is scaled down, or sums over 16 blocks would grow.
    scale = 0.2 if convolution.name.endswith(".expand") else 1.0
    name, shape = f"{convolution.name}.norm", (convolution.outputs,)
    return {
        f"{name}.weight": Weight(shape, "between", bounds=(0.5 * scale, 1.5 * scale)),
        f"{name}.bias": Weight(shape, "normal", deviation=0.2 * scale),
        f"{name}.running_mean": Weight(shape, "normal", deviation=0.2 * math.sqrt(variance), trained=False),
        f"{name}.running_var": Weight(shape, "between", bounds=(0.5 * variance, 1.5 * variance), trained=False),
    }


def inputs(values: Values, batch_size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw one batch: images (batch, 3, size, size) and gradient of the output (batch, outputs), float32."""
    images = rng.standard_normal((batch_size, 3, values["image_size"], values["image_size"]), dtype=np.float32)
    return images, rng.standard_normal((batch_size, outputs(values)), dtype=np.float32)


def work(values: Values) -> Work:
    """The work of a sample's forward pass."""
    return convolutions_work(convolutions(values), (FEATURES, CLASSES) if values["output"] == "logits" else (0, 0))


WORKLOAD = Workload(
    name="resnet50_inference",
    title="ResNet-50, inference",
    kind="operator",
    evaluates=True,
    source=(
        "the workload resnet50 in evaluation behaviour on random images: images per second (Xia and Zhou 2022, table "
        "4), or the 2,048 features before its dense layer (Karmanov's Rosetta Stone, "
        "https://github.com/ilkarman/DeepLearningFrameworks)"
    ),
    data=("random",),
    weights=weights,
    work=work,
    hyperparameters={
        "image_size": Hyperparameter(224, "height and width of the images in pixels", minimum=32),
        "stem": Hyperparameter("7x7", "first convolution, see resnet50", choices=("7x7", "3x3")),
        "output": Hyperparameter("logits", "the output of the model", choices=("logits", "features")),
        "passes": Hyperparameter("forward", "the passes of a step", choices=("forward",)),
    },
    batch_size=32,
    gate=Gate(batch_size=4),  # one certificate for all batch sizes
    settled={
        **INITIAL_WEIGHTS,
        **PADDING,
        **WITHOUT_BIAS,
        **POOLING,
        **BEHAVIOUR,
        **NORM_NAMES,
        "gradients": (
            "none in either: PyTorch's step runs under no_grad, and MindSpore computes them for value_and_grad only"
        ),
        **JAX_WEIGHTS,
        **JAX_IMAGES,
        **JAX_PADDING,
        **TENSORFLOW_WEIGHTS,
        **TENSORFLOW_IMAGES,
        **TENSORFLOW_PADDING,
        **TENSORFLOW_POOLING,
        **TENSORFLOW_NORM,
        **MXNET,
        **MXNET_NORM,
        "MXNet: gradients": (
            "which no step computes, and the gate compares: of training behaviour with fixed running statistics, "
            "because in evaluation oneDNN's pooling does not keep where the largest numbers were (1.9.1)"
        ),
        **CHAINER,
        **CHAINER_POOLING,
        **CHAINER_NORM,
        **CNTK_WEIGHTS,
        **CNTK_PADDING,
        **CNTK_NORM,
        **PADDLE_WEIGHTS,
        **PADDLE_NORM,
        **THEANO_CONVOLUTION,
        **THEANO_NORM,
        **CAFFE2_NORM,
    },
    unit="images",
    inputs=inputs,
    holds=lambda values: 3 * values["image_size"] ** 2 + outputs(values),
)
