"""The workload ``gru`` in Theano."""

from __future__ import annotations

from theano.tensor import TensorVariable

from benchlib.workloads import Values
from benchlib.workloads._theano import GRU, Adam, Dense, Embedding, Layer, cross_entropy, trained


class Model(Layer):
    """Tokens (batch, length) to logits (batch, classes)."""

    def __init__(self, values: Values) -> None:
        self.embedding = Embedding(values["words"], values["embedding"])
        self.gru = GRU(values["embedding"], values["hidden"])
        self.dense = Dense(values["hidden"], values["classes"])

    def forward(self, tokens: TensorVariable, training: bool) -> TensorVariable:  # (batch, length)
        x = self.embedding(tokens.T)  # (length, batch, embedding)
        last = self.gru(x)  # (batch, hidden): the state after the last token
        return self.dense(last)  # (batch, classes)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: Layer, batch: tuple[TensorVariable, TensorVariable]) -> TensorVariable:
    """Mean cross entropy of a batch: tokens and labels, both of dtype int32."""
    tokens, labels = batch
    return cross_entropy(model(tokens, True), labels)


def optimizer(model: Layer, values: Values, learning_rate: float) -> Adam:
    """Adam."""
    return Adam(trained(model).values(), learning_rate, values["epsilon"])
