"""Fair, traceable comparisons of deep-learning frameworks."""
