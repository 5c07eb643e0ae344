"""The workload ``planted`` in PyTorch: the optimizer burns a share of the time that the step has taken."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import nn

from benchlib.workloads import Values
from benchlib.workloads.cnn.pytorch import build, loss

__all__ = ["build", "loss", "optimizer"]


class Slower(torch.optim.SGD):
    """From ``zero_grad`` at a step's start to its end it takes the time, and burns ``slower`` times as much.

    It burns it with short operations on all threads: threads that wait for a millisecond go to sleep, and waking them
    would make the next step slower by more than what is planted.
    """

    def __init__(self, parameters: Any, slower: float, **settings: float) -> None:
        super().__init__(parameters, **settings)
        self._slower = slower
        self._started = time.perf_counter()
        self._numbers = torch.zeros(2**17)

    def zero_grad(self, set_to_none: bool = True) -> None:
        self._started = time.perf_counter()
        super().zero_grad(set_to_none)

    def step(self, closure: Any = None) -> Any:
        value = super().step(closure)
        now = time.perf_counter()
        end = now + self._slower * (now - self._started)
        while time.perf_counter() < end:
            self._numbers.add_(1.0)
        return value


def optimizer(model: nn.Module, values: Values, learning_rate: float) -> torch.optim.Optimizer:
    """Stochastic gradient descent with momentum, and the planted time."""
    return Slower(model.parameters(), values["slower"], lr=learning_rate, momentum=values["momentum"])
