"""The workload ``lstm`` in Chainer."""

from __future__ import annotations

import chainer
import numpy as np
from chainer import Variable
from chainer import functions as F
from chainer import links as L

from benchlib.workloads import Values
from benchlib.workloads._chainer import LSTM, Adam, dropout


class Bidirectional(chainer.Chain):
    """A layer that reads (length, batch, inputs) in both directions: two of (length, batch, hidden).

    The way back begins at a sequence's own end. Tokens after the end are not used.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        with self.init_scope():
            self.ahead = LSTM(inputs, hidden)
            self.back = LSTM(inputs, hidden)

    def forward(self, x: Variable, lengths: np.ndarray) -> tuple[Variable, Variable]:
        return self.ahead(x), reverse(self.back(reverse(x, lengths)), lengths)


class Model(chainer.Chain):
    """Tokens (batch, length), of which the first ``lengths`` (batch,) count, to logits (batch, classes)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.dropout = values["dropout"]
        with self.init_scope():
            self.embedding = L.EmbedID(values["words"], values["embedding"])
            self.layer1 = Bidirectional(values["embedding"], values["hidden"])
            self.layer2 = Bidirectional(2 * values["hidden"], values["hidden"])
            self.dense = L.Linear(2 * values["hidden"], values["classes"])

    def forward(self, tokens: np.ndarray, lengths: np.ndarray) -> Variable:
        x = dropout(self.embedding(tokens.T), self.dropout)  # (length, batch, embedding)
        x = dropout(F.concat(self.layer1(x, lengths), axis=2), self.dropout)  # (length, batch, 2 * hidden)
        ahead, back = self.layer2(x, lengths)  # (length, batch, hidden) each
        last = ahead[lengths - 1, np.arange(len(lengths))]  # (batch, hidden)
        x = F.concat((last, back[0]), axis=1)  # (batch, 2 * hidden): after the last token, and back at the first
        return self.dense(dropout(x, self.dropout))  # (batch, classes)


def reverse(x: Variable, lengths: np.ndarray) -> Variable:
    """(length, batch, features) with the first ``lengths`` of each sequence in reverse order, the rest as it is."""
    places = np.arange(len(x), dtype=np.int32)[:, np.newaxis]  # (length, 1)
    places = np.where(places < lengths, lengths - 1 - places, places)  # (length, batch)
    rows = (places * x.shape[1] + np.arange(x.shape[1], dtype=np.int32)).ravel()
    return F.permutate(x.reshape(-1, x.shape[2]), rows.astype(np.int32)).reshape(x.shape)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: chainer.Chain, batch: tuple[np.ndarray, ...]) -> Variable:
    """Mean cross entropy of a batch: tokens, lengths and labels, all of dtype int32."""
    tokens, lengths, labels = batch
    return F.softmax_cross_entropy(model(tokens, lengths), labels)


def optimizer(model: chainer.Chain, values: Values, learning_rate: float) -> chainer.Optimizer:
    """Adam."""
    return Adam(learning_rate, eps=values["epsilon"]).setup(model)
