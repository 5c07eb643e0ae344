"""One two-dimensional batch normalisation, in training behaviour."""
