"""The workload ``gcn`` in PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchlib.workloads import Values


class Convolution(nn.Module):
    """Node features (nodes, inputs) to (nodes, outputs): transformed, then summed over each node's neighbours."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias=False)
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor, sources: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        x = self.linear(x)  # (nodes, outputs)
        messages = x.index_select(0, sources) * weights.unsqueeze(1)  # (edges, outputs)
        return torch.zeros_like(x, dtype=messages.dtype).index_add(0, targets, messages) + self.bias  # (nodes, outputs)


class Model(nn.Module):
    """A graph as a batch of one: features (1, nodes, features), edges (1, edges, 2) and weights (1, edges), to logits
    (1, nodes, classes).
    """

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.conv1 = Convolution(values["features"], values["hidden"])
        self.conv2 = Convolution(values["hidden"], values["classes"])
        self.relu = nn.ReLU()
        self.dropout1 = nn.Dropout(values["dropout"])
        self.penalty = values["weight_decay"]
        self.dropout2 = nn.Dropout(values["dropout"])

    def forward(self, features: Tensor, edges: Tensor, weights: Tensor) -> Tensor:
        sources, targets = edges[0, :, 0], edges[0, :, 1]  # (edges,) each
        x = self.dropout1(features.squeeze(0))  # (nodes, features)
        x = self.relu(self.conv1(x, sources, targets, weights.squeeze(0)))  # (nodes, hidden)
        x = self.conv2(self.dropout2(x), sources, targets, weights.squeeze(0))  # (nodes, classes)
        return x.unsqueeze(0)  # (1, nodes, classes)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy over the nodes whose label is not -1, and the penalty on the first layer; labels (1, nodes) of
    dtype int64.
    """
    features, edges, weights, labels = batch
    entropy = nn.functional.cross_entropy(
        model(features, edges, weights).squeeze(0), labels.squeeze(0), ignore_index=-1
    )
    return entropy + model.penalty / 2 * sum(weight.pow(2).sum() for weight in model.conv1.parameters())


def optimizer(model: nn.Module, values: Values, learning_rate: float) -> torch.optim.Optimizer:
    """Adam."""
    return torch.optim.Adam(model.parameters(), lr=learning_rate, eps=values["epsilon"])
