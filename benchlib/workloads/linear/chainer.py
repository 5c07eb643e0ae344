"""The workload ``linear`` in Chainer."""

from __future__ import annotations

from chainer import links as L

from benchlib.workloads import Values


def build(values: Values) -> L.Linear:
    """The operator: (batch, in_features) to (batch, out_features)."""
    return L.Linear(values["in_features"], values["out_features"])
