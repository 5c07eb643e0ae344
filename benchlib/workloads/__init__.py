"""The workloads: each model's description, free of any framework, and the place of each framework's file for it.

A workload is a folder here. Its ``workload.py`` defines ``WORKLOAD``; ``pytorch.py``, ``mindspore.py`` ... say how
each framework builds it and are meant to be read side by side. Adding a workload is adding a folder, here or in a
plug-in; nothing else changes.

Workers import this module, so it needs numpy and the standard library only.
"""

from __future__ import annotations

import ast
import functools
import importlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Mapping, Sequence

import numpy as np

from benchlib.errors import BenchlibError, no_such, quote

Values = Mapping[str, Any]
"""A workload's hyperparameters by name, all of them, checked."""

GREATEST = float(np.finfo(np.float32).max)
"""The greatest of the numbers that frameworks compute with."""


@dataclass(frozen=True)
class Hyperparameter:
    """One declared hyperparameter: its default, its permitted values, and its meaning."""

    default: Any
    help: str
    choices: tuple[Any, ...] = ()  # empty: any value of the default's type
    minimum: float | None = None
    maximum: int | None = None  # of things counted one by one, such as layers; memory sets the limits of sizes
    below: float | None = None  # the value must be less

    def check(self, where: str, value: Any) -> Any:
        """Return ``value`` if it fits, or raise a BenchlibError that names ``where``."""
        kind = type(self.default)
        if kind is float and type(value) is int and abs(value) <= GREATEST:
            value = float(value)
        if type(value) is not kind:
            raise BenchlibError(
                f"{where}: {quote(value)} is a {type(value).__name__}, expected a {kind.__name__} ({self.help})"
            )
        if self.choices and value not in self.choices:
            raise BenchlibError(f"{where}: {no_such('choice', value, map(str, self.choices))}")
        if isinstance(value, float) and not abs(value) <= GREATEST:
            raise BenchlibError(f"{where}: {value!r} is no number to compute with ({self.help})")
        if self.minimum is not None and value < self.minimum:
            raise BenchlibError(f"{where}: {quote(value)} is too small, the least is {self.minimum:g} ({self.help})")
        if self.maximum is not None and value > self.maximum:
            raise BenchlibError(f"{where}: {quote(value)} is too large, the most is {self.maximum:,} ({self.help})")
        if self.below is not None and value >= self.below:
            raise BenchlibError(f"{where}: {value!r} is too large, it must be below {self.below:g} ({self.help})")
        return value


@dataclass(frozen=True)
class Weight:
    """One array of a model's initial state: its shape, and how it is drawn (see ``benchlib.data.weights``)."""

    shape: tuple[int, ...]
    init: str  # "glorot_uniform", "uniform", "between", "zeros", "ones", "normal", "constant"
    fan: tuple[int, int] | None = None  # (fan_in, fan_out), for glorot_uniform
    limit: float | None = None  # of the absolute values, for uniform
    bounds: tuple[float, float] | None = None  # lowest and highest, for between
    deviation: float = 1.0  # standard deviation, for normal
    value: float = 0.0  # for constant
    trained: bool = True  # False: state that is not trained, such as a running mean


@dataclass(frozen=True)
class Work:
    """The work for one sample, whatever the framework."""

    multiply_adds: float
    least_bytes: float  # that have to be read and written if nothing stays in a cache between operators; float32

    def times(self, factor: float) -> Work:
        return Work(factor * self.multiply_adds, factor * self.least_bytes)


def taps(size: int, kernel: int, padding: int, stride: int = 1) -> int:
    """Multiply-adds of a convolution along one dimension for one pair of channels: those with the padding, which is 0,
    are no work.

    >>> taps(4, 3, 1), taps(4, 3, 0), taps(4, 3, 1, stride=2)
    (10, 6, 5)
    """
    starts = range(-padding, size + padding - kernel + 1, stride)
    if _padded:
        return len(starts) * kernel
    return sum(_inside(starts, tap, size) for tap in range(kernel))


_padded = []  # type: list[bool]  # not empty: multiply-adds with the padding count, as frameworks count them


