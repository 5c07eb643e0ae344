"""The workload ``lstm`` in PaddlePaddle."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from benchlib.workloads import Values


class Bidirectional(nn.Layer):
    """A layer that reads (length, batch, inputs) in both directions: two of (length, batch, hidden).

    Each direction is an LSTM of a plain sequence, and the way back begins at a sequence's own end. Tokens after the end
    are not used.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.ahead = nn.LSTM(inputs, hidden, time_major=True)
        self.back = nn.LSTM(inputs, hidden, time_major=True)

    def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        ahead, _ = self.ahead(x)
        back, _ = self.back(reverse(x, lengths))
        return ahead, reverse(back, lengths)


class Model(nn.Layer):
    """Tokens (batch, length), of which the first ``lengths`` (batch,) count, to logits (batch, classes)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.embedding = nn.Embedding(values["words"], values["embedding"])
        self.dropout1 = nn.Dropout(values["dropout"])
        self.layer1 = Bidirectional(values["embedding"], values["hidden"])
        self.dropout2 = nn.Dropout(values["dropout"])
        self.layer2 = Bidirectional(2 * values["hidden"], values["hidden"])
        self.dropout3 = nn.Dropout(values["dropout"])
        self.dense = nn.Linear(2 * values["hidden"], values["classes"])

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        x = self.dropout1(self.embedding(tokens.transpose([1, 0])))  # (length, batch, embedding)
        x = self.dropout2(paddle.concat(self.layer1(x, lengths), 2))  # (length, batch, 2 * hidden)
        ahead, back = self.layer2(x, lengths)  # (length, batch, hidden) each
        rows = paddle.arange(lengths.shape[0])
        last = ahead[lengths - 1, rows]  # (batch, hidden)
        x = paddle.concat((last, back[0]), 1)  # (batch, 2 * hidden): after the last token, and back at the first
        return self.dense(self.dropout3(x))  # (batch, classes)


def reverse(x: Tensor, lengths: Tensor) -> Tensor:
    """(length, batch, features) with the first ``lengths`` of each sequence in reverse order, the rest as it is."""
    places = paddle.arange(x.shape[0]).unsqueeze(1)  # (length, 1)
    places = paddle.where(places < lengths, lengths - 1 - places, places)  # (length, batch)
    rows = places * x.shape[1] + paddle.arange(x.shape[1])
    return x.flatten(0, 1).index_select(rows.flatten()).reshape(x.shape)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: nn.Layer, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy of a batch: tokens, lengths and labels, all of dtype int64."""
    tokens, lengths, labels = batch
    return nn.functional.cross_entropy(model(tokens, lengths), labels)


def optimizer(model: nn.Layer, values: Values, learning_rate: float) -> paddle.optimizer.Optimizer:
    """Adam."""
    return paddle.optimizer.Adam(learning_rate, epsilon=values["epsilon"], parameters=model.parameters())
