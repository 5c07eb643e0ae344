"""The frameworks: one file each, with one class that a worker uses to build a workload and run its steps.

Only ``frameworks/X.py`` and ``workloads/*/X.py`` import framework X. This module imports none; it defines the interface
of a framework's file (:class:`Session`) and lists these files.
"""

from __future__ import annotations

import ast
import functools
import importlib
import operator
import os
import pkgutil
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, Callable, Tuple

import numpy as np

from benchlib.errors import BenchlibError, no_such
from benchlib.workloads import Values, Weight, Workload

if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object  # Python 3.7 has none

LOSS_SCALE = 2.0**16
"""The first scale of the loss in fp16, as PyTorch's ``GradScaler`` has it. The first steps may overflow with it, and
are left out then.
"""

GRADIENT_SCALE = 2.0**10
"""For single gradients in fp16, and for steps that are compared: it keeps small gradients from vanishing, and large
ones finite.
"""


Draw = Callable[[int, Tuple[int, ...], float], np.ndarray]
"""Given a dropout's place in a forward pass, from 0, the shape of its input (channels first) and its probability of
dropping: the mask, bool, True where a number is kept.
"""


class NoMasks(BenchlibError):
    """Dropout cannot be given masks here; the message says why, in words that follow "because"."""


class Session(Protocol):
    """The interface of a framework to a worker: ``frameworks/X.py`` defines ``class Session`` with these methods.

    Construction selects device, mode and precision and sets ``knobs`` (see ``benchlib.provenance.knobs``), for the
    whole process. A choice that the framework does not have is a BenchlibError. Nothing here times anything. In the
    precision ``fp64`` all of it is in double precision, and arrays that are handed out are float64.
    """

    def __init__(
        self, device: str, mode: str, precision: str, seed: int, knobs: Mapping[str, str] = MappingProxyType({})
    ) -> None: ...

    def join(self, communication: bool) -> tuple[int, int]:
        """Become one of the data-parallel processes that the framework's launcher has started; which one, and of how
        many. Comes before :meth:`build`. From then on steps and gradients are of the mean over the processes' batches;
        without ``communication`` each process trains by itself.
        """

    def agree(self, value: float) -> float:
        """The mean of the values that the processes of the group give, the same for each."""

    def build(self, workload: Workload, module: ModuleType, values: Values, learning_rate: float | None) -> None:
        """Build model, loss and optimizer (or the operator) from ``module``, the framework's file of the workload."""

    def load(self, weights: dict[str, np.ndarray], loss_scale: float = LOSS_SCALE) -> None:
        """Set the model's whole state, by the workload's names; an unknown or missing name or shape is a
        BenchlibError. Also forgets the optimizer's state, and in fp16 scales the loss by ``loss_scale`` from here on.
        Random numbers, such as dropout's, go on.
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
        """Wait until all queued work is done. A clock's reading after this includes all of it."""

    def mark(self) -> Any:
        """An event in the device's queue, after all that is queued now; None on the CPU."""

    def elapsed_s(self, start: Any, end: Any) -> float:
        """Seconds between two marks that are both over, by the device's clock."""

    def outputs(self, batch: Any, training: bool) -> tuple[np.ndarray, ...]:
        """The model's outputs, one or more, for a batch's inputs, without a step, in training or in evaluation
        behaviour (BN, dropout).
        """

    def predictions(self, batch: Any) -> np.ndarray:
        """The result of ``predict`` of the workload's file for a batch's inputs, in evaluation behaviour. Only asked
        where there is that; else predictions are the classes of the first output, by one code for all frameworks.
        """

    def gradients(self, batch: Any) -> dict[str, np.ndarray]:
        """Gradients of the loss by the workload's names of trained weights, without a step. An operator whose step
        computes gradients: those of a step, and that of its ``input``, too. In fp16 the loss is scaled for it by
        ``GRADIENT_SCALE``, whatever steps have made of theirs.
        """

    def update(self, gradients: Sequence[Mapping[str, np.ndarray]], steps: int) -> None:
        """Take so many steps of the optimizer alone, as :meth:`step` does, clipping and schedule included, in fp32. The
        given ``gradients`` (by the workload's names of trained weights) take turns in place of the loss's. They may be
        of some weights only, always the same since the last :meth:`load`; the others stay as they are. Only of a
        workload that trains.
        """

    def dropouts(self, batch: Any, training: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """Every dropout that the model's forward pass goes through, and with ``training`` the loss behind it, in order.
        Each has its name in messages, its input and its output. With ``training`` the model behaves as in a step, else
        as in evaluation. Dropout inside another operator, such as an attention's, has its own input and output, not the
        operator's. Empty where there is none. Weights and running statistics stay as they were.
        """

    def given_masks(self, draw: Draw) -> AbstractContextManager[None]:
        """Within it, every dropout of a step, of gradients and of outputs in training takes the mask that ``draw``
        gives for its place, in any mode. :class:`NoMasks` where that cannot be done. A dropout of p = 0 draws none.
        """

    def layers(self, batch: Any) -> list[tuple[str, np.ndarray]]:
        """The input and the output of each layer that has weights in a forward pass as in training, in order, as
        ``input of conv1`` and ``output of conv1`` by the workload's names, then the ``loss``. It is computed operation
        by operation in every mode. Weights and running statistics stay as they were.
        """

    def multiply_adds(self, batch: Any) -> float | None:
        """The multiply-adds of products and convolutions in one step with a batch, as the framework itself counts them.
        None: it cannot count them, or not apart from others. A framework that sees its operations one by one for that
        leaves their names in the attribute ``operations``.
        """

    def to_numpy(self, value: Any) -> np.ndarray:
        """The result of :meth:`step`, as numpy."""

    def settings(self) -> dict[str, str | int | float | bool]:
        """The settings in force that change speed: threads, device name, TF32, debugging that is on, how often steps
        were compiled ...: read back from the framework, not assumed. Usable before :meth:`build`, too.
        """

    def device_memory(self) -> dict[str, float]:
        """Device memory in MiB as the framework counts it: ``allocated``, ``peak``; empty where it counts none."""

    @staticmethod
    def versions() -> dict[str, str]:
        """The versions of the framework and of its libraries for computing (oneDNN, CUDA, cuDNN ...), by name."""


def product(numbers: Iterable[int]) -> int:
    """Of a shape's numbers: ``math.prod``, which Python 3.7 has not."""
    return functools.reduce(operator.mul, numbers, 1)


@contextmanager
def given_masks(session: Session, step: int) -> Iterator[None]:
    """Have a session's dropouts take masks that are the same in every framework, for a step's number; or
    :class:`NoMasks`.
    """

    def draw(place: int, shape: tuple[int, ...], p: float) -> np.ndarray:
        return np.random.RandomState([step, place]).random_sample(shape) >= p

    if not hasattr(session, "given_masks"):
        raise NoMasks("its Session has no method given_masks")
    with session.given_masks(draw):
        yield


def names() -> list[str]:
    """The frameworks there is a file for; one that is called ``_NAME`` only helps others."""
    return list(_names(_folders()))


@functools.lru_cache(maxsize=None)
def _names(folders: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    """Read once, until something is added: every condition asks for them."""
    modules = pkgutil.iter_modules([path for path, _ in folders])
    return tuple(sorted(module.name for module in modules if not module.name.startswith("_")))


def of_workload(workload: Workload) -> list[str]:
    """The frameworks that a workload has a file for; any other file beside these helps one of them."""
    there = names()
    return [name for name in workload.frameworks() if name in there]


def file(name: str) -> Path:
    """The file of framework ``name``."""
    return _file(name, _folders())


@functools.lru_cache(maxsize=None)
def _file(name: str, folders: tuple[tuple[str, int], ...]) -> Path:
    """Looked for once, until something is added: every choice of every condition is held against its declarations."""
    paths = (Path(folder, f"{name}.py").resolve() for folder, _ in folders)
    return next(path for path in paths if path.exists())


def _folders() -> tuple[tuple[str, int], ...]:
    """The folders of frameworks' files, and the time of the last addition to each."""
    return tuple((path, os.stat(path).st_mtime_ns) for path in __path__)


def title(name: str) -> str:
    """Framework ``name`` as its makers write it: ``TITLE`` of its file; without it, as the file is called."""
    return _read_constant(name, "TITLE", name)


def package(name: str) -> str:
    """The Python package that framework ``name`` is imported as: ``PACKAGE`` of its file. It is read as a literal,
    without importing the file, like the title and the constants below.
    """
    return _read_constant(name, "PACKAGE")


def distributions(name: str) -> tuple[str, ...]:
    """Pip's names of that package, which may come in one of several distributions; the first is the one to install.
    ``DISTRIBUTIONS``; without it, they are called as the package is.
    """
    return _read_constant(name, "DISTRIBUTIONS", (package(name),))


def devices(name: str) -> tuple[str, ...]:
    """The kinds of device that framework ``name`` has a code path for: ``DEVICES``."""
    return _read_constant(name, "DEVICES")


def needs(name: str) -> tuple[dict[str, Any], ...]:
    """The needs of it in an environment to use a device, beside the framework itself, as arguments of
    ``benchlib.provenance.needs.Need``: ``NEEDS``, by default nothing.
    """
    return _read_constant(name, "NEEDS", ())


def modes(name: str) -> tuple[str, ...]:
    """The modes that it has, first the one in which the machine's limits are measured: ``MODES``, by default eager."""
    return _read_constant(name, "MODES", ("eager",))


def precisions(name: str) -> tuple[str, ...]:
    """The precisions that it has a code path for, ``fp32`` first: ``PRECISIONS``, by default that alone. ``fp64`` is
    double precision, the others are mixed. The type before a ``-`` is the one that the framework's own rules choose for
    some operations. The part after it is the name of these rules.
    """
    return _read_constant(name, "PRECISIONS", ("fp32",))


def launcher(name: str) -> tuple[str, ...]:
    """The launcher of its data-parallel groups, after its interpreter and before the script: ``LAUNCHER``.
    ``{world_size}``, ``{port}`` and ``{scratch}`` in it are to be filled in. Empty, as by default: it has no path to
    data-parallel training.
    """
    return _read_constant(name, "LAUNCHER", ())


def knobs(name: str) -> tuple[dict[str, Any], ...]:
    """The knobs for it alone, as arguments of ``benchlib.provenance.knobs.Knob``: ``KNOBS``, by default none."""
    return _read_constant(name, "KNOBS", ())


def variables(name: str) -> tuple[str, ...]:
    """The prefixes of the environment variables that it heeds: ``VARIABLES``, by default none."""
    return _read_constant(name, "VARIABLES", ())


def changing(name: str) -> tuple[str, ...]:
    """The settings that it changes by itself, such as the threads of pools that begin with the first step:
    ``CHANGING``, by default none. A change of another one is the model's file's.
    """
    return _read_constant(name, "CHANGING", ())


def compiles(name: str, mode: str, device: str) -> bool:
    """Do its workers make kernels with the C++ compiler that they find? ``COMPILES``: pairs of a mode and a device."""
    return (mode, device) in _read_constant(name, "COMPILES", ())


def rounds(name: str) -> float:
    """The relative difference that it leaves in double precision, where it keeps some numbers in fp32 all the same,
    such as an optimizer's: ``ROUNDS``, by default none.
    """
    return _read_constant(name, "ROUNDS", 0.0)


def cuts(name: str) -> dict[str, bool]:
    """The gate's arrays, such as ``far/losses``, that its own operators cut: ``CUTS``, by default none. They are not
    compared (False), and the certificate names them.
    """
    return dict.fromkeys(_read_constant(name, "CUTS", ()), False)


def rank(name: str) -> tuple[bool, str]:
    """The rank of a framework; a workload's lowest is the reference: the one whose file says ``REFERENCE = True``, else
    the first by name.
    """
    return not _read_constant(name, "REFERENCE", False), name


def every_device() -> tuple[str, ...]:
    """Those of all frameworks, each once, ``cpu`` first."""
    return _distinct(["cpu"], *map(devices, names()))


def every_mode() -> tuple[str, ...]:
    """Those of all frameworks, each once."""
    return _distinct(*map(modes, names()))


def every_precision() -> tuple[str, ...]:
    """Those of all frameworks, each once."""
    return _distinct(*map(precisions, names()))


def every_variable() -> tuple[str, ...]:
    """Those of all frameworks, each once."""
    return _distinct(*map(variables, names()))


def _distinct(*several: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for some in several for one in some))


def _read_constant(name: str, constant: str, default: Any = None) -> Any:
    path = file(name)
    return _literal(path, path.stat().st_mtime_ns, constant, default)


@functools.lru_cache(maxsize=None)
def _literal(path: Path, changed: int, constant: str, default: Any) -> Any:
    """Read once: every condition asks for it. Without a default it has to be there."""
    value = _assignments(path, changed).get(constant)
    if value is None and default is None:
        raise BenchlibError(f"{path}: it must define {constant} as a literal")
    try:
        return default if value is None else ast.literal_eval(value)
    except ValueError:
        raise BenchlibError(
            f"{path}: line {value.lineno}: {constant} must be a literal: it is read, and not run"
        ) from None


@functools.lru_cache(maxsize=None)
def _assignments(path: Path, changed: int) -> dict[str, ast.expr]:
    """The values assigned to names at the top of a file."""
    try:
        body = ast.parse(path.read_bytes()).body
    except SyntaxError as error:
        raise BenchlibError(f"{path}: line {error.lineno}: this is no Python ({error.msg}); mend it") from None
    assignments = [node for node in body if isinstance(node, ast.Assign)]
    return {target.id: node.value for node in assignments for target in node.targets if isinstance(target, ast.Name)}


def session_class(name: str) -> type[Session]:
    """Import framework ``name`` (a worker does this, the parent never) and return its ``Session``."""
    if name not in names():
        raise BenchlibError(no_such("framework", name, names()))
    return importlib.import_module(f"benchlib.frameworks.{name}").Session


def build(
    session: Session, workload: Workload, module: ModuleType, values: Values, learning_rate: float | None
) -> None:
    """Have a session build a workload. A ``module`` whose model has other weights says how: see ``_matched``."""
    if hasattr(module, "matched"):
        module.matched(session, workload, module, values, learning_rate)
    else:
        session.build(workload, module, values, learning_rate)


def check_weights(where: str, expected: Mapping[str, Sequence[int]], given: Mapping[str, Sequence[int]]) -> None:
    """Raise a BenchlibError naming the first name or shape in which ``given`` differs from ``expected``."""
    for name in given:
        if name not in expected:
            raise BenchlibError(f"{where}: {no_such('weight', name, expected)}")
    for name, shape in expected.items():
        if name not in given:
            raise BenchlibError(f"{where}: weight {name!r} of shape {tuple(shape)} is missing")
        if tuple(given[name]) != tuple(shape):
            raise BenchlibError(f"{where}: weight {name!r} has shape {tuple(given[name])}, expected {tuple(shape)}")


def check_trained(where: str, declared: Mapping[str, Weight], trained: Container[str]) -> None:
    """Raise a BenchlibError naming the first weight that the model trains and the workload does not, or vice versa."""
    for name, weight in declared.items():
        if weight.trained != (name in trained):
            does = "does not train" if weight.trained else "trains"
            raise BenchlibError(
                f"{where}: weight {name!r}: the model {does} it, but the workload says trained={weight.trained}; "
                f"write Weight(..., trained={not weight.trained}) in workload.py"
            )
