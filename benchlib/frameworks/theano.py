"""Theano 1.0.5, its last release: builds a workload and runs its steps, as compiled functions, on the CPU.

A step is one ``theano.function`` of a batch with the loss as its result and the optimizer's changes as its updates.
Functions are compiled with the first batch that asks for them. There is no path to a GPU: libgpuarray is no package.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType, ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import theano
from theano import tensor as T
from theano.compile import MonitorMode
from theano.gof.cmodule import gcc_version_str
from theano.sandbox.rng_mrg import MRG_RandomStreams
from theano.tensor import TensorVariable

from benchlib.errors import BenchlibError, no_such
from benchlib.frameworks import LOSS_SCALE, Draw, check_trained, check_weights, product
from benchlib.workloads import Values, Workload, _theano

TITLE = "Theano"
PACKAGE = "theano"
DISTRIBUTIONS = ("Theano",)
DEVICES = ("cpu",)
MODES = ("graph",)
COMPILES = (("graph", "cpu"),)
PRECISIONS = ("fp32", "fp64")
VARIABLES = ("THEANO", "OPENBLAS_", "GOTO_", "NPY_")
KNOBS = (
    {
        "name": "THEANO_FLAGS",
        "value": "base_compiledir={scratch}",
        "when": "always",
        "devices": ("cpu",),
        "reason": "every process compiles again, so that first steps can be compared: a cache would favour later ones",
        "source": "Theano documentation, 'config.base_compiledir'",
    },
    {
        "name": "openmp",
        "value": "on",
        "devices": ("cpu",),
        "reason": (
            "images of a batch are convolved by several threads, one product each, and pooling and large elementwise "
            "operations have several, too; as installed only BLAS has"
        ),
        "source": "Theano documentation, 'Multi cores support in Theano'",
        "by_session": True,
    },
    {
        "name": "keep_memory",
        "value": "on",
        "devices": ("cpu",),
        "reason": "arrays between operations are kept for the next step, and not made anew (allow_gc=False)",
        "source": "Theano documentation, 'config.allow_gc' and 'Frequently Asked Questions'",
        "by_session": True,
    },
)

_FLAGS = {"openmp": ("openmp", True), "keep_memory": ("allow_gc", False)}  # Theano's, by the names of knobs
_CONFIGURED = ("floatX", "mode", "optimizer", "linker", "openmp", "openmp_elemwise_minsize", "allow_gc", "cxx")
_RECURSION = 20_000
"""Calls within each other: a gradient of a deep model needs more than Python's 1,000."""


