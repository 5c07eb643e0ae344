"""A tagger: a label for each token, from an LSTM in both directions, in JAX."""

from flax import nnx


class Tagger(nnx.Module):
    """Embedding, two layers of LSTM, a dense layer for each token."""

    def __init__(self, rngs):
        first, second, last = (nnx.RNN(nnx.OptimizedLSTMCell(size, 64, rngs=rngs)) for size in (48, 48, 128))
        self.embed, self.head = nnx.Embed(1000, 48, rngs=rngs), nnx.Linear(64, 12, rngs=rngs)
        self.both, self.last = nnx.Bidirectional(first, second), last

    def __call__(self, tokens):
        return self.head(self.last(self.both(self.embed(tokens)), reverse=False))
