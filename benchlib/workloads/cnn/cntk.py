"""The workload ``cnn`` in CNTK."""

from __future__ import annotations

import cntk as C
from cntk.layers import Convolution2D, Dense, MaxPooling

from benchlib.workloads import Values


class Model:
    """Images (3, size, size) to logits (10): of one sample, as CNTK's shapes are."""

    def __init__(self, values: Values) -> None:
        self.conv_dropout, self.dense_dropout = values["conv_dropout"], values["dense_dropout"]
        self.conv1 = Convolution2D((3, 3), 50, pad=True)
        self.conv2 = Convolution2D((3, 3), 50, pad=True)
        self.conv3 = Convolution2D((3, 3), 100, pad=True)
        self.conv4 = Convolution2D((3, 3), 100, pad=True)
        self.pool = MaxPooling((2, 2), strides=2)
        self.dense1 = Dense(512)
        self.dense2 = Dense(10)

    def __call__(self, x: C.Variable) -> C.Function:  # (3, size, size)
        x = self.conv2(C.relu(self.conv1(x)))  # (50, size, size)
        x = C.dropout(C.relu(self.pool(x)), self.conv_dropout)  # (50, size / 2, size / 2)
        x = self.conv4(C.relu(self.conv3(x)))  # (100, size / 2, size / 2)
        x = C.dropout(C.relu(self.pool(x)), self.conv_dropout)  # (100, size / 4, size / 4)
        x = C.dropout(C.relu(self.dense1(x)), self.dense_dropout)  # (512): a dense layer flattens
        return self.dense2(x)  # (10)


def inputs(values: Values) -> tuple[C.Variable, C.Variable]:
    """Images, and labels as one of ten."""
    return C.input_variable((3, values["image_size"], values["image_size"])), C.input_variable(10)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: Model, batch: tuple[C.Variable, C.Variable]) -> C.Function:
    """Cross entropy of a sample: images and labels. The trainer makes the mean of a batch."""
    images, labels = batch
    return C.cross_entropy_with_softmax(model(images), labels)


def optimizer(parameters: list[C.Parameter], values: Values, learning_rate: float) -> C.learners.Learner:
    """Stochastic gradient descent with momentum; a rate is that of a whole batch (IGNORE), and not of a sample."""
    rate = C.learning_parameter_schedule(learning_rate, minibatch_size=C.learners.IGNORE)
    momentum = C.momentum_schedule(values["momentum"], minibatch_size=C.learners.IGNORE)
    return C.momentum_sgd(parameters, rate, momentum, unit_gain=False, minibatch_size=C.learners.IGNORE)
