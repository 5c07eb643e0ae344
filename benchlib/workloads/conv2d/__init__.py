"""One two-dimensional convolution."""
