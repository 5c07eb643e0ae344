"""PyTorch before its newest: stand-ins for what a version has not yet, each with the version that brought it."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.modules.rnn import _VF  # 1.4 has it elsewhere than later ones


class TorchFunctionMode:
    """As torch.overrides.TorchFunctionMode (1.13), for functions that drop and recurrent ones: those have others in
    their places meanwhile.
    """

    def __enter__(self) -> TorchFunctionMode:
        names = [(F, name) for name in dir(F) if "dropout" in name and not name.startswith("_")]
        names += [(_VF, name) for name in ("lstm", "gru", "rnn_tanh", "rnn_relu")]
        self._own = [(module, name, getattr(module, name)) for module, name in names]
        for module, name, function in self._own:
            setattr(module, name, partial(self._call, function))
        return self

    def __exit__(self, *error: Any) -> None:
        for module, name, function in self._own:
            setattr(module, name, function)

    def _call(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        self.__exit__()  # functions that this one calls are its own
        try:
            return self.__torch_function__(function, (), args, kwargs)
        finally:
            self.__enter__()

    def __torch_function__(self, function: Any, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        raise NotImplementedError


class _NoScaler:
    """As torch.amp.GradScaler (2.3) that is not enabled."""

    def __init__(self, device: str, init_scale: float = 1.0, enabled: bool = False) -> None:
        pass

    def scale(self, loss: Tensor) -> Tensor:
        return loss

    def unscale_(self, optimizer: torch.optim.Optimizer) -> None:
        pass

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        optimizer.step()

    def update(self) -> None:
        pass

    def get_scale(self) -> float:
        return 1.0


class _Cuda:
    """As torch.accelerator (2.6), of CUDA alone. Never run on a GPU."""

    memory = torch.cuda
    synchronize = torch.cuda.synchronize
    set_device_index = torch.cuda.set_device

    @staticmethod
    def current_accelerator(check_available: bool) -> torch.device | None:
        return torch.device("cuda") if torch.cuda.is_available() else None


def zero_grad(optimizer: torch.optim.Optimizer, set_to_none: bool) -> None:
    """As zero_grad(set_to_none=True) (1.7)."""
    for group in optimizer.param_groups:
        for weight in group["params"]:
            weight.grad = None


if (2, 0) <= tuple(map(int, torch.__version__.split(".")[:2])) < (2, 9):
    tempfile.tempdir = os.getcwd()  # they write a module there and import it: the working directory's are let pass

accelerator = getattr(torch, "accelerator", _Cuda)
GradScaler = getattr(getattr(torch, "amp", None), "GradScaler", _NoScaler)
