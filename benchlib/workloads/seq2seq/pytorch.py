"""The workload ``seq2seq`` in PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchlib.workloads import Values


class Model(nn.Module):
    """Source (batch, length) and the target so far (batch, length) to logits of each next word (batch, length, words).
    Of the source the first ``lengths`` (batch,) tokens count.
    """

    def __init__(self, values: Values) -> None:
        super().__init__()
        embedding, hidden = values["embedding"], values["hidden"]
        self.source = nn.Embedding(values["words"], embedding)
        self.target = nn.Embedding(values["target_words"], embedding)
        self.encoder = nn.GRU(embedding, hidden, batch_first=True)
        self.decoder = nn.GRU(embedding, hidden, batch_first=True)
        self.attention = nn.Linear(hidden, hidden, bias=False)
        self.combined = nn.Linear(2 * hidden, hidden)
        self.dense = nn.Linear(hidden, values["target_words"])
        self.dropout1 = nn.Dropout(values["dropout"])
        self.dropout2 = nn.Dropout(values["dropout"])
        self.dropout3 = nn.Dropout(values["dropout"])

    def forward(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        memory, state = self.encode(source, lengths)
        return self.decode(target, state, memory, source == 0)[0]

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        memory, _ = self.encoder(self.dropout1(self.source(source)))  # (batch, length, hidden)
        rows = torch.arange(len(lengths), device=lengths.device)
        return memory, memory[rows, lengths - 1].unsqueeze(0)  # (1, batch, hidden): after the last word

    def decode(self, target: Tensor, state: Tensor, memory: Tensor, unseen: Tensor) -> tuple[Tensor, Tensor]:
        x, state = self.decoder(self.dropout2(self.target(target)), state)  # (batch, length, hidden)
        scores = self.attention(x) @ memory.transpose(1, 2)  # (batch, target's length, source's length)
        scores = scores.masked_fill(unseen.unsqueeze(1), torch.finfo(scores.dtype).min)
        looked_at = scores.softmax(2) @ memory  # (batch, length, hidden)
        x = torch.tanh(self.combined(torch.cat((looked_at, x), 2)))
        return self.dense(self.dropout3(x)), state  # (batch, length, words)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy of the words, those with label -1 left out; all arrays of dtype int64."""
    source, lengths, target, labels = batch
    logits = model(source, lengths, target)
    return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-1)


def optimizer(model: nn.Module, values: Values, learning_rate: float) -> torch.optim.Optimizer:
    """Adam; gradients are cut to the norm ``clip`` before it sees them, in ``benchlib/frameworks/pytorch.py``."""
    return torch.optim.Adam(model.parameters(), lr=learning_rate, eps=values["epsilon"])


def predict(model: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
    """The translation (batch, length), word by word, the likeliest each time; of the target only the start is read."""
    source, lengths, target = inputs
    memory, state = model.encode(source, lengths)
    word, words = target[:, :1], []
    for _ in range(target.shape[1]):
        logits, state = model.decode(word, state, memory, source == 0)
        word = logits.argmax(2)  # (batch, 1)
        words.append(word)
    return torch.cat(words, 1)
