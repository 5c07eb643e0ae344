"""The workload ``cnn`` on images of 8x8, as a user writes a model: see ``benchmarks/short_way.py``."""

from torch import nn

INPUT = (3, 8, 8)
CLASSES = 10


class Net(nn.Module):
    """Four convolutions and two dense layers."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 50, 3, padding=1)
        self.conv2 = nn.Conv2d(50, 50, 3, padding=1)
        self.conv3 = nn.Conv2d(50, 100, 3, padding=1)
        self.conv4 = nn.Conv2d(100, 100, 3, padding=1)
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2, stride=2)
        self.dropout1, self.dropout2, self.dropout3 = nn.Dropout(0.25), nn.Dropout(0.25), nn.Dropout(0.5)
        self.dense1 = nn.Linear(100 * 2 * 2, 512)
        self.dense2 = nn.Linear(512, 10)

    def forward(self, x):
        x = self.conv2(self.relu(self.conv1(x)))
        x = self.dropout1(self.relu(self.pool(x)))
        x = self.conv4(self.relu(self.conv3(x)))
        x = self.dropout2(self.relu(self.pool(x)))
        x = self.dropout3(self.relu(self.dense1(x.flatten(1))))
        return self.dense2(x)
