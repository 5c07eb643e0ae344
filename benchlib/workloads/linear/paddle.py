"""The workload ``linear`` in PaddlePaddle."""

from __future__ import annotations

from paddle import nn

from benchlib.workloads import Values


def build(values: Values) -> nn.Linear:
    """The operator: (batch, in_features) to (batch, out_features)."""
    return nn.Linear(values["in_features"], values["out_features"])
