"""A very small vision transformer for images of 32x32, in JAX with flax.nnx."""

import jax
import jax.numpy as jnp
from flax import nnx


class MlpBlock(nnx.Module):
    """Two dense layers with the exact GELU between them."""

    def __init__(self, hidden_size: int, mlp_dim: int, *, rngs: nnx.Rngs):
        self.fc_in = nnx.Linear(hidden_size, mlp_dim, rngs=rngs)
        self.fc_out = nnx.Linear(mlp_dim, hidden_size, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.fc_out(nnx.gelu(self.fc_in(x), approximate=False))


class EncoderLayer(nnx.Module):
    """Attention and a perceptron, each after a norm and beside a skip connection."""

    def __init__(self, hidden_size: int, num_heads: int, *, rngs: nnx.Rngs):
        self.ln_attention = nnx.LayerNorm(hidden_size, epsilon=1e-5, rngs=rngs)
        self.attention = nnx.MultiHeadAttention(num_heads, hidden_size, decode=False, rngs=rngs)
        self.ln_mlp = nnx.LayerNorm(hidden_size, epsilon=1e-5, rngs=rngs)
        self.mlp = MlpBlock(hidden_size, 4 * hidden_size, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = x + self.attention(self.ln_attention(x))
        return x + self.mlp(self.ln_mlp(x))


class ViT(nnx.Module):
    """Patches of 4x4, a class token, learned positions."""

    def __init__(self, hidden_size: int = 96, num_layers: int = 4, num_heads: int = 3, *, rngs: nnx.Rngs):
        self.embedding = nnx.Conv(3, hidden_size, (4, 4), strides=4, padding="VALID", rngs=rngs)
        self.cls = nnx.Param(jnp.zeros((1, 1, hidden_size)))
        self.position_embeddings = nnx.Param(0.02 * jax.random.normal(rngs.params(), (1, 65, hidden_size)))
        self.layers = nnx.List([EncoderLayer(hidden_size, num_heads, rngs=rngs) for _ in range(num_layers)])
        self.ln_final = nnx.LayerNorm(hidden_size, epsilon=1e-5, rngs=rngs)
        self.classifier = nnx.Linear(hidden_size, 10, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        patches = self.embedding(images)
        batch, height, width, channels = patches.shape
        x = patches.reshape(batch, height * width, channels)
        cls = jnp.broadcast_to(self.cls[...], (batch, 1, channels))
        x = jnp.concatenate([cls, x], axis=1) + self.position_embeddings[...]
        for layer in self.layers:
            x = layer(x)
        return self.classifier(self.ln_final(x)[:, 0])
