"""A copy of an array in memory: what limits the operators that compute little."""
