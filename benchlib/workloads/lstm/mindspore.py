"""The workload ``lstm`` in MindSpore."""

from __future__ import annotations

from mindspore import Tensor, nn, ops

from benchlib.workloads import Values
from benchlib.workloads._mindspore import optim


class Bidirectional(nn.Cell):
    """A layer that reads (length, batch, inputs) in both directions: two of (length, batch, hidden).

    ``nn.LSTM`` with ``seq_length`` is unrolled into single steps on the CPU; without, it is one operator. So each
    direction is an LSTM without, and the way back begins at a sequence's own end. Tokens after the end are not used.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.ahead = nn.LSTM(inputs, hidden)
        self.back = nn.LSTM(inputs, hidden)

    def construct(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        ahead, _ = self.ahead(x)
        back, _ = self.back(reverse(x, lengths))
        return ahead, reverse(back, lengths)


class Model(nn.Cell):
    """Tokens (batch, length), of which the first ``lengths`` (batch,) count, to logits (batch, classes)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.embedding = nn.Embedding(values["words"], values["embedding"])
        self.dropout1 = nn.Dropout(p=values["dropout"])
        self.layer1 = Bidirectional(values["embedding"], values["hidden"])
        self.dropout2 = nn.Dropout(p=values["dropout"])
        self.layer2 = Bidirectional(2 * values["hidden"], values["hidden"])
        self.dropout3 = nn.Dropout(p=values["dropout"])
        self.dense = nn.Dense(2 * values["hidden"], values["classes"])

    def construct(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        x = self.dropout1(self.embedding(tokens.swapaxes(0, 1)))  # (length, batch, embedding)
        x = self.dropout2(ops.cat(self.layer1(x, lengths), 2))  # (length, batch, 2 * hidden)
        ahead, back = self.layer2(x, lengths)  # (length, batch, hidden) each
        rows = ops.arange(lengths.shape[0]).astype(lengths.dtype)
        last = ops.gather_nd(ahead, ops.stack((lengths - 1, rows), 1))  # (batch, hidden)
        x = ops.cat((last, back[0]), 1)  # (batch, 2 * hidden): after the last token, and back at the first
        return self.dense(self.dropout3(x))  # (batch, classes)


def reverse(x: Tensor, lengths: Tensor) -> Tensor:
    """(length, batch, features) with the first ``lengths`` of each sequence in reverse order, the rest as it is."""
    return ops.reverse_sequence(x, lengths, seq_dim=0, batch_dim=1)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: nn.Cell, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy of a batch: tokens, lengths and labels, all of dtype int32."""
    tokens, lengths, labels = batch
    return ops.cross_entropy(model(tokens, lengths), labels)


def optimizer(model: nn.Cell, values: Values, learning_rate: float) -> nn.Optimizer:
    """Adam, as AdamW without decay: ``nn.Adam`` and ``experimental.optim.Adam`` add epsilon before they correct the
    bias.
    """
    return optim.AdamW(model.trainable_params(), lr=learning_rate, eps=values["epsilon"], weight_decay=0.0)
