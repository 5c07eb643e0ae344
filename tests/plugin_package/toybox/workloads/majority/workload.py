"""What the workload ``majority`` is: a linear classifier of rows of bits."""

from __future__ import annotations

import numpy as np

from benchlib.workloads import Hyperparameter, Metric, Values, Weight, Workload

BITS = 7


def weights(values: Values) -> dict[str, Weight]:
    """Names, shapes and initial distributions of all weights."""
    return {"weight": Weight((2, BITS), "glorot_uniform", (BITS, 2)), "bias": Weight((2,), "zeros")}


def balanced(predictions: np.ndarray, labels: np.ndarray) -> float:
    """The mean over the classes of the share of their samples that are recognised."""
    return float(np.mean([np.mean(predictions[labels == label] == label) for label in (0, 1)]))


WORKLOAD = Workload(
    name="majority",
    title="majority of bits",
    kind="training",
    source="the plug-in's author",
    data=("bits",),
    weights=weights,
    hyperparameters={"momentum": Hyperparameter(0.5, "of gradient descent", minimum=0.0, below=1.0)},
    batch_size=16,
    learning_rate=0.5,
    metric="balanced accuracy",
    own_metric=Metric(balanced, 0.0, 1.0),
    thresholds={"bits": 0.9},
    unit="rows",
    optimizer_state=1,
)