def _inside(starts: range, tap: int, size: int) -> int:
    """The number of ``starts`` that have their ``tap`` in an image of this size."""
    first = max(0, -(-(-tap - starts.start) // starts.step))
    last = min(len(starts) - 1, (size - 1 - tap - starts.start) // starts.step)
    return max(0, last - first + 1)


BACKWARD = 3.0
"""Work of forward and backward over that of forward: the gradients of inputs and of weights each cost about as much."""


@dataclass(frozen=True)
class Metric:
    """A workload's own metric, where it is none of ``benchlib.metrics``. It takes predictions and labels of the test
    data, arrays of whole numbers of the same length; more is better. No run can reach a threshold outside its range.
    """

    measure: Callable[[np.ndarray, np.ndarray], float]
    least: float
    greatest: float


Samples = Mapping[str, np.ndarray]
"""Arrays of samples by the names of a workload's fields, the samples along the first axis."""


@dataclass(frozen=True)
class Exercise:
    """A property of some samples for which a part of the model is there: padding, a sequence that fills its place. The
    equivalence gate chooses samples that have it. Where none has, at the sizes that are asked for, it takes those that
    ``made`` makes of others.
    """

    shown: Callable[[Samples], np.ndarray]  # (samples,) bool
    made: Callable[[Samples], dict[str, np.ndarray]] | None = None  # all arrays, as new ones


@dataclass(frozen=True)
class Gate:
    """The gate's settings for a workload, and its way to compare it: see ``benchlib.equivalence.gate``.

    A hyperparameter is set to a value on which two frameworks can agree to the last digits, or to one that shows a
    difference. The usual value would hide that.
    """

    settings: Mapping[str, tuple[Any, str]] = field(default_factory=dict)  # hyperparameters: value, and why
    batch_size: int | None = None  # None: the gate's own, which is small
    learning_rate: float | None = None  # None: half the workload's own
    # does it make rounding grow from step to step? Then a trial takes one step, and a longer training gives it the
    # reference's weights before each step
    fed: bool = False
    # in double precision outputs that are nearer, though not equal, are rounded by a framework's own operator, such as
    # a resize that gives fp32, or a slope that is kept in it; then fp32 decides
    rounds: float = 0.0

    @property
    def hyperparameters(self) -> dict[str, Any]:
        return {name: value for name, (value, _) in self.settings.items()}


@dataclass(frozen=True)
class Workload:
    """Model + data + hyperparameters + metric + threshold, free of any framework.

    ``kind`` is ``"training"`` or ``"operator"``. A training step is forward, loss, backward and update. An operator's
    step is its forward, or forward and backward from a given gradient of its output. ``weights(values)`` gives the
    model's initial state by PyTorch's names, in order. ``inputs(values, batch_size, rng)`` draws one batch of an
    operator: (input, gradient of the output). ``gate`` has the settings that let two frameworks agree to the last
    digits, and their reasons. ``settled`` has the points that the frameworks' files settle to run the same model, each
    with a sentence that names its frameworks. A point of one framework beside PyTorch and MindSpore begins with its
    name: ``"JAX: padding"``. Unlike the gate's settings these stay so when speed is measured.
    """

    name: str
    title: str
    kind: str
    source: str  # where the model is from; the one that it stands in for
    data: tuple[str, ...]  # names of data sets it can use; the first is the default
    weights: Callable[[Values], dict[str, Weight]]
    hyperparameters: Mapping[str, Hyperparameter]
    batch_size: int
    learning_rate: float | None = None  # None: nothing is trained
    metric: str | None = None  # one of ``benchlib.metrics``, or the name of ``own_metric``
    own_metric: Metric | None = None
    metric_name: str = ""  # its name for readers, where that is not the metric's own
    thresholds: Mapping[str, float] = field(default_factory=dict)  # by data set
    gate: Gate = field(default_factory=Gate)
    exercises: Mapping[str, Exercise] = field(default_factory=dict)  # by their names for readers
    # where numbers are dropped in a forward pass, in order: the place's name for readers, and the probability
    dropouts: Callable[[Values], Sequence[tuple[str, float]]] = lambda values: ()
    # steps after which the learning rate stays as it is
    schedule: Callable[[Values], int] = lambda values: 0
    settled: Mapping[str, str] = field(default_factory=dict)  # point: how, a short sentence without its full stop
    unit: str = "samples"  # their name for readers
    data_values: Mapping[str, Values] = field(
        default_factory=dict
    )  # hyperparameters that a data set settles, by its name
    data_defaults: Mapping[str, Values] = field(default_factory=dict)  # and those that it only suggests
    pads_before: bool = False  # sequences: is a short one filled up before its first token, or after its last?
    fields: tuple[str, ...] = ("inputs", "labels")  # the arrays of a sample in the order of a batch, labels last
    targets: int = 1  # how many of the fields, the last ones, are for the loss only: the model does not see them
    evaluates: bool = False  # does a step see the model in evaluation behaviour, and not in training's?
    inputs: Callable[[Values, int, np.random.Generator], tuple[np.ndarray, ...]] | None = None
    work: Callable[[Values], Work] | None = None  # of a sample's forward pass
    optimizer_state: int = 0  # numbers that the optimizer keeps for each weight
    # numbers of a sample that a step has in memory at once, at least; None: as many as ``work`` says, see ``held``
    holds: Callable[[Values], float] | None = None
    fits: Callable[[Values], None] | None = (
        None  # BenchlibError if hyperparameters that are good alone do not go together
    )

    def values(self, given: Values, where: str = "hyperparameters") -> dict[str, Any]:
        """All hyperparameters: those given, checked, and the defaults of the rest."""
        for name in given:
            if name not in self.hyperparameters:
                raise BenchlibError(f"{where}: {no_such(f'hyperparameter of {self.name}', name, self.hyperparameters)}")
        values = {
            name: declared.check(f"{where}.{name}", given[name]) if name in given else declared.default
            for name, declared in self.hyperparameters.items()
        }
        if self.fits:
            self.fits(values)
        return values

    def step_work(self, values: Values) -> Work | None:
        """The work of a step for one sample; None where it is not declared."""
        if self.work is None:
            return None
        forward_only = values.get("passes") == "forward"
        return self.work(values) if forward_only else self.work(values).times(BACKWARD)

    def declared_multiply_adds(self, values: Values) -> tuple[float, float] | None:
        """The least and the most multiply-adds of a step for a sample that a framework may count; None where its work
        is not declared. Least: no layer needs the gradient of its inputs. Most: padding counts, too.
        """
        forward_only = values.get("passes") == "forward"
        work = self.step_work(values)
        if work is None:
            return None
        _padded.append(True)
        try:
            most = self.step_work(values)
        finally:
            _padded.clear()
        return (1.0 if forward_only else 2 / BACKWARD) * work.multiply_adds, most.multiply_adds if most else 0.0

    def held(self, values: Values) -> float:
        """The least numbers of a sample that a step has in memory at once. Those of an operator are its inputs and
        outputs. Those of a model are kept for the backward pass, such as each layer's inputs. 0 where not declared.
        """
        if self.holds is not None:
            return float(self.holds(values))
        if self.work is None:
            return 0.0
        numbers = self.work(values).least_bytes / 4
        return numbers / 2 if self.kind == "training" else numbers  # a layer's output is the input of the next

    def frameworks(self) -> list[str]:
        """The names of the frameworks' files in its folder, and of their helpers: see ``frameworks.of_workload``."""
        return list(_frameworks(tuple((path, _changed(path)) for path in folders(self.name))))


def names() -> list[str]:
    """The workloads there are; a folder that is called ``_NAME`` only helps others."""
    return list(_names(tuple((path, _changed(path)) for path in __path__)))


def folders(name: str) -> list[Path]:
    """The folders of workload ``name``: its own, and those of plug-ins that add to it."""
    return [path for path in (Path(parent) / name for parent in __path__) if path.is_dir()]


def file(name: str, stem: str) -> Path:
    """The file ``STEM.py`` of workload ``name``."""
    return next(path for path in (folder / f"{stem}.py" for folder in folders(name)) if path.exists())


def count_lines(name: str, framework: str) -> int:
    """Lines of a framework's file of a workload, without comments and docstrings, each statement on its own line."""
    tree = ast.parse(file(name, framework).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return sum(map(bool, ast.unparse(tree).splitlines()))


def load(name: str) -> Workload:
    """The workload called ``name``; a BenchlibError names the nearest one if there is none."""
    module = sys.modules.get(f"benchlib.workloads.{name}.workload")
    if module is not None:  # a report asks for every measurement's
        return module.WORKLOAD
    if name not in names():
        raise BenchlibError(no_such("workload", name, names()))
    return importlib.import_module(f"benchlib.workloads.{name}.workload").WORKLOAD


def _changed(path: Path | str) -> int:
    """The time of the last addition to a folder: its cached contents hold until the next."""
    return os.stat(path).st_mtime_ns


@functools.lru_cache(maxsize=None)
def _names(folders: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    """Every condition asks for them."""
    return tuple(sorted({file.parent.name for path, _ in folders for file in Path(path).glob("[!_.]*/workload.py")}))


@functools.lru_cache(maxsize=None)
def _frameworks(folders: tuple[tuple[Path, int], ...]) -> tuple[str, ...]:
    names = {path.stem for folder, _ in folders for path in folder.glob("[!.]*.py")}
    return tuple(sorted(names - {"__init__", "workload"}))
