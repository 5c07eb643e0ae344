"""The workload ``cnn`` in MindSpore."""

from __future__ import annotations

from mindspore import Tensor, nn, ops

from benchlib.workloads import Values


class Model(nn.Cell):
    """Images (batch, 3, size, size) to logits (batch, 10)."""

    def __init__(self, values: Values) -> None:
        super().__init__()
        side = values["image_size"] // 4
        self.conv1 = nn.Conv2d(3, 50, 3, pad_mode="pad", padding=1, has_bias=True)
        self.conv2 = nn.Conv2d(50, 50, 3, pad_mode="pad", padding=1, has_bias=True)
        self.conv3 = nn.Conv2d(50, 100, 3, pad_mode="pad", padding=1, has_bias=True)
        self.conv4 = nn.Conv2d(100, 100, 3, pad_mode="pad", padding=1, has_bias=True)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, stride=2)
        self.dropout1 = nn.Dropout(p=values["conv_dropout"])
        self.dropout2 = nn.Dropout(p=values["conv_dropout"])
        self.dropout3 = nn.Dropout(p=values["dense_dropout"])
        self.flatten = nn.Flatten()
        self.dense1 = nn.Dense(100 * side * side, 512)
        self.dense2 = nn.Dense(512, 10)

    def construct(self, x: Tensor) -> Tensor:  # (batch, 3, size, size)
        x = self.conv2(self.relu(self.conv1(x)))  # (batch, 50, size, size)
        x = self.dropout1(self.relu(self.pool(x)))  # (batch, 50, size / 2, size / 2)
        x = self.conv4(self.relu(self.conv3(x)))  # (batch, 100, size / 2, size / 2)
        x = self.dropout2(self.relu(self.pool(x)))  # (batch, 100, size / 4, size / 4)
        x = self.dropout3(self.relu(self.dense1(self.flatten(x))))  # (batch, 512)
        return self.dense2(x)  # (batch, 10)


def build(values: Values) -> Model:
    """The model with these hyperparameters."""
    return Model(values)


def loss(model: nn.Cell, batch: tuple[Tensor, Tensor]) -> Tensor:
    """Mean cross entropy of a batch: images, and labels of dtype int32."""
    images, labels = batch
    return ops.cross_entropy(model(images), labels)


def optimizer(model: nn.Cell, values: Values, learning_rate: float) -> nn.Optimizer:
    """Stochastic gradient descent with momentum."""
    return nn.SGD(model.trainable_params(), learning_rate=learning_rate, momentum=values["momentum"])
