"""The workload ``seq2seq`` in MindSpore."""

from __future__ import annotations

from mindspore import Tensor, nn, ops

from benchlib.workloads import Values
from benchlib.workloads._mindspore import optim


class Model(nn.Cell):
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
        self.attention = nn.Dense(hidden, hidden, has_bias=False)
        self.combined = nn.Dense(2 * hidden, hidden)
        self.dense = nn.Dense(hidden, values["target_words"])
        self.dropout1 = nn.Dropout(p=values["dropout"])
        self.dropout2 = nn.Dropout(p=values["dropout"])
        self.dropout3 = nn.Dropout(p=values["dropout"])

    def construct(self, source: Tensor, lengths: Tensor, target: Tensor) -> Tensor:
        memory, state = self.encode(source, lengths)
        return self.decode(target, state, memory, source == 0)[0]

    def encode(self, source: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        memory, _ = self.encoder(self.dropout1(self.source(source)))  # (batch, length, hidden)
        ends = ops.stack((ops.arange(lengths.shape[0]).astype(lengths.dtype), lengths - 1), 1)  # (batch, 2)
        return memory, ops.gather_nd(memory, ends).expand_dims(0)  # (1, batch, hidden): after the last word

    def decode(self, target: Tensor, state: Tensor, memory: Tensor, unseen: Tensor) -> tuple[Tensor, Tensor]:
        x, state = self.decoder(self.dropout2(self.target(target)), state)  # (batch, length, hidden)
        scores = ops.matmul(self.attention(x), memory.swapaxes(1, 2))  # (batch, target's length, source's length)
        looked_at = ops.matmul(
            ops.softmax(scores.masked_fill(unseen.expand_dims(1), -1e9)), memory
        )  # (batch, length, hidden)
        x = ops.tanh(self.combined(ops.cat((looked_at, x), 2)))
        return self.dense(self.dropout3(x)), state  # (batch, length, words)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: nn.Cell, batch: tuple[Tensor, ...]) -> Tensor:
    """Mean cross entropy of the words, those with label -1 left out; all arrays of dtype int32."""
    source, lengths, target, labels = batch
    logits = model(source, lengths, target)
    return ops.cross_entropy(logits.flatten(start_dim=0, end_dim=1), labels.flatten(), ignore_index=-1)


def optimizer(model: nn.Cell, values: Values, learning_rate: float) -> nn.Optimizer:
    """Adam, as AdamW without decay: ``nn.Adam`` and ``experimental.optim.Adam`` add epsilon before they correct the
    bias. Gradients are cut to the norm ``clip`` before it sees them, in ``benchlib/frameworks/mindspore.py``.
    """
    return optim.AdamW(model.trainable_params(), lr=learning_rate, eps=values["epsilon"], weight_decay=0.0)


def predict(model: nn.Cell, inputs: tuple[Tensor, ...]) -> Tensor:
    """The translation (batch, length), word by word, the likeliest each time; of the target only the start is read."""
    source, lengths, target = inputs
    memory, state = model.encode(source, lengths)
    word, words = target[:, :1], []
    for _ in range(target.shape[1]):
        logits, state = model.decode(word, state, memory, source == 0)
        word = logits.argmax(2).int()  # (batch, 1)
        words.append(word)
    return ops.cat(words, 1)
