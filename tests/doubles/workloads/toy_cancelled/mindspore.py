"""The workload ``toy_cancelled`` in MindSpore."""

from benchlib.workloads.toy_cancelled.workload import CHANNELS
from mindspore import nn, ops


class Model(nn.Cell):
    def __init__(self, values):
        super().__init__()
        (a, b), (c, d) = CHANNELS
        self.conv1 = nn.Conv2d(a, b, 3, pad_mode="pad", padding=1, has_bias=True)
        self.conv2 = nn.Conv2d(c, d, 3, pad_mode="pad", padding=1, has_bias=True)
        self.bn1, self.bn2 = nn.BatchNorm2d(b), nn.BatchNorm2d(d)
        self.pool = nn.MaxPool2d(2, stride=2)
        self.dense = nn.Dense(32, 10)
        self.planted = values["plant"] == "gradient"

    def construct(self, x):
        x = self.bn1(self.conv1(x))
        if self.planted:
            planted = 0.01 * self.conv1.bias.reshape(1, -1, 1, 1)
            x = x + planted - ops.stop_gradient(planted)
        x = self.pool(ops.relu(x))
        return self.dense(ops.relu(self.bn2(self.conv2(x))).mean((2, 3)))


def build(values):
    return Model(values)


def loss(model, batch):
    images, labels = batch
    return ops.cross_entropy(model(images), labels)


def optimizer(model, values, learning_rate):
    return nn.SGD(model.trainable_params(), learning_rate=learning_rate, momentum=0.9)
