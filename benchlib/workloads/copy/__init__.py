"""A copy of an array in memory: the limit of operators that compute little."""
