"""The workload ``gru`` in CNTK."""

from __future__ import annotations

import cntk as C
from cntk.layers import Dense

from benchlib.workloads import Values
from benchlib.workloads._cntk import GRU, Adam, Embedding


class Model:
    """A sequence of tokens to logits (classes)."""

    def __init__(self, values: Values) -> None:
        self.embedding = Embedding(values["words"], values["embedding"])
        self.gru = GRU(values["embedding"], values["hidden"])
        self.dense = Dense(values["classes"])

    def __call__(self, tokens: C.Variable) -> C.Function:  # a sequence of (1)
        x = self.embedding(tokens)  # a sequence of (embedding)
        last = self.gru(x)  # (hidden): the state after the last token
        return self.dense(last)  # (classes)


def inputs(values: Values) -> tuple[C.Variable, C.Variable]:
    """Tokens, and labels as one of the classes."""
    return C.sequence.input_variable(1), C.input_variable(values["classes"])


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: Model, batch: tuple[C.Variable, C.Variable]) -> C.Function:
    """Cross entropy of a sample: tokens and labels. The trainer makes the mean of a batch."""
    tokens, labels = batch
    return C.cross_entropy_with_softmax(model(tokens), labels)


def optimizer(parameters: list[C.Parameter], values: Values, learning_rate: float) -> C.learners.Learner:
    """Adam."""
    return Adam(parameters, learning_rate, values["epsilon"])
