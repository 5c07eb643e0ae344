"""The workload ``gru`` in Caffe2."""

from __future__ import annotations

from caffe2.python import brew
from caffe2.python.core import BlobReference
from caffe2.python.model_helper import ModelHelper

from benchlib.workloads import Values
from benchlib.workloads._caffe2 import Adam, cross_entropy, embedding, gru


class Model:
    """Tokens (batch, length) to logits (batch, classes)."""

    def __init__(self, values: Values) -> None:
        self.values = values

    def __call__(self, net: ModelHelper, tokens: BlobReference, training: bool) -> BlobReference:  # (batch, length)
        values = self.values
        tokens = net.net.Transpose(tokens, "tokens")  # (length, batch)
        x = embedding(net, tokens, "embedding", values["words"], values["embedding"])  # (length, batch, embedding)
        last = gru(net, x, "gru", values["embedding"], values["hidden"])  # (batch, hidden): after the last token
        return brew.fc(net, last, "dense", values["hidden"], values["classes"])  # (batch, classes)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(net: ModelHelper, model: Model, batch: tuple[BlobReference, BlobReference]) -> BlobReference:
    """Mean cross entropy of a batch: tokens and labels, both of dtype int32."""
    tokens, labels = batch
    return cross_entropy(net, model(net, tokens, True), labels)


def optimizer(values: Values, learning_rate: float) -> Adam:
    """Adam."""
    return Adam(learning_rate, values["epsilon"])
