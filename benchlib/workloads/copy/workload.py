"""The workload ``copy``, free of any framework."""

from __future__ import annotations

import numpy as np

from benchlib.workloads import Hyperparameter, Values, Weight, Work, Workload


def weights(values: Values) -> dict[str, Weight]:
    """A copy has none."""
    return {}


def inputs(values: Values, batch_size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Draw one batch: the array (batch, elements), and an unused gradient of the same shape, float32."""
    array = rng.standard_normal((batch_size, values["elements"]), dtype=np.float32)
    return array, np.zeros((batch_size, 1), np.float32)


WORKLOAD = Workload(
    name="copy",
    title="Copy",
    kind="operator",
    source="a copy of an array into a new one, for the machine's memory bandwidth",
    data=("random",),
    weights=weights,
    hyperparameters={
        "elements": Hyperparameter(2**20, "numbers of a sample", minimum=1),
        "passes": Hyperparameter("forward", "the passes of a step", choices=("forward",)),
    },
    batch_size=16,
    settled={
        "TensorFlow: copy": "the operator DeepCopy, because tf.identity hands on the memory that it was given",
        "MXNet: copy": "identity makes a new array in both modes, as clone does in PyTorch",
        "JAX: copy": "an operation of its own, which jax.jit keeps: an array only handed on would not be copied",
    },
    unit="samples",
    inputs=inputs,
    work=lambda values: Work(multiply_adds=0.0, least_bytes=8.0 * values["elements"]),
)