class Session:
    """One workload in Theano, in this process: see ``benchlib.frameworks.Session`` for what each method promises."""

    def __init__(
        self, device: str, mode: str, precision: str, seed: int, knobs: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        for what, chosen, known in (("precision", precision, PRECISIONS), ("mode", mode, MODES)):
            if chosen not in known:
                raise BenchlibError(no_such(f"{what} of theano", chosen, known))
        if device not in DEVICES:
            raise BenchlibError(
                f"device {device!r}: theano has a path to cpu only; install a framework that has one to it, or choose "
                "device 'cpu'"
            )
        for name, value in knobs.items():
            if name not in _FLAGS or value != "on":
                raise BenchlibError(no_such("knob of theano", f"{name}={value}", [f"{one}=on" for one in _FLAGS]))
        for name, (flag, value) in _FLAGS.items():
            setattr(theano.config, flag, value if name in knobs else not value)
        theano.config.floatX = "float64" if precision == "fp64" else "float32"
        _theano.streams = MRG_RandomStreams(1 + seed)  # for dropout only: weights and batches come from files
        sys.setrecursionlimit(_RECURSION)
        self._compilations = 0

    def build(self, workload: Workload, module: ModuleType, values: Values, learning_rate: float | None) -> None:
        """Build model and optimizer (or the operator) from ``module``, the workload's file for Theano."""
        self._shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
        self._trains = workload.kind == "training"
        self._name, self._module, self._values = workload.name, module, values
        self._targets, self._training = workload.targets, not workload.evaluates
        self._model = module.build(values)
        self._weights = _theano.weights(self._model)
        shapes = {name: one.get_value(borrow=True).shape for name, one in self._weights.items()}
        check_weights(f"{workload.name} in theano", self._shapes, shapes)
        self._trained = _theano.trained(self._model)
        check_trained(f"{workload.name} in theano", workload.weights(values), self._trained)
        self._optimizer = module.optimizer(self._model, values, learning_rate) if self._trains else None
        self._functions: dict[str, Any] = {}
        self._masked: dict[str, Any] = {}

    def load(self, weights: dict[str, np.ndarray], loss_scale: float = LOSS_SCALE) -> None:
        """Set the model's whole state, forget the optimizer's; a wrong name or shape is a BenchlibError."""
        check_weights("weights for theano", self._shapes, {name: array.shape for name, array in weights.items()})
        for name, array in weights.items():
            self._weights[name].set_value(_numpy(array))
        for one in self._optimizer.state if self._trains else ():
            one.set_value(np.zeros_like(one.get_value(borrow=True)))

    def weights(self) -> dict[str, np.ndarray]:
        """The model's state now, as copies."""
        return {name: self._weights[name].get_value() for name in self._shapes}

    def put(self, arrays: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """A batch: the sample's arrays, whole numbers as int32; or (input, gradient of the output)."""
        return tuple(_numpy(array) if array.dtype.kind == "f" else np.array(array) for array in arrays)

    def step(self, batch: tuple[np.ndarray, ...]) -> np.ndarray:
        """Take one step; return its loss (an operator: its output)."""
        return self._call("step", batch)[0]

    def synchronize(self) -> None:
        """A step has done all its work when it returns."""

    def mark(self) -> None:
        """There is no event on the CPU."""

    def outputs(self, batch: tuple[np.ndarray, ...], training: bool) -> tuple[np.ndarray, ...]:
        """The model's outputs for a batch's inputs."""
        if not self._trains and training:
            return (np.array(self.step(batch)),)  # an operator's step is its output, and is measured
        return tuple(self._call("training" if training else "evaluation", batch))

    def predictions(self, batch: tuple[np.ndarray, ...]) -> np.ndarray:
        """The result of the file's ``predict`` for a batch's inputs, in evaluation behaviour."""
        return self._call("predictions", batch)[0]

    def gradients(self, batch: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
        """Gradients of the loss by name (an operator: also ``input``)."""
        found = self._call("gradients", batch)
        return dict(zip([*self._trained] if self._trains else ["input", *self._trained], found))

    def update(self, gradients: Sequence[Mapping[str, np.ndarray]], steps: int) -> None:
        """Steps of the optimizer with gradients that are given, in turn."""
        names = [*gradients[0]]
        key = f"update {names}"
        if key not in self._functions:
            given = {self._trained[name]: self._trained[name].type() for name in names}
            updates = [*self._optimizer.updates(given)]
            self._functions[key] = theano.function([*given.values()], [], updates=updates)
        for number in range(steps):
            one = gradients[number % len(gradients)]
            self._functions[key](*(_numpy(one[name]) for name in names))

    def dropouts(self, batch: tuple[np.ndarray, ...], training: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """The input and the output of each dropout of a forward pass and, in training, of the loss."""
        found = self._call("dropouts" if training else "dropouts of evaluation", batch)
        return [("dropout", *found[place : place + 2]) for place in range(0, len(found), 2)]

    @contextmanager
    def given_masks(self, draw: Draw) -> Iterator[None]:
        """Every dropout of a step, of gradients and of outputs takes its mask from ``draw``: an input of a function of
        its own.
        """
        usual = self._call

        def call(name: str, batch: tuple[np.ndarray, ...]) -> list[np.ndarray]:
            if name not in ("step", "gradients", "training"):
                return usual(name, batch)
            shapes = usual("shapes", batch)
            if name not in self._masked:
                drawn: list[TensorVariable] = []

                def mask(x: TensorVariable, p: float) -> TensorVariable:
                    drawn.append(x.type())
                    return drawn[-1]

                with patch.object(_theano, "mask", mask):
                    self._masked[name] = self._compile(name, batch, drawn)
            masks = [_numpy(draw(place, (*map(int, shape[1:]),), shape[0])) for place, shape in enumerate(shapes)]
            return self._masked[name](*batch, *masks)

        with patch.object(self, "_call", call):
            yield

    def layers(self, batch: tuple[np.ndarray, ...]) -> list[tuple[str, np.ndarray]]:
        """The input and the output of each layer that has weights of its own, and the loss."""
        arrays = self._call("layers", batch)
        names = [*self._layer_names, *(["loss"] if self._trains else [])]
        return list(zip(names, arrays))

    def multiply_adds(self, batch: tuple[np.ndarray, ...]) -> float:
        """Those of the products and convolutions of a step, from the shapes that its operations have been given. Their
        names are left in ``operations``.
        """
        self.operations: list[str] = []
        counted = [0]

        def count(number: int, node: Any, computed: Any) -> None:
            name = type(node.op).__name__
            self.operations.append(name)
            if name in _PRODUCTS:
                arrays = [one[0].shape for one in (*computed.inputs, *computed.outputs)]
                counted[0] += _PRODUCTS[name](*arrays)

        mode = MonitorMode(post_func=count)
        state = [*self._weights.values(), *(self._optimizer.state if self._trains else ())]
        before = [one.get_value() for one in state]
        with patch.object(theano.compile.mode, "get_mode", lambda name: mode):  # of the functions in loops, too
            self._compile("step", batch)(*batch)
        for one, array in zip(state, before):
            one.set_value(array)
        return float(counted[0])

    def to_numpy(self, value: Any) -> np.ndarray:
        """The result of :meth:`step`, as a copy."""
        return np.array(value)

    def settings(self) -> dict[str, str | int | float | bool]:
        """Theano's configuration and threads, read back from Theano and linked libraries."""
        settings = {name: getattr(theano.config, name) for name in _CONFIGURED}
        settings["blas"] = theano.config.blas.ldflags
        settings["compilations"] = self._compilations
        if _openblas():
            settings["openblas_threads"] = _openblas().openblas_get_num_threads()
        if theano.config.openmp:
            settings["openmp_threads"] = ctypes.CDLL("libgomp.so.1").omp_get_max_threads()
        return settings

    def device_memory(self) -> dict[str, float]:
        """Empty: there is no path to a device that has its own."""
        return {}

    @staticmethod
    def versions() -> dict[str, str]:
        """Theano's version, and those of the compiler and of the BLAS that it links."""
        versions = {"theano": theano.__version__, "g++": gcc_version_str.split()[0]}
        library = _openblas()
        if library:
            library.openblas_get_config.restype = ctypes.c_char_p
            versions["openblas"] = library.openblas_get_config().decode().split()[1]
        return versions

    def _call(self, name: str, batch: tuple[np.ndarray, ...]) -> list[np.ndarray]:
        """The results of a function, which is compiled with the first batch that it gets."""
        if name not in self._functions:
            self._functions[name] = self._compile(name, batch)
            self._compilations += name == "step"
        return self._functions[name](*batch)

    def _compile(self, name: str, batch: tuple[np.ndarray, ...], more: Sequence[TensorVariable] = ()) -> Any:
        """A function of a batch, and of ``more``, which building the graph adds to."""
        given = tuple(T.TensorType(array.dtype, (False,) * array.ndim)() for array in batch)
        results, updates = self._graph(name, given)
        function = theano.function([*given, *more], results, updates=updates, on_unused_input="ignore")
        function.trust_input = True  # of the right types, by put
        return function

    def _graph(self, name: str, batch: tuple[TensorVariable, ...]) -> tuple[list[TensorVariable], list[tuple]]:
        """The results of a function, and its updates."""
        inputs, training = batch[: -self._targets], self._training
        if name in ("evaluation", "training"):
            outputs = self._model(*inputs, name == "training")
            return list(outputs) if isinstance(outputs, tuple) else [outputs], []
        if name == "predictions":
            return [self._module.predict(self._model, inputs)], []
        if name in ("dropouts", "dropouts of evaluation", "shapes"):
            return self._dropouts_graph(name, batch), []
        if name == "layers":
            return self._layers_graph(batch), []
        if not self._trains:
            output = self._model(batch[0], training)
            if name == "step" and self._values["passes"] == "forward":
                return [output], []
            found = T.grad(None, [batch[0], *self._trained.values()], known_grads={output: batch[1]})
            return ([output, *found] if name == "step" else found), []
        loss = self._module.loss(self._model, batch)
        gradients = dict(zip(self._trained.values(), T.grad(loss, [*self._trained.values()])))
        if name == "gradients":
            return [*gradients.values()], []
        return [loss], [*self._optimizer.updates(gradients)]

    def _dropouts_graph(self, name: str, batch: tuple[TensorVariable, ...]) -> list[TensorVariable]:
        """Inputs and outputs of dropouts in turn; of ``shapes``: the probability and the shape of each."""
        seen: list[TensorVariable] = []
        usual = _theano.mask

        def mask(x: TensorVariable, p: float) -> TensorVariable:
            if name == "shapes":
                seen.append(T.concatenate([[p], T.cast(x.shape, "float64")]))
                return T.ones_like(x)
            kept = usual(x, p)
            seen.extend([x, x * kept / (1 - p)])
            return kept

        with patch.object(_theano, "mask", mask):
            if name == "dropouts of evaluation":
                self._model(*batch[: -self._targets], False)
            else:
                self._module.loss(self._model, batch) if self._trains else self._model(batch[0], self._training)
        return seen

    def _layers_graph(self, batch: tuple[TensorVariable, ...]) -> list[TensorVariable]:
        """Inputs and outputs of layers, and the loss; their names are left in ``_layer_names``."""
        owners = {id(one): name.rpartition(".")[0] or self._name for name, one in self._weights.items()}
        self._layer_names: list[str] = []
        seen: list[TensorVariable] = []
        usual = _theano.Layer.__call__

        def call(layer: _theano.Layer, *inputs: Any) -> TensorVariable:
            output = usual(layer, *inputs)
            own = next((owners[id(one)] for one in vars(layer).values() if id(one) in owners), None)
            if own:
                self._layer_names += [f"input of {own}", f"output of {own}"]
                seen.extend([inputs[0], output])
            return output

        with patch.object(_theano.Layer, "__call__", call):
            loss = self._module.loss(self._model, batch) if self._trains else self._model(batch[0], self._training)
        return [*seen, loss] if self._trains else seen


_PRODUCTS = {
    "Dot22": lambda x, y, z: product(x) * y[1],
    "Dot22Scalar": lambda x, y, factor, z: product(x) * y[1],
    "Gemm": lambda z, factor, x, y, other, out: product(x) * y[1],
    "CorrMM": lambda x, kernel, out: product(out) * product(kernel[1:]),
    "CorrMM_gradWeights": lambda x, gradient, *more: product(gradient) * product(more[-1][1:]),
    "CorrMM_gradInputs": lambda kernel, gradient, *more: product(gradient) * product(kernel[1:]),
}
"""The multiply-adds of products, from the shapes of their inputs and of their output."""


def _numpy(array: Any) -> np.ndarray:
    return np.array(array, theano.config.floatX)


def _openblas() -> ctypes.CDLL | None:
    """The one that compiled functions are linked to."""
    if "openblas" in theano.config.blas.ldflags:
        with suppress(OSError):
            return ctypes.CDLL("libopenblas.so.0")
    return None
