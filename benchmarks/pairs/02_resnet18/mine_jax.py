"""ResNet-18 for images of 32x32, a quarter as wide as usual, in JAX with flax.nnx."""

from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx

Conv = partial(nnx.Conv, use_bias=False)
Norm = partial(nnx.BatchNorm, momentum=0.9, epsilon=1e-5)


class ResidualBlock(nnx.Module):
    """Two 3x3 convolutions beside an identity or a projection."""

    def __init__(self, features_in: int, features: int, strides: int, *, rngs: nnx.Rngs):
        # Both sides padded by 1: "SAME" would pad only one side where the stride is 2.
        self.conv_a = Conv(features_in, features, (3, 3), strides=strides, padding=((1, 1), (1, 1)), rngs=rngs)
        self.norm_a = Norm(features, rngs=rngs)
        self.conv_b = Conv(features, features, (3, 3), padding=1, rngs=rngs)
        self.norm_b = Norm(features, rngs=rngs)
        self.projects = strides != 1 or features_in != features
        if self.projects:
            self.projection = Conv(features_in, features, (1, 1), strides=strides, padding="VALID", rngs=rngs)
            self.projection_norm = Norm(features, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        y = nnx.relu(self.norm_a(self.conv_a(x)))
        y = self.norm_b(self.conv_b(y))
        residual = self.projection_norm(self.projection(x)) if self.projects else x
        return nnx.relu(y + residual)


class ResNet(nnx.Module):
    """A 3x3 stem, four stages of two blocks, the mean over places, a dense layer."""

    def __init__(self, stage_sizes=(2, 2, 2, 2), width: int = 16, classes: int = 10, *, rngs: nnx.Rngs):
        self.stem = Conv(3, width, (3, 3), padding=1, rngs=rngs)
        self.stem_norm = Norm(width, rngs=rngs)
        self.blocks = nnx.List()
        features_in = width
        for stage, size in enumerate(stage_sizes):
            features = width * 2**stage
            for block in range(size):
                strides = 2 if stage > 0 and block == 0 else 1
                self.blocks.append(ResidualBlock(features_in, features, strides, rngs=rngs))
                features_in = features
        self.head = nnx.Linear(features_in, classes, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = nnx.relu(self.stem_norm(self.stem(x)))
        for block in self.blocks:
            x = block(x)
        return self.head(jnp.mean(x, axis=(1, 2)))
