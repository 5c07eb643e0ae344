"""The workload ``toy_cancelled`` in PyTorch."""

import torch
from benchlib.workloads.toy_cancelled.workload import CHANNELS
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        for number, (inputs, outputs) in enumerate(CHANNELS, 1):
            setattr(self, f"conv{number}", nn.Conv2d(inputs, outputs, 3, padding=1))
            setattr(self, f"bn{number}", nn.BatchNorm2d(outputs))
        self.dense = nn.Linear(32, 10)

    def forward(self, x):
        x = torch.relu(self.bn1(self.conv1(x)))
        x = torch.relu(self.bn2(self.conv2(nn.functional.max_pool2d(x, 2))))
        return self.dense(x.mean((2, 3)))


def build(values):
    return Model()


def loss(model, batch):
    images, labels = batch
    return nn.functional.cross_entropy(model(images), labels)


def optimizer(model, values, learning_rate):
    return torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)
