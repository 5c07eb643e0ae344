"""The workload ``gru`` in PaddlePaddle."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from benchlib.workloads import Values


class Model(nn.Layer):
    """Tokens (batch, length) to logits (batch, classes)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.embedding = nn.Embedding(values["words"], values["embedding"])
        self.gru = nn.GRU(values["embedding"], values["hidden"])
        self.dense = nn.Linear(values["hidden"], values["classes"])

    def forward(self, tokens: Tensor) -> Tensor:  # (batch, length)
        x = self.embedding(tokens)  # (batch, length, embedding)
        _, last = self.gru(x)  # (1, batch, hidden): the state after the last token
        return self.dense(last[0])  # (batch, classes)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: nn.Layer, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean cross entropy of a batch: tokens and labels, both of dtype int64."""
    tokens, labels = batch
    return nn.functional.cross_entropy(model(tokens), labels)


def optimizer(model: nn.Layer, values: Values, learning_rate: float) -> paddle.optimizer.Optimizer:
    """Adam."""
    return paddle.optimizer.Adam(learning_rate, epsilon=values["epsilon"], parameters=model.parameters())
