"""The workload ``cnn`` in Theano."""

from __future__ import annotations

from theano.tensor import TensorVariable
from theano.tensor.nnet import relu

from benchlib.workloads import Values
from benchlib.workloads._theano import Convolution, Dense, Layer, Momentum, cross_entropy, dropout, pool, trained


class Model(Layer):
    """Images (batch, 3, size, size) to logits (batch, 10)."""

    def __init__(self, values: Values) -> None:
        side = values["image_size"] // 4
        self.conv_dropout, self.dense_dropout = values["conv_dropout"], values["dense_dropout"]
        self.conv1 = Convolution(3, 50, 3)
        self.conv2 = Convolution(50, 50, 3)
        self.conv3 = Convolution(50, 100, 3)
        self.conv4 = Convolution(100, 100, 3)
        self.dense1 = Dense(100 * side * side, 512)
        self.dense2 = Dense(512, 10)

    def forward(self, x: TensorVariable, training: bool) -> TensorVariable:  # (batch, 3, size, size)
        x = self.conv2(relu(self.conv1(x)))  # (batch, 50, size, size)
        x = dropout(relu(pool(x)), self.conv_dropout, training)  # (batch, 50, size / 2, size / 2)
        x = self.conv4(relu(self.conv3(x)))  # (batch, 100, size / 2, size / 2)
        x = dropout(relu(pool(x)), self.conv_dropout, training)  # (batch, 100, size / 4, size / 4)
        x = dropout(relu(self.dense1(x.flatten(2))), self.dense_dropout, training)  # (batch, 512)
        return self.dense2(x)  # (batch, 10)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: Layer, batch: tuple[TensorVariable, TensorVariable]) -> TensorVariable:
    """Mean cross entropy of a batch: images, and labels of dtype int32."""
    images, labels = batch
    return cross_entropy(model(images, True), labels)


def optimizer(model: Layer, values: Values, learning_rate: float) -> Momentum:
    """Stochastic gradient descent with momentum."""
    return Momentum(trained(model).values(), learning_rate, values["momentum"])
