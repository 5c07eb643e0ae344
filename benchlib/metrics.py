"""The metrics: computed in the parent from the predictions that workers return, one code for all frameworks."""

from __future__ import annotations

import numpy as np


def accuracy(predictions: np.ndarray, labels: np.ndarray) -> float:
    """The share of predicted classes (n,) that equal the labels (n,): between 0 and 1."""
    if predictions.shape != labels.shape:
        raise ValueError(f"{predictions.shape} predictions for {labels.shape} labels")
    return float(np.mean(predictions == labels))


METRICS = {"accuracy": accuracy}
RANGES = {"accuracy": (0.0, 1.0)}
"""The values that a metric can have: a threshold outside can never be reached."""
