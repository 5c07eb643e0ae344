"""The workload ``seq2seq`` in MXNet."""

from __future__ import annotations

from types import ModuleType

from mxnet import gluon, nd
from mxnet.gluon import HybridBlock, nn, rnn
from mxnet.ndarray import NDArray

from benchlib.workloads import Values
from benchlib.workloads._gluon import Adam, broadcast_like


class Model(HybridBlock):
    """Source (batch, length) and the target so far (batch, length) to logits of each next word (batch, length, words).
    Of the source the first ``lengths`` (batch,) tokens count.
    """

    def __init__(self, values: Values) -> None:
        super().__init__()
        embedding, hidden = values["embedding"], values["hidden"]
        self.source = nn.Embedding(values["words"], embedding)
        self.target = nn.Embedding(values["target_words"], embedding)
        self.encoder = rnn.GRU(hidden, layout="NTC", input_size=embedding)
        self.decoder = rnn.GRU(hidden, layout="NTC", input_size=embedding)
        self.attention = nn.Dense(hidden, use_bias=False, flatten=False, in_units=hidden)
        self.combined = nn.Dense(hidden, flatten=False, in_units=2 * hidden)
        self.dense = nn.Dense(values["target_words"], flatten=False, in_units=hidden)
        self.dropout1 = nn.Dropout(values["dropout"])
        self.dropout2 = nn.Dropout(values["dropout"])
        self.dropout3 = nn.Dropout(values["dropout"])

    def hybrid_forward(self, F: ModuleType, source: NDArray, lengths: NDArray, target: NDArray) -> NDArray:
        memory, state = self.encode(F, source, lengths)
        return self.decode(F, target, state, memory, source != 0)[0]

    def encode(self, F: ModuleType, source: NDArray, lengths: NDArray) -> tuple[NDArray, NDArray]:
        memory = self.encoder(self.dropout1(self.source(source)))  # (batch, length, hidden)
        last = F.SequenceLast(memory, lengths, use_sequence_length=True, axis=1)
        return memory, last.expand_dims(0)  # (1, batch, hidden): after the last word

    def decode(
        self, F: ModuleType, target: NDArray, state: NDArray, memory: NDArray, seen: NDArray
    ) -> tuple[NDArray, NDArray]:
        x, (state,) = self.decoder(self.dropout2(self.target(target)), [state])  # (batch, length, hidden)
        scores = F.batch_dot(self.attention(x), memory, transpose_b=True)  # (batch, target's length, source's length)
        unseen = broadcast_like(F, seen.expand_dims(1), scores, self.dense.weight.dtype) == 0
        scores = F.where(unseen, F.ones_like(scores) * -1e9, scores)
        looked_at = F.batch_dot(F.softmax(scores, axis=2), memory)  # (batch, length, hidden)
        x = F.tanh(self.combined(F.concat(looked_at, x, dim=2)))
        return self.dense(self.dropout3(x)), state  # (batch, length, words)


cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: HybridBlock, batch: tuple[NDArray, ...]) -> NDArray:
    """Mean cross entropy of the words, those with label -1 left out; all arrays of dtype int32."""
    source, lengths, target, labels = batch
    logits = model(source, lengths, target).reshape((-3, 0))  # (batch * length, words)
    labels = labels.reshape((-1,)).astype(model.dense.weight.dtype)
    counted = labels >= 0
    return cross_entropy(logits, labels, counted.expand_dims(1)).sum() / counted.sum()


def optimizer(model: HybridBlock, values: Values, learning_rate: float) -> gluon.Trainer:
    """Adam; gradients are cut to the norm ``clip`` before it sees them, in ``benchlib/frameworks/mxnet.py``."""
    adam = Adam(learning_rate, epsilon=values["epsilon"])
    return gluon.Trainer(model.collect_params(), adam, kvstore=None)


def predict(model: HybridBlock, inputs: tuple[NDArray, ...]) -> NDArray:
    """The translation (batch, length), word by word, the likeliest each time; of the target only the start is read."""
    source, lengths, target = inputs
    memory, state = model.encode(nd, source, lengths)
    word, words = target.slice_axis(axis=1, begin=0, end=1), []
    for _ in range(target.shape[1]):
        logits, state = model.decode(nd, word, state, memory, source != 0)
        word = logits.argmax(2).astype("int32")  # (batch, 1)
        words.append(word)
    return nd.concat(*words, dim=1)
