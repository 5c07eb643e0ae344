"""The GRU of flax.nnx."""
