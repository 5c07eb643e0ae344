"""The workload ``gcn`` in PaddlePaddle."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from benchlib.workloads import Values


class Convolution(nn.Layer):
    """Node features (nodes, inputs) to (nodes, outputs): transformed, then summed over each node's neighbours."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs, bias_attr=False)
        self.bias = self.create_parameter([outputs], is_bias=True)

    def forward(self, x: Tensor, sources: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        x = self.linear(x)  # (nodes, outputs)
        messages = x.index_select(sources) * weights.unsqueeze(1)  # (edges, outputs)
        return paddle.zeros_like(x).index_add(targets, 0, messages) + self.bias  # (nodes, outputs)


class Model(nn.Layer):
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


def loss(model: nn.Layer, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy over the nodes whose label is not -1, and the penalty on the first layer; labels (1, nodes) of
    dtype int64.
    """
    features, edges, weights, labels = batch
    logits, labels = model(features, edges, weights).squeeze(0), labels.squeeze(0)
    entropy = nn.functional.cross_entropy(logits, labels, ignore_index=-1, reduction="sum") / (labels >= 0).sum()
    return entropy + model.penalty / 2 * sum(weight.square().sum() for weight in model.conv1.parameters())


def optimizer(model: nn.Layer, values: Values, learning_rate: float) -> paddle.optimizer.Optimizer:
    """Adam."""
    return paddle.optimizer.Adam(learning_rate, epsilon=values["epsilon"], parameters=model.parameters())
