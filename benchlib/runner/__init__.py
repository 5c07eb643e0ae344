"""Runs workers and times them: processes, interleaved rounds, training, interference, roofline, timer check."""
