"""Intervals, comparisons, training runs, and the tidy frame of all that was measured."""
