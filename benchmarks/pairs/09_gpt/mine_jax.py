"""A small causal language model in the manner of GPT-2, in JAX with flax.nnx."""

import jax
import jax.numpy as jnp
from flax import nnx


class CausalSelfAttention(nnx.Module):
    """Each place attends to itself and to what came before."""

    def __init__(self, n_embd: int, n_head: int, dropout: float, *, rngs: nnx.Rngs):
        self.n_head = n_head
        self.c_attn = nnx.Linear(n_embd, 3 * n_embd, rngs=rngs)
        self.c_proj = nnx.Linear(n_embd, n_embd, rngs=rngs)
        self.attn_dropout = nnx.Dropout(dropout, rngs=rngs)
        self.resid_dropout = nnx.Dropout(dropout, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        b, t, c = x.shape
        q, k, v = (y.reshape(b, t, self.n_head, -1) for y in jnp.split(self.c_attn(x), 3, axis=-1))
        att = jnp.einsum("bqhd,bkhd->bhqk", q, k) / jnp.sqrt(q.shape[-1])
        mask = jnp.tril(jnp.ones((t, t), dtype=bool))
        att = jnp.where(mask, att, -jnp.inf)
        att = self.attn_dropout(nnx.softmax(att, axis=-1))
        y = jnp.einsum("bhqk,bkhd->bqhd", att, v).reshape(b, t, c)
        return self.resid_dropout(self.c_proj(y))


class MLP(nnx.Module):
    """Four times as wide inside."""

    def __init__(self, n_embd: int, dropout: float, *, rngs: nnx.Rngs):
        self.c_fc = nnx.Linear(n_embd, 4 * n_embd, rngs=rngs)
        self.c_proj = nnx.Linear(4 * n_embd, n_embd, rngs=rngs)
        self.dropout = nnx.Dropout(dropout, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.dropout(self.c_proj(nnx.gelu(self.c_fc(x), approximate=False)))


class Block(nnx.Module):
    """Attention and a perceptron, each after a norm and beside a skip connection."""

    def __init__(self, n_embd: int, n_head: int, dropout: float, *, rngs: nnx.Rngs):
        self.ln_1 = nnx.LayerNorm(n_embd, epsilon=1e-5, rngs=rngs)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout, rngs=rngs)
        self.ln_2 = nnx.LayerNorm(n_embd, epsilon=1e-5, rngs=rngs)
        self.mlp = MLP(n_embd, dropout, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nnx.Module):
    """Tokens and positions, blocks, a norm; the output layer has the weights of the token embedding."""

    def __init__(self, n_embd=64, n_head=4, n_layer=3, block_size=64, vocab_size=256, dropout=0.1, *, rngs: nnx.Rngs):
        init = nnx.initializers.normal(0.02)
        self.wte = nnx.Embed(vocab_size, n_embd, embedding_init=init, rngs=rngs)
        self.wpe = nnx.Embed(block_size, n_embd, embedding_init=init, rngs=rngs)
        self.drop = nnx.Dropout(dropout, rngs=rngs)
        self.h = nnx.List([Block(n_embd, n_head, dropout, rngs=rngs) for _ in range(n_layer)])
        self.ln_f = nnx.LayerNorm(n_embd, epsilon=1e-5, rngs=rngs)

    def __call__(self, idx: jax.Array) -> jax.Array:
        pos = jnp.arange(idx.shape[1])
        x = self.drop(self.wte(idx) + self.wpe(pos))
        for block in self.h:
            x = block(x)
        return self.wte.attend(self.ln_f(x))
