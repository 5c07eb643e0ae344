"""The workload ``cnn`` in MXNet."""

from __future__ import annotations

from types import ModuleType

from mxnet import gluon
from mxnet.gluon import HybridBlock, nn
from mxnet.ndarray import NDArray

from benchlib.workloads import Values


class Model(HybridBlock):
    """Images (batch, 3, size, size) to logits (batch, 10)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        side = values["image_size"] // 4
        self.conv1 = nn.Conv2D(50, 3, padding=1, in_channels=3)
        self.conv2 = nn.Conv2D(50, 3, padding=1, in_channels=50)
        self.conv3 = nn.Conv2D(100, 3, padding=1, in_channels=50)
        self.conv4 = nn.Conv2D(100, 3, padding=1, in_channels=100)
        self.relu = nn.Activation("relu")
        self.pool = nn.MaxPool2D(2, strides=2)
        self.dropout1 = nn.Dropout(values["conv_dropout"])
        self.dropout2 = nn.Dropout(values["conv_dropout"])
        self.dropout3 = nn.Dropout(values["dense_dropout"])
        self.flatten = nn.Flatten()
        self.dense1 = nn.Dense(512, in_units=100 * side * side)
        self.dense2 = nn.Dense(10, in_units=512)

    def hybrid_forward(self, F: ModuleType, x: NDArray) -> NDArray:  # (batch, 3, size, size)
        x = self.conv2(self.relu(self.conv1(x)))  # (batch, 50, size, size)
        x = self.dropout1(self.relu(self.pool(x)))  # (batch, 50, size / 2, size / 2)
        x = self.conv4(self.relu(self.conv3(x)))  # (batch, 100, size / 2, size / 2)
        x = self.dropout2(self.relu(self.pool(x)))  # (batch, 100, size / 4, size / 4)
        x = self.dropout3(self.relu(self.dense1(self.flatten(x))))  # (batch, 512)
        return self.dense2(x)  # (batch, 10)


cross_entropy = gluon.loss.SoftmaxCrossEntropyLoss()


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: HybridBlock, batch: tuple[NDArray, NDArray]) -> NDArray:
    """Mean cross entropy of a batch: images, and labels of dtype int32."""
    images, labels = batch
    return cross_entropy(model(images), labels).mean()


def optimizer(model: HybridBlock, values: Values, learning_rate: float) -> gluon.Trainer:
    """Stochastic gradient descent with momentum."""
    settings = {"learning_rate": learning_rate, "momentum": values["momentum"]}
    return gluon.Trainer(model.collect_params(), "sgd", settings, kvstore=None)
