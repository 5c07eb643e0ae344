"""The workload ``lstm`` in MXNet."""

from __future__ import annotations

from types import ModuleType

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn, rnn
from mxnet.ndarray import NDArray

from benchlib.workloads import Values
from benchlib.workloads._gluon import Adam


class Bidirectional(HybridBlock):
    """A layer that reads (length, batch, inputs) in both directions: two of (length, batch, hidden).

    A bidirectional ``rnn.LSTM`` heeds the length of each sequence (``use_sequence_length``) on GPUs only. So each
    direction is an LSTM by itself, and the way back begins at a sequence's own end. Tokens after the end are not
    used.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.ahead = rnn.LSTM(hidden, input_size=inputs)
        self.back = rnn.LSTM(hidden, input_size=inputs)

    def hybrid_forward(self, F: ModuleType, x: NDArray, lengths: NDArray) -> tuple[NDArray, NDArray]:
        ahead = self.ahead(x)
        back = self.back(reverse(F, x, lengths))
        return ahead, reverse(F, back, lengths)


class Model(HybridBlock):
    """Tokens (batch, length), of which the first ``lengths`` (batch,) count, to logits (batch, classes)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.embedding = nn.Embedding(values["words"], values["embedding"])
        self.dropout1 = nn.Dropout(values["dropout"])
        self.layer1 = Bidirectional(values["embedding"], values["hidden"])
        self.dropout2 = nn.Dropout(values["dropout"])
        self.layer2 = Bidirectional(2 * values["hidden"], values["hidden"])
        self.dropout3 = nn.Dropout(values["dropout"])
        self.dense = nn.Dense(values["classes"], in_units=2 * values["hidden"])

    def hybrid_forward(self, F: ModuleType, tokens: NDArray, lengths: NDArray) -> NDArray:
        x = self.dropout1(self.embedding(tokens.swapaxes(0, 1)))  # (length, batch, embedding)
        x = self.dropout2(F.concat(*self.layer1(x, lengths), dim=2))  # (length, batch, 2 * hidden)
        ahead, back = self.layer2(x, lengths)  # (length, batch, hidden) each
        last = F.SequenceLast(ahead, lengths, use_sequence_length=True)  # (batch, hidden)
        first = back.slice_axis(axis=0, begin=0, end=1).squeeze(axis=0)
        x = F.concat(last, first, dim=1)  # (batch, 2 * hidden): after the last token, and back at the first
        return self.dense(self.dropout3(x))  # (batch, classes)


def reverse(F: ModuleType, x: NDArray, lengths: NDArray) -> NDArray:
    """(length, batch, features) with the first ``lengths`` of each sequence in reverse order, the rest as it is."""
    return F.SequenceReverse(x, lengths, use_sequence_length=True)


cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: HybridBlock, batch: tuple[NDArray, ...]) -> NDArray:
    """Mean cross entropy of a batch: tokens, lengths and labels, all of dtype int32."""
    tokens, lengths, labels = batch
    return cross_entropy(model(tokens, lengths), labels).mean()


def optimizer(model: HybridBlock, values: Values, learning_rate: float) -> gluon.Trainer:
    """Adam."""
    adam = Adam(learning_rate, epsilon=values["epsilon"])
    return gluon.Trainer(model.collect_params(), adam, kvstore=None)
