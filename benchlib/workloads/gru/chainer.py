"""The workload ``gru`` in Chainer."""

from __future__ import annotations

import chainer
import numpy as np
from chainer import Variable
from chainer import functions as F
from chainer import links as L

from benchlib.workloads import Values
from benchlib.workloads._chainer import GRU, Adam


class Model(chainer.Chain):
    """Tokens (batch, length) to logits (batch, classes)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        with self.init_scope():
            self.embedding = L.EmbedID(values["words"], values["embedding"])
            self.gru = GRU(values["embedding"], values["hidden"])
            self.dense = L.Linear(values["hidden"], values["classes"])

    def forward(self, tokens: np.ndarray) -> Variable:  # (batch, length)
        x = self.embedding(tokens.T)  # (length, batch, embedding)
        last = self.gru(x)  # (batch, hidden): the state after the last token
        return self.dense(last)  # (batch, classes)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: chainer.Chain, batch: tuple[np.ndarray, np.ndarray]) -> Variable:
    """Mean cross entropy of a batch: tokens and labels, both of dtype int32."""
    tokens, labels = batch
    return F.softmax_cross_entropy(model(tokens), labels)


def optimizer(model: chainer.Chain, values: Values, learning_rate: float) -> chainer.Optimizer:
    """Adam."""
    return Adam(learning_rate, eps=values["epsilon"]).setup(model)
