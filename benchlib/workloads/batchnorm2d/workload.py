"""The workload ``batchnorm2d``, free of any framework."""

from __future__ import annotations

import numpy as np

from benchlib.workloads import Hyperparameter, Values, Weight, Work, Workload
from benchlib.workloads.settled import (
    BEHAVIOUR,
    CHAINER,
    CHAINER_GRADIENTS,
    CHAINER_NORM,
    GRADIENTS,
    INITIAL_WEIGHTS,
    JAX_GRADIENTS,
    JAX_IMAGES,
    JAX_WEIGHTS,
    MXNET,
    MXNET_GRADIENTS,
    MXNET_NORM,
    NORM_NAMES,
    PADDLE_GRADIENTS,
    PADDLE_NORM,
    TENSORFLOW_GRADIENTS,
    TENSORFLOW_IMAGES,
    TENSORFLOW_WEIGHTS,
)


def weights(values: Values) -> dict[str, Weight]:
    """Names (PyTorch's), shapes and initial distributions of all weights."""
    shape = (values["channels"],)
    return {
        "weight": Weight(shape, "normal"),  # not ones and zeros, or comparing models would not see them
        "bias": Weight(shape, "normal"),
        "running_mean": Weight(shape, "zeros", trained=False),
        "running_var": Weight(shape, "ones", trained=False),
    }


def inputs(values: Values, batch_size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw one batch: images and gradient of the output, both (batch, channels, size, size), float32."""
    shape = (batch_size, values["channels"], values["image_size"], values["image_size"])
    return rng.standard_normal(shape, dtype=np.float32), rng.standard_normal(shape, dtype=np.float32)


WORKLOAD = Workload(
    name="batchnorm2d",
    title="BatchNorm2d",
    kind="operator",
    source="the operator alone, in training behaviour (batch statistics), on normally distributed random inputs",
    data=("random",),
    weights=weights,
    hyperparameters={
        "channels": Hyperparameter(64, "channels of the input", minimum=1),
        "image_size": Hyperparameter(32, "height and width of the images in pixels", minimum=1),
        "momentum": Hyperparameter(
            0.1, "weight of the new batch in the running statistics (MindSpore counts 1 - momentum)", minimum=0.0
        ),
        "passes": Hyperparameter("forward+backward", "the passes of a step", choices=("forward", "forward+backward")),
    },
    batch_size=32,
    settled={
        **INITIAL_WEIGHTS,
        **GRADIENTS,
        **BEHAVIOUR,
        **NORM_NAMES,
        "momentum of batch normalisation": (
            "1 - momentum in MindSpore, which counts the share of the old statistics, and PyTorch that of the new batch"
        ),
        "epsilon of batch normalisation": "given to both as 1e-5",
        **JAX_WEIGHTS,
        **JAX_IMAGES,
        **JAX_GRADIENTS,
        "JAX: batch normalisation": (
            "1 - momentum, because flax counts the share of the old statistics; the running variance is made that of a "
            "sample (over one number less), as PyTorch's is: flax's is that of the batch"
        ),
        **TENSORFLOW_WEIGHTS,
        **TENSORFLOW_IMAGES,
        **TENSORFLOW_GRADIENTS,
        "TensorFlow: batch normalisation": (
            "the operator FusedBatchNormV3, whose running variance is that of a sample (over one number less), as "
            "PyTorch's is: that of Keras's own layer is the batch's; 1 - momentum is given, as in MindSpore"
        ),
        **MXNET,
        **MXNET_NORM,
        **MXNET_GRADIENTS,
        **CHAINER,
        **CHAINER_NORM,
        **CHAINER_GRADIENTS,
        **PADDLE_NORM,
        **PADDLE_GRADIENTS,
    },
    unit="samples",
    inputs=inputs,
    work=lambda values: Work(
        multiply_adds=float(values["channels"] * values["image_size"] ** 2),
        least_bytes=8.0 * values["channels"] * values["image_size"] ** 2,  # reads the input, writes the output
    ),
)
