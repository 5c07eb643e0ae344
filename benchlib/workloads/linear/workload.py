"""The workload ``linear``, free of any framework."""

from __future__ import annotations

import numpy as np

from benchlib.workloads import Hyperparameter, Values, Weight, Work, Workload
from benchlib.workloads.settled import (
    CHAINER_GRADIENTS,
    GRADIENTS,
    INITIAL_WEIGHTS,
    JAX_GRADIENTS,
    JAX_WEIGHTS,
    MXNET_GRADIENTS,
    PADDLE_GRADIENTS,
    PADDLE_WEIGHTS,
    TENSORFLOW_GRADIENTS,
    TENSORFLOW_WEIGHTS,
)


def weights(values: Values) -> dict[str, Weight]:
    """Names (PyTorch's), shapes and initial distributions of all weights."""
    inputs, outputs = values["in_features"], values["out_features"]
    return {
        "weight": Weight((outputs, inputs), "glorot_uniform", (inputs, outputs)),
        "bias": Weight((outputs,), "normal"),  # not zero, or comparing models would not see it
    }


def inputs(values: Values, batch_size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw one batch: features (batch, in_features), gradient of the output (batch, out_features), float32."""
    features = rng.standard_normal((batch_size, values["in_features"]), dtype=np.float32)
    gradient = rng.standard_normal((batch_size, values["out_features"]), dtype=np.float32)
    return features, gradient


WORKLOAD = Workload(
    name="linear",
    title="Linear",
    kind="operator",
    source="the operator alone, with bias, on normally distributed random inputs",
    data=("random",),
    weights=weights,
    hyperparameters={
        "in_features": Hyperparameter(512, "features of the input", minimum=1),
        "out_features": Hyperparameter(512, "features of the output", minimum=1),
        "passes": Hyperparameter("forward+backward", "the passes of a step", choices=("forward", "forward+backward")),
    },
    batch_size=64,
    settled={
        **INITIAL_WEIGHTS,
        **GRADIENTS,
        **JAX_WEIGHTS,
        **JAX_GRADIENTS,
        **TENSORFLOW_WEIGHTS,
        **TENSORFLOW_GRADIENTS,
        **MXNET_GRADIENTS,
        **CHAINER_GRADIENTS,
        **PADDLE_WEIGHTS,
        **PADDLE_GRADIENTS,
    },
    unit="samples",
    inputs=inputs,
    work=lambda values: Work(
        multiply_adds=float(values["in_features"] * values["out_features"]),
        least_bytes=4.0 * (values["in_features"] + values["out_features"]),  # the weights are shared by the batch
    ),
)
