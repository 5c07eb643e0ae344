"""The workload ``cnn`` on images of 8x8, as a user writes a model: see ``benchmarks/short_way.py``."""

from flax import nnx


class Net(nnx.Module):
    """Four convolutions and two dense layers."""

    def __init__(self, rngs):
        self.conv1 = nnx.Conv(3, 50, (3, 3), rngs=rngs)
        self.conv2 = nnx.Conv(50, 50, (3, 3), rngs=rngs)
        self.conv3 = nnx.Conv(50, 100, (3, 3), rngs=rngs)
        self.conv4 = nnx.Conv(100, 100, (3, 3), rngs=rngs)
        self.dropout1 = nnx.Dropout(0.25, rngs=rngs)
        self.dropout2 = nnx.Dropout(0.25, rngs=rngs)
        self.dropout3 = nnx.Dropout(0.5, rngs=rngs)
        self.dense1 = nnx.Linear(2 * 2 * 100, 512, rngs=rngs)
        self.dense2 = nnx.Linear(512, 10, rngs=rngs)

    def __call__(self, x):
        x = self.conv2(nnx.relu(self.conv1(x)))
        x = self.dropout1(nnx.relu(nnx.max_pool(x, (2, 2), strides=(2, 2))))
        x = self.conv4(nnx.relu(self.conv3(x)))
        x = self.dropout2(nnx.relu(nnx.max_pool(x, (2, 2), strides=(2, 2))))
        x = self.dropout3(nnx.relu(self.dense1(x.reshape(x.shape[0], -1))))
        return self.dense2(x)
