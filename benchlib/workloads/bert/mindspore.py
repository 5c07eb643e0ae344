"""The workload ``bert`` in MindSpore."""

from __future__ import annotations

import math

from mindspore import Parameter, Tensor, nn, ops

from benchlib.workloads import Values
from benchlib.workloads._mindspore import optim
from benchlib.workloads.bert.workload import EPSILON


class Layer(nn.Cell):
    """A transformer layer: (batch, length, hidden) to the same; ``unseen`` (batch, 1, 1, length) marks padding."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        hidden, inner = values["hidden"], values["intermediate"]
        self.heads = values["heads"]
        self.scale = 1 / math.sqrt(hidden // values["heads"])
        self.qkv = nn.Dense(hidden, 3 * hidden)
        self.mixed = nn.Dense(hidden, hidden)
        self.norm1 = nn.LayerNorm((hidden,), epsilon=EPSILON)
        self.inner = nn.Dense(hidden, inner)
        self.gelu = nn.GELU(approximate=False)
        self.outer = nn.Dense(inner, hidden)
        self.norm2 = nn.LayerNorm((hidden,), epsilon=EPSILON)
        self.dropout1 = nn.Dropout(p=values["dropout"])
        self.dropout2 = nn.Dropout(p=values["dropout"])
        self.dropout3 = nn.Dropout(p=values["dropout"])

    def construct(self, x: Tensor, unseen: Tensor) -> Tensor:
        x = self.norm1(x + self.dropout2(self.attention(x, unseen)))
        return self.norm2(x + self.dropout3(self.outer(self.gelu(self.inner(x)))))

    def attention(self, x: Tensor, unseen: Tensor) -> Tensor:
        batch, length, hidden = x.shape
        qkv = self.qkv(x).reshape(batch, length, 3, self.heads, hidden // self.heads)
        q, k, v = ops.unbind(qkv.permute(2, 0, 3, 1, 4))  # (batch, heads, length, hidden / heads) each
        scores = ops.matmul(q * self.scale, k.swapaxes(2, 3)).masked_fill(unseen, -1e9)
        x = ops.matmul(self.dropout1(ops.softmax(scores)), v)
        return self.mixed(x.swapaxes(1, 2).reshape(batch, length, hidden))


class Model(nn.Cell):
    """Tokens and segments (batch, length), and places of masked words (batch, masked), to logits of these words
    (batch, masked, words). Also to logits of whether the second sentence follows the first (batch, 2).
    """

    def __init__(self, values: Values) -> None:
        super().__init__()
        hidden = values["hidden"]
        self.words = nn.Embedding(values["words"], hidden)
        self.places = nn.Embedding(values["length"], hidden)
        self.segments = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm((hidden,), epsilon=EPSILON)
        self.dropout = nn.Dropout(p=values["dropout"])
        self.layers = nn.CellList([Layer(values) for _ in range(values["layers"])])
        self.guess = nn.Dense(hidden, hidden)
        self.gelu = nn.GELU(approximate=False)
        self.guess_norm = nn.LayerNorm((hidden,), epsilon=EPSILON)
        self.guess_bias = Parameter(ops.zeros((values["words"],)))
        self.pool = nn.Dense(hidden, hidden)
        self.tanh = nn.Tanh()
        self.follows = nn.Dense(hidden, 2)

    def construct(self, tokens: Tensor, segments: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        unseen = (tokens == 0).expand_dims(1).expand_dims(1)  # (batch, 1, 1, length)
        x = self.words(tokens) + self.places.embedding_table + self.segments(segments)
        x = self.dropout(self.norm(x))  # (batch, length, hidden)
        for layer in self.layers:
            x = layer(x, unseen)
        masked = ops.gather(x, places, 1, batch_dims=1)  # (batch, masked, hidden)
        masked = self.guess_norm(self.gelu(self.guess(masked)))
        words = ops.matmul(masked, self.words.embedding_table.astype(masked.dtype).T)  # (batch, masked, words)
        return words + self.guess_bias, self.follows(self.tanh(self.pool(x[:, 0])))


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: nn.Cell, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy of the masked words, those with label -1 left out, and that of the next sentence: their sum.
    All arrays of dtype int32.
    """
    tokens, segments, places, follows, labels = batch
    words, next_sentence = model(tokens, segments, places)
    of_words = ops.cross_entropy(words.flatten(start_dim=0, end_dim=1), labels.flatten(), ignore_index=-1)
    return of_words + ops.cross_entropy(next_sentence, follows)


def optimizer(model: nn.Cell, values: Values, learning_rate: float) -> nn.Optimizer:
    """AdamW, with decay of matrices only. ``nn.AdamWeightDecay`` is another algorithm."""
    weights = model.trainable_params()
    groups = [
        {"params": [p for p in weights if p.ndim > 1], "weight_decay": values["weight_decay"]},
        {"params": [p for p in weights if p.ndim == 1], "weight_decay": 0.0},
    ]
    return optim.AdamW(groups, lr=learning_rate, eps=values["epsilon"])


def schedule(optimizer: nn.Optimizer, values: Values) -> optim.lr_scheduler.LRScheduler:
    """The learning rate rises linearly for ``warm_up`` steps, then stays."""
    steps = values["warm_up"]
    return optim.lr_scheduler.LinearLR(optimizer, start_factor=1 / steps, total_iters=steps - 1)
