"""The workload ``seq2seq`` in PaddlePaddle."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from benchlib.workloads import Values


class Model(nn.Layer):
    """Source (batch, length) and the target so far (batch, length) to logits of each next word (batch, length, words).
    Of the source the first ``lengths`` (batch,) tokens count.
    """

    def __init__(self, values: Values) -> None:
        super().__init__()
        embedding, hidden = values["embedding"], values["hidden"]
        self.source = nn.Embedding(values["words"], embedding)
        self.target = nn.Embedding(values["target_words"], embedding)
        self.encoder = nn.GRU(embedding, hidden)
        self.decoder = nn.GRU(embedding, hidden)
        self.attention = nn.Linear(hidden, hidden, bias_attr=False)
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
        rows = paddle.arange(lengths.shape[0])
        return memory, memory[rows, lengths - 1].unsqueeze(0)  # (1, batch, hidden): after the last word

    def decode(self, target: Tensor, state: Tensor, memory: Tensor, unseen: Tensor) -> tuple[Tensor, Tensor]:
        x, state = self.decoder(self.dropout2(self.target(target)), state)  # (batch, length, hidden)
        scores = self.attention(x) @ memory.transpose([0, 2, 1])  # (batch, target's length, source's length)
        scores = scores.masked_fill(unseen.unsqueeze(1), paddle.finfo(scores.dtype).min)
        looked_at = nn.functional.softmax(scores, 2) @ memory  # (batch, length, hidden)
        x = paddle.tanh(self.combined(paddle.concat((looked_at, x), 2)))
        return self.dense(self.dropout3(x)), state  # (batch, length, words)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: nn.Layer, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy of the words, those with label -1 left out; all arrays of dtype int64."""
    source, lengths, target, labels = batch
    logits, labels = model(source, lengths, target).flatten(0, 1), labels.flatten()
    return nn.functional.cross_entropy(logits, labels, ignore_index=-1, reduction="sum") / (labels >= 0).sum()


def optimizer(model: nn.Layer, values: Values, learning_rate: float) -> paddle.optimizer.Optimizer:
    """Adam; gradients are cut to the norm ``clip`` before it sees them, in ``benchlib/frameworks/paddle.py``."""
    return paddle.optimizer.Adam(learning_rate, epsilon=values["epsilon"], parameters=model.parameters())


def predict(model: nn.Layer, inputs: tuple[Tensor, ...]) -> Tensor:
    """The translation (batch, length), word by word, the likeliest each time; of the target only the start is read."""
    source, lengths, target = inputs
    memory, state = model.encode(source, lengths)
    word, words = target[:, :1], []
    for _ in range(target.shape[1]):
        logits, state = model.decode(word, state, memory, source == 0)
        word = logits.argmax(2)  # (batch, 1)
        words.append(word)
    return paddle.concat(words, 1)
