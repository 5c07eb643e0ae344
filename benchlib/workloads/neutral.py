"""The gate's settings in several workloads, as (value, why): see ``benchlib.workloads.Gate``."""

from __future__ import annotations

DROPOUT_OFF = (0.0, "dropout masks come from each framework's own generator and never agree: it is off for this")
LARGE_EPSILON = (
    1e-3,
    "Adam divides a small gradient by its own size, so the last digit of one that is almost 0 decides an update: a "
    "large epsilon prevents that",
)
LARGE_DECAY = (1.0, "three steps with the usual one would not show whether all weights decay, or only some")
SMALL_CLIP = (0.01, "with the usual one, gradients of the first steps may be short enough to be left alone")
NORM_BIAS = (
    2.0,
    "batch normalisation over few numbers and ReLU, dozens of times, make rounding grow: from the initial state, "
    "PyTorch's outputs in fp32 differ from its own in fp64 by 1e-5 to 1e-3, its gradients by up to 0.2 "
    "(benchmarks/conditioning.py); with this bias few numbers lie near ReLU's kink, and a batch of 16 images gives the "
    "normalisation more to go on",
)
LESS_NORM_BIAS = (
    1.5,
    "few numbers are to lie near ReLU's kink, as in other deep models; but the larger the bias, the more of a sum is "
    "its mean, which the next normalisation takes off again, and with it the last digits: where no kink is met, "
    "PyTorch's gradients in fp32 differ from its own in fp64 by 3e-5 to 2e-4 with 2, and by 3e-5 to 1e-4 with 1.5",
)
CAREFUL_RATE = 0.001
"""Learning rate of the gate for deep convolutional models. At a usual one, three steps carry them past kinks, where
even PyTorch's eager and graph mode part.
"""
