"""CNTK 2.7, its last release (April 2019): builds a workload and runs its steps, on the CPU.

A step is one call of a compiled network, forward, backward and update together: there is no eager mode. The model of a
workload's file is applied to input variables, and may be applied again, with the same weights, to look into it.
"""

from __future__ import annotations

import ctypes
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np

from benchlib.errors import BenchlibError, no_such
from benchlib.frameworks import LOSS_SCALE, Draw, check_trained, check_weights, product
from benchlib.workloads import Values, Workload

TITLE = "CNTK"
PACKAGE = "cntk"
DISTRIBUTIONS = ("cntk", "cntk-gpu")
DEVICES = ("cpu",)
MODES = ("graph",)
PRECISIONS = ("fp32", "fp64")
VARIABLES = ("CNTK_", "KMP_", "MKL_", "OMPI_")

_MPI = {"libmpi.so.12": "libmpi.so.40", "libmpi_cxx.so.1": "libmpi_cxx.so.40"}
"""The libraries of Open MPI 1.10 that CNTK is linked to, and what they are called since Open MPI 3."""


def _load_libraries() -> None:
    """Load CNTK's libraries so that it finds them when it is imported: from a folder with links to them, and to Open
    MPI's of today by the names of 2015, which no system has any more.
    """
    own = Path(find_spec("cntk").origin).with_name("libs")
    with tempfile.TemporaryDirectory() as folder:
        for path in own.iterdir():
            Path(folder, path.name).symlink_to(path)
        for old, new in _MPI.items():
            try:
                ctypes.CDLL(new)
            except OSError as error:
                raise BenchlibError(f"cntk needs Open MPI, Debian's package libopenmpi3: {error}") from None
            mapped = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
            Path(folder, old).symlink_to(next(line.split()[-1] for line in mapped if new in line))
        ctypes.CDLL(f"{folder}/libCntk.Core-2.7.so", ctypes.RTLD_GLOBAL)


_load_libraries()

import cntk as C  # noqa: E402
from cntk.logging.graph import depth_first_search  # noqa: E402

_NAMES = {  # CNTK's names of weights to the workload's
    "W": "weight",
    "b": "bias",
    "scale": "weight",
    "bias": "bias",
    "aggregate_mean": "running_mean",
    "aggregate_variance": "running_var",
}


