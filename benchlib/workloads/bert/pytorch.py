"""The workload ``bert`` in PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from benchlib.workloads import Values
from benchlib.workloads.bert.workload import EPSILON


class Layer(nn.Module):
    """A transformer layer: (batch, length, hidden) to the same; ``unseen`` (batch, 1, 1, length) marks padding."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        hidden, inner = values["hidden"], values["intermediate"]
        self.heads = values["heads"]
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.mixed = nn.Linear(hidden, hidden)
        self.norm1 = nn.LayerNorm(hidden, eps=EPSILON)
        self.inner = nn.Linear(hidden, inner)
        self.gelu = nn.GELU()
        self.outer = nn.Linear(inner, hidden)
        self.norm2 = nn.LayerNorm(hidden, eps=EPSILON)
        self.dropout1 = nn.Dropout(values["dropout"])
        self.dropout2 = nn.Dropout(values["dropout"])
        self.dropout3 = nn.Dropout(values["dropout"])

    def forward(self, x: Tensor, unseen: Tensor) -> Tensor:
        x = self.norm1(x + self.dropout2(self.attention(x, unseen)))
        return self.norm2(x + self.dropout3(self.outer(self.gelu(self.inner(x)))))

    def attention(self, x: Tensor, unseen: Tensor) -> Tensor:
        batch, length, hidden = x.shape
        qkv = self.qkv(x).view(batch, length, 3, self.heads, hidden // self.heads)
        q, k, v = torch.unbind(qkv.permute(2, 0, 3, 1, 4))  # (batch, heads, length, hidden / heads) each
        dropout = self.dropout1.p if self.training else 0.0
        if hasattr(nn.functional, "scaled_dot_product_attention"):
            x = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=~unseen, dropout_p=dropout)
        else:  # before 2.0
            scores = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).masked_fill(unseen, float("-inf"))
            x = nn.functional.dropout(scores.softmax(-1), dropout) @ v
        return self.mixed(x.transpose(1, 2).reshape(batch, length, hidden))


class Model(nn.Module):
    """Tokens and segments (batch, length), and places of masked words (batch, masked), to logits of these words
    (batch, masked, words). Also to logits of whether the second sentence follows the first (batch, 2).
    """

    def __init__(self, values: Values) -> None:
        super().__init__()
        hidden = values["hidden"]
        self.words = nn.Embedding(values["words"], hidden)
        self.places = nn.Embedding(values["length"], hidden)
        self.segments = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, eps=EPSILON)
        self.dropout = nn.Dropout(values["dropout"])
        self.layers = nn.ModuleList(Layer(values) for _ in range(values["layers"]))
        self.guess = nn.Linear(hidden, hidden)
        self.gelu = nn.GELU()
        self.guess_norm = nn.LayerNorm(hidden, eps=EPSILON)
        self.guess_bias = nn.Parameter(torch.zeros(values["words"]))
        self.pool = nn.Linear(hidden, hidden)
        self.tanh = nn.Tanh()
        self.follows = nn.Linear(hidden, 2)

    def forward(self, tokens: Tensor, segments: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        unseen = (tokens == 0)[:, None, None, :]  # (batch, 1, 1, length)
        x = self.words(tokens) + self.places.weight + self.segments(segments)
        x = self.dropout(self.norm(x))  # (batch, length, hidden)
        for layer in self.layers:
            x = layer(x, unseen)
        masked = x.gather(1, places.unsqueeze(2).expand(-1, -1, x.shape[2]))  # (batch, masked, hidden)
        masked = self.guess_norm(self.gelu(self.guess(masked)))
        words = nn.functional.linear(masked, self.words.weight, self.guess_bias)  # (batch, masked, words)
        return words, self.follows(self.tanh(self.pool(x[:, 0])))


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: nn.Module, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy of the masked words, those with label -1 left out, and that of the next sentence: their sum.
    All arrays of dtype int64.
    """
    tokens, segments, places, follows, labels = batch
    words, next_sentence = model(tokens, segments, places)
    of_words = nn.functional.cross_entropy(words.flatten(0, 1), labels.flatten(), ignore_index=-1)
    return of_words + nn.functional.cross_entropy(next_sentence, follows)


def optimizer(model: nn.Module, values: Values, learning_rate: float) -> torch.optim.Optimizer:
    """AdamW, with decay of matrices only."""
    groups = [
        {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": values["weight_decay"]},
        {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=learning_rate, eps=values["epsilon"])


def schedule(optimizer: torch.optim.Optimizer, values: Values) -> torch.optim.lr_scheduler.LRScheduler:
    """The learning rate rises linearly for ``warm_up`` steps, then stays."""
    steps = values["warm_up"]
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / steps))
