"""The workload ``gru`` in MXNet."""

from __future__ import annotations

from types import ModuleType

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn, rnn
from mxnet.ndarray import NDArray

from benchlib.workloads import Values
from benchlib.workloads._gluon import Adam


class Model(HybridBlock):
    """Tokens (batch, length) to logits (batch, classes)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.embedding = nn.Embedding(values["words"], values["embedding"])
        self.gru = rnn.GRU(values["hidden"], input_size=values["embedding"])
        self.dense = nn.Dense(values["classes"], in_units=values["hidden"])

    def hybrid_forward(self, F: ModuleType, tokens: NDArray) -> NDArray:  # (batch, length)
        x = self.embedding(tokens.swapaxes(0, 1))  # (length, batch, embedding)
        outputs = self.gru(x)  # (length, batch, hidden)
        last = outputs.slice_axis(axis=0, begin=-1, end=None).squeeze(axis=0)  # (batch, hidden): after the last token
        return self.dense(last)  # (batch, classes)


cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: HybridBlock, batch: tuple[NDArray, NDArray]) -> NDArray:
    """Mean cross entropy of a batch: tokens and labels, both of dtype int32."""
    tokens, labels = batch
    return cross_entropy(model(tokens), labels).mean()


def optimizer(model: HybridBlock, values: Values, learning_rate: float) -> gluon.Trainer:
    """Adam."""
    adam = Adam(learning_rate, epsilon=values["epsilon"])
    return gluon.Trainer(model.collect_params(), adam, kvstore=None)