class Session:
    """One workload in CNTK, in this process: see ``benchlib.frameworks.Session`` for what each method promises."""

    def __init__(
        self, device: str, mode: str, precision: str, seed: int, knobs: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        for what, chosen, known in (("precision", precision, PRECISIONS), ("mode", mode, MODES)):
            if chosen not in known:
                raise BenchlibError(no_such(f"{what} of cntk", chosen, known))
        if device not in DEVICES:
            raise BenchlibError(
                f"device {device!r}: cntk has a path to cpu only; install a framework that has one to it, or choose "
                "device 'cpu'"
            )
        for name, value in knobs.items():
            raise BenchlibError(no_such("knob of cntk", f"{name}={value}", []))
        C.device.try_set_default_device(C.device.cpu())
        if C.cntk_py.get_max_num_cputhreads() == 1:  # or its MKL divides by zero in a convolution's way back
            C.cntk_py.set_max_num_cputhreads(1)
        self._float = np.dtype("float64" if precision == "fp64" else "float32")
        C.cntk_py.set_fixed_random_seed(seed)  # for dropout only: weights and batches come from files

    def build(self, workload: Workload, module: ModuleType, values: Values, learning_rate: float | None) -> None:
        """Build model, loss and optimizer (or the operator) from ``module``, the workload's file for CNTK."""
        self._shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
        self._trains = workload.kind == "training"
        self._name, self._module, self._values, self._rate = workload.name, module, values, learning_rate
        self._targets = workload.targets
        with C.default_options(dtype=self._float.type):
            self._model, self._inputs = module.build(values), module.inputs(values)
        self._functions: dict[Any, Any] = {}
        self._draw: Draw | None = None
        self._learners: dict[tuple[str, ...], Any] = {}
        self._trainers: dict[bool, Any] = {}
        self._function("loss" if self._trains else "outputs")  # infers the shapes of weights
        parts = [(path, part) for _, _, path, part in _slots(self._model)]
        self._state = {name: array for path, part in parts for name, array in _arrays(path, part)}
        dense = [path for path, one in parts if isinstance(one, C.Function) and one.root_function.op_name == "Dense"]
        self._turned = {f"{path}.weight" for path in dense}  # (inputs ..., outputs)
        shapes = {name: self._outside(name, array.value).shape for name, array in self._state.items()}
        check_weights(f"{workload.name} in cntk", self._shapes, shapes)
        self._trained = {name: self._state[name] for name in self._shapes if self._state[name].is_parameter}
        check_trained(f"{workload.name} in cntk", workload.weights(values), self._trained)

    def load(self, weights: dict[str, np.ndarray], loss_scale: float = LOSS_SCALE) -> None:
        """Set the model's whole state, forget the optimizer's; a wrong name or shape is a BenchlibError."""
        check_weights("weights for cntk", self._shapes, {name: array.shape for name, array in weights.items()})
        for name, array in weights.items():
            self._state[name].value = self._inside(name, array)
        for learner in self._learners.values():  # no new trainer: its dropouts would begin anew, and drop the same
            learner.reset_smoothed_gradients()

    def weights(self) -> dict[str, np.ndarray]:
        """The model's state now, as copies."""
        return {name: self._outside(name, self._state[name].value) for name in self._shapes}

    def put(self, arrays: tuple[np.ndarray, ...]) -> tuple[dict[Any, Any], tuple[np.ndarray, ...]]:
        """A batch: CNTK's values by input variable, and the arrays that they are of; or the operator's arrays."""
        given = {variable: self._value(variable, array) for variable, array in zip(self._inputs, arrays)}
        return given, tuple(map(np.array, arrays))

    def step(self, batch: tuple[Any, ...]) -> Any:
        """Take one step; return its loss (an operator: its output)."""
        if not self._trains:
            function, _ = self._function("outputs")
            return function.eval(batch[0])
        trainer = self._trainer()
        trainer.train_minibatch(self._given("loss", batch))
        return trainer.previous_minibatch_loss_average

    def synchronize(self) -> None:
        """A step has done all its work when it returns."""

    def mark(self) -> None:
        """There is no event on the CPU."""

    def outputs(self, batch: tuple[Any, ...], training: bool) -> tuple[np.ndarray, ...]:
        """The model's outputs for a batch's inputs."""
        training = training and self._trains  # an operator's step is its output in evaluation, and is measured
        draw, self._draw = self._draw, self._draw if training else None
        try:
            function, _ = self._function("outputs")
            return tuple(self._forward(function, self._given("outputs", batch), training))
        finally:
            self._draw = draw

    def gradients(self, batch: tuple[Any, ...]) -> dict[str, np.ndarray]:
        """Gradients of the loss by name (an operator: also ``input``)."""
        what = "loss" if self._trains else "fixed"
        function, _ = self._function(what)
        variables = {**({} if self._trains else {"input": self._inputs[0]}), **self._trained}
        state, outputs = function.forward(self._given(what, batch), function.outputs, {function.output})
        root = np.ones_like(outputs[function.output]) if self._trains else self._numpy(batch[1][1])
        found = function.backward(state, {function.output: root}, set(variables.values()))
        count = len(batch[1][0]) if self._trains else 1  # the trainer makes a mean of the sum over a batch, too
        return {name: self._outside(name, np.asarray(found[one])) / count for name, one in variables.items()}

    def update(self, gradients: Sequence[Mapping[str, np.ndarray]], steps: int) -> None:
        """Steps of the optimizer with gradients that are given, in turn."""
        learner = self._learner(tuple(gradients[0]))  # one wants the gradients of all its weights
        for number in range(steps):
            given = gradients[number % len(gradients)]
            views = {name: C.NDArrayView.from_dense(self._inside(name, array)) for name, array in given.items()}
            learner.update({self._trained[name]: view for name, view in views.items()}, 1)

    def dropouts(self, batch: tuple[Any, ...], training: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """The input and the output of each dropout of a forward pass and, in training, of the loss."""
        both, given = self._function("dropouts")[0], self._given("loss" if self._trains else "outputs", batch)
        if both is None:
            return []
        seen = self._forward(both, given, training)
        return [("dropout", before, after) for before, after in zip(seen[::2], seen[1::2])]

    @contextmanager
    def given_masks(self, draw: Draw) -> Iterator[None]:
        """Every dropout of a step, of gradients and of outputs is a product with a mask of ``draw``."""
        self._draw = draw
        try:
            yield
        finally:
            self._draw = None

    def layers(self, batch: tuple[Any, ...]) -> list[tuple[str, np.ndarray]]:
        """The input and the output of each layer that has weights of its own, and the loss."""
        function, names = self._function("layers")
        arrays = self._forward(function, self._given("loss" if self._trains else "outputs", batch), self._trains)
        found = list(zip(names, arrays))
        return [*found, ("loss", arrays[-1].mean())] if self._trains else found

    def multiply_adds(self, batch: tuple[Any, ...]) -> float:
        """Those of the products and convolutions in the network of a step, ahead and back, from their shapes: CNTK has
        no counter.
        """
        function, _ = self._function("loss" if self._trains else "outputs")
        blocks = depth_first_search(function, lambda node: getattr(node, "is_block", False), depth=-1)
        behind = {place.uid: given for block in blocks for place, given in block.block_arguments_mapping}
        found = depth_first_search(function, lambda node: getattr(node, "op_name", "") in _PRODUCTS, depth=-1)
        size, length = np.shape(batch[1][0])[:2]
        total = 0
        for node in {node.uid: node for node in found}.values():
            inputs = list(node.inputs)
            while any(one.uid in behind for one in inputs):
                inputs = [behind.get(one.uid, one) for one in inputs]
            if not node.is_block and any(one.is_parameter for one in inputs):  # and is not within the loss
                times = size * length if len(node.output.dynamic_axes) > 1 else size
                back = sum(not one.is_input for one in inputs) if self._trains else 0
                total += _PRODUCTS[node.op_name](node) * times * (1 + back)
        return float(total)

    def to_numpy(self, value: Any) -> np.ndarray:
        """The result of :meth:`step`, as a copy."""
        return self._numpy(value)

    def settings(self) -> dict[str, str | int | float | bool]:
        """Device, threads and debugging: read back from CNTK and from the OpenMP that it brings."""
        openmp = ctypes.CDLL(str(Path(C.__file__).with_name("libs") / "libiomp5.so"))
        return {
            "device": str(C.use_default_device()),
            "cpu_threads": C.cntk_py.get_max_num_cputhreads(),
            "openmp_threads": openmp.omp_get_max_threads(),
            "openmp_blocktime": openmp.kmp_get_blocktime(),
            "trace_level": C.cntk_py.get_trace_level(),
        }

    def device_memory(self) -> dict[str, float]:
        """Empty: there is no path to a device that has its own."""
        return {}

    @staticmethod
    def versions() -> dict[str, str]:
        """CNTK's version, and that of the MKL that it brings."""
        return {"cntk": C.__version__}

    def _function(self, what: str) -> tuple[Any, list[Any]]:
        """The network that computes ``what``, made once, and what there is to know of it: variables of masks with their
        probabilities, or names of outputs.
        """
        key = what, self._draw is not None
        if key not in self._functions:
            with C.default_options(dtype=self._float.type):
                self._functions[key] = getattr(self, f"_make_{what}")()
        return self._functions[key]

    def _make_loss(self) -> tuple[Any, list[Any]]:
        with self._masks() as masks:
            return self._module.loss(self._model, self._inputs), masks

    def _make_outputs(self) -> tuple[Any, list[Any]]:
        with self._masks() as masks:
            return self._model(*self._inputs[: -self._targets] if self._trains else self._inputs), masks

    def _make_fixed(self) -> tuple[Any, list[Any]]:
        """The outputs with fixed running statistics, where a way back would else be that of the batch's."""
        with _replaced(self._model, lambda path, part: _with_fixed_statistics(part) or part):
            return self._make_outputs()

    def _make_dropouts(self) -> tuple[Any, list[Any]]:
        seen: list[Any] = []
        drop = C.dropout

        def see(x: Any, rate: float) -> Any:
            left = drop(x, rate)
            seen.extend((C.alias(x), C.alias(left)))
            return left

        with patch.object(C, "dropout", see):
            self._make_loss() if self._trains else self._make_outputs()
        return C.combine(seen) if seen else None, []

    def _make_layers(self) -> tuple[Any, list[Any]]:
        owners = {name.rpartition(".")[0] for name in self._shapes}
        seen: list[tuple[str, Any]] = []

        def note(path: str, part: Callable) -> Callable:
            def call(x: Any) -> Any:
                left = part(x)
                seen.extend(((f"input of {path}", x), (f"output of {path}", left)))
                return left

            return call

        with _replaced(self._model, lambda path, part: note(path or self._name, part) if path in owners else part):
            end = self._make_loss()[0] if self._trains else self._make_outputs()[0]
        functions = [*(one for _, one in seen), *([end] if self._trains else [])]
        return C.combine([C.alias(one) for one in functions]), [name for name, _ in seen]

    @contextmanager
    def _masks(self) -> Iterator[list[Any]]:
        """Within it, dropout is a product with a mask, if masks are given; yields the variables, and their p."""
        masks: list[Any] = []

        def masked(x: Any, rate: float) -> Any:
            if not rate:
                return x
            mask = C.input_variable(x.shape, dynamic_axes=x.dynamic_axes)
            masks.append((mask, rate))
            return x * mask

        with patch.object(C, "dropout", C.dropout if self._draw is None else masked):
            yield masks

    def _trainer(self) -> Any:
        """The one of the network as it is, or as it is with masks; both have one learner."""
        masked = self._draw is not None
        if masked not in self._trainers:
            loss, _ = self._function("loss")
            self._trainers[masked] = C.Trainer(None, (loss, None), [self._learner(tuple(self._trained))])
        return self._trainers[masked]

    def _learner(self, names: tuple[str, ...]) -> Any:
        if names not in self._learners:
            parameters = [self._trained[name] for name in names]
            self._learners[names] = self._module.optimizer(parameters, self._values, self._rate)
        return self._learners[names]

    def _given(self, what: str, batch: tuple[Any, ...]) -> dict[Any, Any]:
        """The values of a network's input variables."""
        function, masks = self._function(what)
        given = {variable: value for variable, value in batch[0].items() if variable in function.arguments}
        for place, (variable, p) in enumerate(masks):
            shape = (len(batch[1][0]), *variable.shape)
            given[variable] = self._value(variable, self._draw(place, shape, p) / (1 - p))
        return given

    def _value(self, variable: Any, array: np.ndarray) -> Any:
        """An array as CNTK's value for a variable: labels as one of so many, tokens as numbers of their own."""
        if array.dtype.kind == "i":
            array = np.eye(variable.shape[0])[array] if array.ndim == 1 else array[..., None]
        return C.Value.create(variable, self._numpy(array), None, C.device.cpu())

    def _forward(self, function: Any, given: Mapping[Any, Any], training: bool) -> list[np.ndarray]:
        """All outputs of a network. It behaves as in training where something is kept for a way back."""
        found = function.forward(given, function.outputs, {function.outputs[-1]} if training else None)
        return [self._numpy(found[1][one]) for one in function.outputs]

    def _numpy(self, array: Any) -> np.ndarray:
        return np.array(array, self._float, order="C")

    def _inside(self, name: str, array: np.ndarray) -> np.ndarray:
        """A weight as CNTK has it: a dense layer's turned, a convolution's bias by channel, row and column."""
        return self._numpy(array.T if name in self._turned else array).reshape(self._state[name].shape)

    def _outside(self, name: str, array: np.ndarray) -> np.ndarray:
        if name in self._turned:
            return self._numpy(array.reshape(-1, array.shape[-1]).T)
        return self._numpy(array).reshape(self._shapes.get(name, array.shape))


def _with_fixed_statistics(part: Any) -> Callable | None:
    """Batch normalisation written out; None of another part."""
    if getattr(getattr(part, "root_function", None), "op_name", "") != "BatchNormalization":
        return None
    scale, bias, mean, variance = (
        C.reshape(getattr(part, name), (-1, 1, 1)) for name in ("scale", "bias", "aggregate_mean", "aggregate_variance")
    )
    (inner,) = depth_first_search(part, lambda node: "epsilon" in getattr(node, "attributes", ()), depth=-1)
    return lambda x: (x - mean) / C.sqrt(variance + inner.attributes["epsilon"]) * scale + bias


_PRODUCTS: dict[str, Callable[[Any], int]] = {
    **dict.fromkeys(("Times", "TransposeTimes"), lambda node: max(product(one.shape) for one in node.inputs)),
    "Convolution": lambda node: product(node.output.shape) * product(node.inputs[0].shape[1:]),
}
"""The multiply-adds of a sample, or of a step of its sequence."""


def _slots(model: Any, path: str = "") -> Iterator[tuple[Any, Any, str, Any]]:
    """The parts of a model, and theirs: each with what holds it, its name there, and its path from the model."""
    for name, part in list(enumerate(model) if isinstance(model, list) else vars(model).items()):
        below = f"{path}.{name}" if path else str(name)
        if isinstance(part, (C.Function, C.Parameter, list)) or hasattr(part, "__dict__"):
            yield model, name, below, part
        if isinstance(part, list) or (hasattr(part, "__dict__") and not isinstance(part, (C.Function, C.Parameter))):
            yield from _slots(part, below)


@contextmanager
def _replaced(model: Any, replace: Callable[[str, Any], Any]) -> Iterator[None]:
    """Within it, each part is what ``replace`` makes of it, given its path."""

    def put(holder: Any, name: Any, part: Any) -> None:
        holder.__setitem__(name, part) if isinstance(holder, list) else setattr(holder, name, part)

    slots = list(_slots(model))
    for holder, name, path, part in slots:
        put(holder, name, replace(path, part))
    try:
        yield
    finally:
        for holder, name, _, part in slots:
            put(holder, name, part)


def _arrays(path: str, part: Any) -> Iterator[tuple[str, Any]]:
    """The weights of a layer, or of a model's own, by the workload's names."""
    if isinstance(part, C.Function):
        for array in (*part.parameters, *part.constants):
            if array.name in _NAMES:
                yield f"{path}.{_NAMES[array.name]}", array
    elif isinstance(part, C.Parameter):
        yield path, part
