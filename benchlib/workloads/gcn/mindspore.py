"""The workload ``gcn`` in MindSpore."""

from __future__ import annotations

from mindspore import Parameter, Tensor, nn, ops

from benchlib.workloads import Values
from benchlib.workloads._mindspore import optim


class Convolution(nn.Cell):
    """Node features (nodes, inputs) to (nodes, outputs): transformed, then summed over each node's neighbours."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Dense(inputs, outputs, has_bias=False)
        self.bias = Parameter(ops.zeros((outputs,)))

    def construct(self, x: Tensor, sources: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
        x = self.linear(x)  # (nodes, outputs)
        messages = ops.gather(x, sources, 0) * weights.expand_dims(1)  # (edges, outputs)
        return ops.unsorted_segment_sum(messages, targets, x.shape[0]) + self.bias  # (nodes, outputs)


class Model(nn.Cell):
    """A graph as a batch of one: features (1, nodes, features), edges (1, edges, 2) and weights (1, edges), to logits
    (1, nodes, classes).
    """

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.conv1 = Convolution(values["features"], values["hidden"])
        self.conv2 = Convolution(values["hidden"], values["classes"])
        self.relu = nn.ReLU()
        self.dropout1 = nn.Dropout(p=values["dropout"])
        self.penalty = values["weight_decay"]
        self.dropout2 = nn.Dropout(p=values["dropout"])

    def construct(self, features: Tensor, edges: Tensor, weights: Tensor) -> Tensor:
        sources, targets = edges[0, :, 0], edges[0, :, 1]  # (edges,) each
        x = self.dropout1(features.squeeze(0))  # (nodes, features)
        x = self.relu(self.conv1(x, sources, targets, weights.squeeze(0)))  # (nodes, hidden)
        x = self.conv2(self.dropout2(x), sources, targets, weights.squeeze(0))  # (nodes, classes)
        return x.expand_dims(0)  # (1, nodes, classes)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: nn.Cell, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy over the nodes whose label is not -1, and the penalty on the first layer; labels (1, nodes) of
    dtype int32.
    """
    features, edges, weights, labels = batch
    entropy = ops.cross_entropy(model(features, edges, weights).squeeze(0), labels.squeeze(0), ignore_index=-1)
    return entropy + model.penalty / 2 * (model.conv1.linear.weight.square().sum() + model.conv1.bias.square().sum())


def optimizer(model: nn.Cell, values: Values, learning_rate: float) -> nn.Optimizer:
    """Adam, as AdamW without decay: ``nn.Adam`` and ``experimental.optim.Adam`` add epsilon before they correct the
    bias.
    """
    return optim.AdamW(model.trainable_params(), lr=learning_rate, eps=values["epsilon"], weight_decay=0.0)
