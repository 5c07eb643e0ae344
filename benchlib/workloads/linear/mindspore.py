"""The workload ``linear`` in MindSpore."""

from __future__ import annotations

from mindspore import nn

from benchlib.workloads import Values


def build(values: Values) -> nn.Dense:
    """The operator: (batch, in_features) to (batch, out_features)."""
    return nn.Dense(values["in_features"], values["out_features"])
