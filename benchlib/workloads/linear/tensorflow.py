"""The workload ``linear`` in TensorFlow."""

from __future__ import annotations

from keras import layers

from benchlib.workloads import Values


def build(values: Values) -> layers.Dense:
    """The operator: (batch, in_features) to (batch, out_features)."""
    dense = layers.Dense(values["out_features"])
    dense.build((None, values["in_features"]))
    return dense
