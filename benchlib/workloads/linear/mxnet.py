"""The workload ``linear`` in MXNet."""

from __future__ import annotations

from mxnet.gluon import nn

from benchlib.workloads import Values


def build(values: Values) -> nn.Dense:
    """The operator: (batch, in_features) to (batch, out_features)."""
    return nn.Dense(values["out_features"], in_units=values["in_features"])
