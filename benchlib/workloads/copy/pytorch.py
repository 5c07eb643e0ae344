"""The workload ``copy`` in PyTorch."""

from __future__ import annotations

from torch import Tensor, nn

from benchlib.workloads import Values


class Copy(nn.Module):
    """An array (batch, elements) to a new one with the same numbers."""

    def forward(self, x: Tensor) -> Tensor:
        return x.clone()


def build(values: Values) -> Copy:
    """The operator: (batch, elements) to (batch, elements)."""
    return Copy()
