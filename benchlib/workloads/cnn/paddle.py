"""The workload ``cnn`` in PaddlePaddle."""

from __future__ import annotations

import paddle
from paddle import Tensor, nn

from benchlib.workloads import Values


class Model(nn.Layer):
    """Images (batch, 3, size, size) to logits (batch, 10)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        side = values["image_size"] // 4
        self.conv1 = nn.Conv2D(3, 50, 3, padding=1)
        self.conv2 = nn.Conv2D(50, 50, 3, padding=1)
        self.conv3 = nn.Conv2D(50, 100, 3, padding=1)
        self.conv4 = nn.Conv2D(100, 100, 3, padding=1)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2D(2, stride=2)
        self.dropout1 = nn.Dropout(values["conv_dropout"])
        self.dropout2 = nn.Dropout(values["conv_dropout"])
        self.dropout3 = nn.Dropout(values["dense_dropout"])
        self.flatten = nn.Flatten()
        self.dense1 = nn.Linear(100 * side * side, 512)
        self.dense2 = nn.Linear(512, 10)

    def forward(self, x: Tensor) -> Tensor:  # (batch, 3, size, size)
        x = self.conv2(self.relu(self.conv1(x)))  # (batch, 50, size, size)
        x = self.dropout1(self.relu(self.pool(x)))  # (batch, 50, size / 2, size / 2)
        x = self.conv4(self.relu(self.conv3(x)))  # (batch, 100, size / 2, size / 2)
        x = self.dropout2(self.relu(self.pool(x)))  # (batch, 100, size / 4, size / 4)
        x = self.dropout3(self.relu(self.dense1(self.flatten(x))))  # (batch, 512)
        return self.dense2(x)  # (batch, 10)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: nn.Layer, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean cross entropy of a batch: images, and labels of dtype int64."""
    images, labels = batch
    return nn.functional.cross_entropy(model(images), labels)


def optimizer(model: nn.Layer, values: Values, learning_rate: float) -> paddle.optimizer.Optimizer:
    """Stochastic gradient descent with momentum."""
    return paddle.optimizer.Momentum(learning_rate, values["momentum"], parameters=model.parameters())
