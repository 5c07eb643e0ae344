"""The workload ``gru`` in MindSpore."""

from __future__ import annotations

from mindspore import Tensor, nn, ops

from benchlib.workloads import Values
from benchlib.workloads._mindspore import optim


class Model(nn.Cell):
    """Tokens (batch, length) to logits (batch, classes)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.embedding = nn.Embedding(values["words"], values["embedding"])
        self.gru = nn.GRU(values["embedding"], values["hidden"], batch_first=True)
        self.dense = nn.Dense(values["hidden"], values["classes"])

    def construct(self, tokens: Tensor) -> Tensor:  # (batch, length)
        x = self.embedding(tokens)  # (batch, length, embedding)
        _, last = self.gru(x)  # (1, batch, hidden): the state after the last token
        return self.dense(last[0])  # (batch, classes)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: nn.Cell, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean cross entropy of a batch: tokens and labels, both of dtype int32."""
    tokens, labels = batch
    return ops.cross_entropy(model(tokens), labels)


def optimizer(model: nn.Cell, values: Values, learning_rate: float) -> nn.Optimizer:
    """Adam, as AdamW without decay: ``nn.Adam`` and ``experimental.optim.Adam`` add epsilon before they correct the
    bias.
    """
    return optim.AdamW(model.trainable_params(), lr=learning_rate, eps=values["epsilon"], weight_decay=0.0)
