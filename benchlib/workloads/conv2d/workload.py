"""The workload ``conv2d``, free of any framework."""

from __future__ import annotations

import numpy as np

from benchlib.errors import BenchlibError
from benchlib.workloads import Hyperparameter, Values, Weight, Work, Workload, taps
from benchlib.workloads.settled import (
    CHAINER_GRADIENTS,
    GRADIENTS,
    INITIAL_WEIGHTS,
    JAX_GRADIENTS,
    JAX_IMAGES,
    JAX_PADDING,
    JAX_WEIGHTS,
    MXNET_GRADIENTS,
    PADDING,
    PADDLE_GRADIENTS,
    TENSORFLOW_GRADIENTS,
    TENSORFLOW_IMAGES,
    TENSORFLOW_PADDING,
    TENSORFLOW_WEIGHTS,
    WITH_BIAS,
)


def weights(values: Values) -> dict[str, Weight]:
    """Names (PyTorch's), shapes and initial distributions of all weights."""
    inputs, outputs, kernel = values["in_channels"], values["out_channels"], values["kernel"]
    fan = (inputs * kernel * kernel, outputs * kernel * kernel)
    return {
        "weight": Weight((outputs, inputs, kernel, kernel), "glorot_uniform", fan),
        "bias": Weight((outputs,), "normal"),  # not zero, or comparing models would not see it
    }


def inputs(values: Values, batch_size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw one batch, float32: images (batch, in_channels, size, size) and the gradient of the output (batch,
    out_channels, size', size').
    """
    size, size_out = values["image_size"], _size_out(values)
    images = rng.standard_normal((batch_size, values["in_channels"], size, size), dtype=np.float32)
    gradient = rng.standard_normal((batch_size, values["out_channels"], size_out, size_out), dtype=np.float32)
    return images, gradient


def fits(values: Values) -> None:
    """Raise a BenchlibError where the kernel does not fit into the padded image."""
    if _size_out(values) < 1:
        size, padding = values["image_size"], values["padding"]
        raise BenchlibError(
            f"conv2d: kernel {values['kernel']} does not fit into images of {size}x{size} padded by {padding}: "
            f"take a kernel of at most {size + 2 * padding}"
        )


def work(values: Values) -> Work:
    """The work of a sample's forward pass."""
    numbers_out = values["out_channels"] * _size_out(values) ** 2
    numbers_in = values["in_channels"] * values["image_size"] ** 2
    multiply_adds = values["in_channels"] * values["out_channels"]
    multiply_adds *= taps(values["image_size"], values["kernel"], values["padding"]) ** 2
    return Work(float(multiply_adds), 4.0 * (numbers_in + numbers_out))


def _size_out(values: Values) -> int:
    return values["image_size"] + 2 * values["padding"] - values["kernel"] + 1


WORKLOAD = Workload(
    name="conv2d",
    title="Conv2d",
    kind="operator",
    source="the operator alone, stride 1, with bias, on normally distributed random inputs",
    data=("random",),
    weights=weights,
    hyperparameters={
        "in_channels": Hyperparameter(64, "channels of the input", minimum=1),
        "out_channels": Hyperparameter(64, "channels of the output", minimum=1),
        "kernel": Hyperparameter(3, "height and width of the kernel in pixels", minimum=1),
        "padding": Hyperparameter(1, "zeros added on each side in pixels", minimum=0),
        "image_size": Hyperparameter(32, "height and width of the images in pixels", minimum=1),
        "passes": Hyperparameter("forward+backward", "the passes of a step", choices=("forward", "forward+backward")),
    },
    batch_size=32,
    settled={
        **INITIAL_WEIGHTS,
        **GRADIENTS,
        **PADDING,
        **WITH_BIAS,
        **JAX_WEIGHTS,
        **JAX_IMAGES,
        **JAX_PADDING,
        **JAX_GRADIENTS,
        **TENSORFLOW_WEIGHTS,
        **TENSORFLOW_IMAGES,
        **TENSORFLOW_PADDING,
        **TENSORFLOW_GRADIENTS,
        **MXNET_GRADIENTS,
        **CHAINER_GRADIENTS,
        **PADDLE_GRADIENTS,
    },
    unit="samples",
    inputs=inputs,
    fits=fits,
    work=work,
)
