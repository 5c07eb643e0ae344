"""The workload ``bert`` in PaddlePaddle."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from benchlib.workloads import Values
from benchlib.workloads.bert.workload import EPSILON


class Layer(nn.Layer):
    """A transformer layer: (batch, length, hidden) to the same; ``unseen`` (batch, 1, 1, length) marks padding."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        hidden, inner = values["hidden"], values["intermediate"]
        self.heads = values["heads"]
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.mixed = nn.Linear(hidden, hidden)
        self.norm1 = nn.LayerNorm(hidden, epsilon=EPSILON)
        self.inner = nn.Linear(hidden, inner)
        self.gelu = nn.GELU()
        self.outer = nn.Linear(inner, hidden)
        self.norm2 = nn.LayerNorm(hidden, epsilon=EPSILON)
        self.dropout1 = nn.Dropout(values["dropout"])
        self.dropout2 = nn.Dropout(values["dropout"])
        self.dropout3 = nn.Dropout(values["dropout"])

    def forward(self, x: Tensor, unseen: Tensor) -> Tensor:
        x = self.norm1(x + self.dropout2(self.attention(x, unseen)))
        return self.norm2(x + self.dropout3(self.outer(self.gelu(self.inner(x)))))

    def attention(self, x: Tensor, unseen: Tensor) -> Tensor:
        batch, length, hidden = x.shape
        qkv = self.qkv(x).reshape([batch, length, 3, self.heads, hidden // self.heads])
        q, k, v = paddle.unbind(qkv, 2)  # (batch, length, heads, hidden / heads) each
        dropout = self.dropout1.p if self.training else 0.0
        x = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=~unseen, dropout_p=dropout)
        return self.mixed(x.reshape([batch, length, hidden]))


class Model(nn.Layer):
    """Tokens and segments (batch, length), and places of masked words (batch, masked), to logits of these words
    (batch, masked, words). Also to logits of whether the second sentence follows the first (batch, 2).
    """

    def __init__(self, values: Values) -> None:
        super().__init__()
        hidden = values["hidden"]
        self.words = nn.Embedding(values["words"], hidden)
        self.places = nn.Embedding(values["length"], hidden)
        self.segments = nn.Embedding(2, hidden)
        self.norm = nn.LayerNorm(hidden, epsilon=EPSILON)
        self.dropout = nn.Dropout(values["dropout"])
        self.layers = nn.LayerList(Layer(values) for _ in range(values["layers"]))
        self.guess = nn.Linear(hidden, hidden)
        self.gelu = nn.GELU()
        self.guess_norm = nn.LayerNorm(hidden, epsilon=EPSILON)
        self.guess_bias = self.create_parameter([values["words"]], is_bias=True)
        self.pool = nn.Linear(hidden, hidden)
        self.tanh = nn.Tanh()
        self.follows = nn.Linear(hidden, 2)

    def forward(self, tokens: Tensor, segments: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        unseen = (tokens == 0)[:, None, None, :]  # (batch, 1, 1, length)
        x = self.words(tokens) + self.places.weight + self.segments(segments)
        x = self.dropout(self.norm(x))  # (batch, length, hidden)
        for layer in self.layers:
            x = layer(x, unseen)
        masked = x.take_along_axis(places.unsqueeze(2), 1)  # (batch, masked, hidden)
        masked = self.guess_norm(self.gelu(self.guess(masked)))
        words = paddle.matmul(masked, self.words.weight, transpose_y=True) + self.guess_bias  # (batch, masked, words)
        return words, self.follows(self.tanh(self.pool(x[:, 0])))


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: nn.Layer, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy of the masked words, those with label -1 left out, and that of the next sentence: their sum.
    All arrays of dtype int64.
    """
    tokens, segments, places, follows, labels = batch
    words, next_sentence = model(tokens, segments, places)
    words, labels = words.flatten(0, 1), labels.flatten()
    of_words = nn.functional.cross_entropy(words, labels, ignore_index=-1, reduction="sum") / (labels >= 0).sum()
    return of_words + nn.functional.cross_entropy(next_sentence, follows)


def optimizer(model: nn.Layer, values: Values, learning_rate: float) -> paddle.optimizer.Optimizer:
    """AdamW, with decay of matrices only."""
    groups = [
        {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": values["weight_decay"]},
        {"params": [p for p in model.parameters() if p.ndim == 1], "weight_decay": 0.0},
    ]
    return paddle.optimizer.AdamW(learning_rate, epsilon=values["epsilon"], parameters=groups)


def schedule(optimizer: paddle.optimizer.Optimizer, values: Values) -> paddle.optimizer.lr.LRScheduler:
    """The learning rate rises linearly for ``warm_up`` steps, then stays."""
    steps = values["warm_up"]
    rate = paddle.optimizer.lr.LinearLR(optimizer.get_lr(), steps - 1, start_factor=1 / steps)
    optimizer.set_lr_scheduler(rate)
    return rate
