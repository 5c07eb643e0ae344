"""A small convolutional network with batch norm, in JAX with flax.nnx."""

from functools import partial

import jax
from flax import nnx


class SmallCNN(nnx.Module):
    """Three convolutions, each with batch norm and a 2x2 maximum, then two dense layers."""

    def __init__(self, *, rngs: nnx.Rngs):
        conv = partial(nnx.Conv, kernel_size=(3, 3), padding="SAME", use_bias=False, rngs=rngs)
        norm = partial(nnx.BatchNorm, momentum=0.9, epsilon=1e-5, rngs=rngs)
        self.conv1 = conv(3, 16)
        self.bn1 = norm(16)
        self.conv2 = conv(16, 32)
        self.bn2 = norm(32)
        self.conv3 = conv(32, 64)
        self.bn3 = norm(64)
        self.fc1 = nnx.Linear(64 * 4 * 4, 128, rngs=rngs)
        self.fc2 = nnx.Linear(128, 10, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        pool = partial(nnx.max_pool, window_shape=(2, 2), strides=(2, 2))
        x = pool(nnx.relu(self.bn1(self.conv1(x))))
        x = pool(nnx.relu(self.bn2(self.conv2(x))))
        x = pool(nnx.relu(self.bn3(self.conv3(x))))
        x = x.transpose(0, 3, 1, 2).reshape(x.shape[0], -1)  # channels first, as PyTorch flattens them
        x = nnx.relu(self.fc1(x))
        return self.fc2(x)
