"""The workload ``gcn_library``: two of torch_geometric's GCNConv, with the loss and the optimizer of ``gcn``."""

from __future__ import annotations

from torch import Tensor, nn
from torch_geometric.nn import GCNConv

from benchlib.workloads import Values
from benchlib.workloads.gcn.pytorch import loss, optimizer

__all__ = ["build", "loss", "optimizer"]


class Model(nn.Module):
    """As ``gcn``'s: the edges come with their weights, so the library need not compute these."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.conv1 = GCNConv(values["features"], values["hidden"], normalize=False)
        self.conv2 = GCNConv(values["hidden"], values["classes"], normalize=False)
        self.relu = nn.ReLU()
        self.penalty = values["weight_decay"]
        self.dropout1 = nn.Dropout(values["dropout"])
        self.dropout2 = nn.Dropout(values["dropout"])

    def forward(self, features: Tensor, edges: Tensor, weights: Tensor) -> Tensor:
        edge_index = edges[0].T.contiguous()  # (2, edges)
        x = self.relu(self.conv1(self.dropout1(features[0]), edge_index, weights[0]))
        return self.conv2(self.dropout2(x), edge_index, weights[0]).unsqueeze(0)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)
