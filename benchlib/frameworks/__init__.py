"""The frameworks: one file each, with one class that a worker uses to build a workload and run its steps.

Only ``frameworks/X.py`` and ``workloads/*/X.py`` import framework X. This module imports none; it says what a
framework file must offer (:class:`Session`) and which there are.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any, Protocol

import numpy as np

from benchlib.errors import BenchlibError, unknown
from benchlib.workloads import Values, Workload


class Session(Protocol):
    """What a framework's file offers a worker: ``frameworks/X.py`` defines ``class Session`` with these methods.

    Construction selects device, mode and precision and sets ``knobs`` (see ``benchlib.knobs``), for the whole process;
    one that the framework does not have is a BenchlibError. Nothing here times anything.
    """

    def __init__(
        self, device: str, mode: str, precision: str, seed: int, knobs: Mapping[str, str] = MappingProxyType({})
    ) -> None: ...

    def build(self, workload: Workload, module: ModuleType, values: Values, learning_rate: float | None) -> None:
        """Build model, loss and optimizer (or the operator) from ``module``, the framework's file of the workload."""

    def load(self, weights: dict[str, np.ndarray]) -> None:
        """Set the model's whole state, by the workload's names; an unknown or missing name or shape is a
        BenchlibError. Also forgets the optimizer's state.
        """

    def weights(self) -> dict[str, np.ndarray]:
        """The model's state now, by the workload's names, as float32 copies."""

    def put(self, arrays: tuple[np.ndarray, ...]) -> Any:
        """A batch on the device, ready for :meth:`step`; arrays are a sample's fields, whole numbers as
        int32, or (inputs, output gradient).
        """

    def step(self, batch: Any) -> Any:
        """Queue one step; return its loss (an operator: its output), still on the device. Does not wait."""

    def synchronize(self) -> None:
        """Wait until all queued work is done. What a clock reads after this includes all of it."""

    def outputs(self, batch: Any, training: bool) -> tuple[np.ndarray, ...]:
        """The model's outputs, one or more, for a batch's inputs, without a step, in training or in evaluation
        behaviour (BN, dropout).
        """

    def predictions(self, batch: Any) -> np.ndarray:
        """What the model, in evaluation behaviour, predicts for a batch's inputs: the classes of its first output, or
        what ``predict`` of the workload's file says.
        """

    def gradients(self, batch: Any) -> dict[str, np.ndarray]:
        """Gradients of the loss by the workload's names of trained weights (an operator: also ``input``), without a
        step.
        """

    def to_numpy(self, value: Any) -> np.ndarray:
        """What :meth:`step` returned, as numpy."""

    def settings(self) -> dict[str, str | int | float | bool]:
        """What is in force now and changes speed: threads, device name, TF32 ...: read back from the framework, not
        assumed.
        """

    def device_memory(self) -> dict[str, float]:
        """Device memory in MiB as the framework counts it: ``allocated``, ``peak``; empty where it counts none."""

    @staticmethod
    def versions() -> dict[str, str]:
        """The framework's version and that of what it computes with (oneDNN, CUDA, cuDNN ...), by name."""


def names() -> list[str]:
    """The frameworks there is a file for."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def file(name: str) -> Path:
    """The file of framework ``name``."""
    return next(path for folder in __path__ if (path := Path(folder) / f"{name}.py").exists())


def package(name: str) -> str:
    """The Python package that framework ``name`` comes in: ``PACKAGE`` of its file, read without importing the
    framework.
    """
    return _constant(name, "PACKAGE")


def devices(name: str) -> tuple[str, ...]:
    """The kinds of device that framework ``name`` has a code path for: ``DEVICES`` of its file, read without
    importing the framework.
    """
    return _constant(name, "DEVICES")


def _constant(name: str, constant: str) -> Any:
    tree = ast.parse(file(name).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and [getattr(t, "id", None) for t in node.targets] == [constant]:
            return ast.literal_eval(node.value)
    raise BenchlibError(f"{file(name)}: it must define {constant} as a literal")


def session_class(name: str) -> type[Session]:
    """Import framework ``name`` (a worker does this, the parent never) and return its ``Session``."""
    if name not in names():
        raise BenchlibError(unknown("framework", name, names()))
    return importlib.import_module(f"benchlib.frameworks.{name}").Session


def check_weights(where: str, expected: Mapping[str, Sequence[int]], given: Mapping[str, Sequence[int]]) -> None:
    """Raise a BenchlibError naming the first name or shape in which ``given`` differs from ``expected``."""
    for name in given:
        if name not in expected:
            raise BenchlibError(f"{where}: {unknown('weight', name, expected)}")
    for name, shape in expected.items():
        if name not in given:
            raise BenchlibError(f"{where}: weight {name!r} of shape {tuple(shape)} is missing")
        if tuple(given[name]) != tuple(shape):
            raise BenchlibError(f"{where}: weight {name!r} has shape {tuple(given[name])}, expected {tuple(shape)}")
