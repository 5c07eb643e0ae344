"""The workload ``gru_library`` in PyTorch, which the others are held against: PyTorch's GRU with biases of the
state that are 0, and no weights.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchlib.workloads import Values
from benchlib.workloads.gru.pytorch import loss, optimizer

__all__ = ["build", "loss", "optimizer"]


class Cell(nn.Module):
    """The weights, as flax has them."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.dense_i = nn.Linear(inputs, 3 * hidden)
        self.dense_h = nn.Linear(hidden, 3 * hidden, bias=False)


class GRU(nn.Module):
    """A GRU over (batch, length, inputs); hands out its last state (1, batch, hidden)."""

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.cell = Cell(inputs, hidden)

    def forward(self, x: Tensor) -> Tensor:
        of_input, of_state = self.cell.dense_i, self.cell.dense_h
        weights = [of_input.weight, of_state.weight, of_input.bias, torch.zeros_like(of_input.bias)]
        state = x.new_zeros(1, len(x), of_state.in_features)
        layer = {"num_layers": 1, "dropout": 0.0, "train": self.training, "bidirectional": False, "batch_first": True}
        return torch.gru(x, state, weights, has_biases=True, **layer)[1]


class Model(nn.Module):
    """Tokens (batch, length) to logits (batch, classes)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        self.embedding = nn.Embedding(values["words"], values["embedding"])
        self.gru = GRU(values["embedding"], values["hidden"])
        self.dense = nn.Linear(values["hidden"], values["classes"])

    def forward(self, tokens: Tensor) -> Tensor:  # (batch, length)
        return self.dense(self.gru(self.embedding(tokens))[0])  # (batch, classes)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)
