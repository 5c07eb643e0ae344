"""Chainer 7, in maintenance since 2019: builds a workload and runs its steps, eagerly, on the CPU with NumPy.

Where iDeep is installed and switched on (the knob ``CHAINER_USE_IDEEP``), it computes what it has operators for, in
fp32. There is no path to a GPU: the wheels of CuPy that Chainer 7 takes are for CUDA 11 at most.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any
from unittest.mock import patch

import chainer
import numpy as np
from chainer import Variable
from chainer.backends import intel64
from chainer.functions.noise.dropout import Dropout
from chainer.serializers import DictionarySerializer, NpzDeserializer

from benchlib.errors import BenchlibError, no_such
from benchlib.frameworks import LOSS_SCALE, Draw, check_trained, check_weights, product
from benchlib.workloads import Values, Workload

TITLE = "Chainer"
PACKAGE = "chainer"
DEVICES = ("cpu",)
MODES = ("eager",)
PRECISIONS = ("fp32", "fp64")
VARIABLES = ("CHAINER_", "OPENBLAS_", "GOTO_", "NPY_")
KNOBS = (
    {
        "name": "CHAINER_USE_IDEEP",
        "value": "auto",
        "devices": ("cpu",),
        "reason": (
            "Intel's kernels compute what they can, where iDeep is installed (environments/chainer-ideep.txt; in the "
            "environment chainer this changes nothing); the model's weights are laid out for them"
        ),
        "source": "Chainer documentation, 'How do I accelerate my model using iDeep on Intel CPU?'",
    },
    {
        "name": "CHAINER_TYPE_CHECK",
        "value": "0",
        "devices": ("cpu",),
        "reason": "types and shapes of inputs are not checked at each call of a function, which is for tested code",
        "source": "Chainer documentation, 'Performance Best Practices'",
    },
)

_NAMES = {  # Chainer's names of weights to the workload's, where they differ
    "W": "weight",
    "b": "bias",
    "gamma": "weight",
    "beta": "bias",
    "avg_mean": "running_mean",
    "avg_var": "running_var",
}
_CONFIGURED = ("debug", "dtype", "enable_backprop", "lazy_grad_sum", "train", "type_check", "use_ideep")


class Session:
    """One workload in Chainer, in this process: see ``benchlib.frameworks.Session`` for what each method promises."""

    def __init__(
        self, device: str, mode: str, precision: str, seed: int, knobs: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        for what, chosen, known in (("precision", precision, PRECISIONS), ("mode", mode, MODES)):
            if chosen not in known:
                raise BenchlibError(no_such(f"{what} of chainer", chosen, known))
        if device not in DEVICES:
            raise BenchlibError(
                f"device {device!r}: chainer has a path to cpu only; install a framework that has one to it, or choose "
                "device 'cpu'"
            )
        for name, value in knobs.items():
            raise BenchlibError(no_such("knob of chainer", f"{name}={value}", []))
        self._float = np.dtype("float64" if precision == "fp64" else "float32")
        chainer.global_config.dtype = self._float  # of weights that a model makes
        np.random.seed(seed)  # for dropout only: weights and batches come from files

    def build(self, workload: Workload, module: ModuleType, values: Values, learning_rate: float | None) -> None:
        """Build model, loss and optimizer (or the operator) from ``module``, the workload's file for Chainer."""
        self._shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
        self._trains = workload.kind == "training"
        self._name, self._module, self._values, self._rate = workload.name, module, values, learning_rate
        self._targets, self._training = workload.targets, not workload.evaluates
        self._model = module.build(values)
        if intel64.should_use_ideep(">=auto"):
            self._model.to_intel64()
        self._paths = {_named(path): path for path, array in self._state().items() if array.ndim}
        shapes = {name: self._state()[path].shape for name, path in self._paths.items()}
        check_weights(f"{workload.name} in chainer", self._shapes, shapes)
        parameters = {_named(path): parameter for path, parameter in self._model.namedparams()}
        self._trained = {name: parameters[name] for name in self._shapes if name in parameters}
        self._untrained = [path for name, path in self._paths.items() if name not in parameters]
        check_trained(f"{workload.name} in chainer", workload.weights(values), self._trained)
        self._backward = self._trains or values["passes"] == "forward+backward"

    def load(self, weights: dict[str, np.ndarray], loss_scale: float = LOSS_SCALE) -> None:
        """Set the model's whole state, forget the optimizer's; a wrong name or shape is a BenchlibError."""
        check_weights("weights for chainer", self._shapes, {name: array.shape for name, array in weights.items()})
        self._set_state({self._paths[name]: array for name, array in weights.items()})
        if self._trains:
            self._optimizer = self._module.optimizer(self._model, self._values, self._rate)

    def weights(self) -> dict[str, np.ndarray]:
        """The model's state now, as copies."""
        state = self._state()
        return {name: self._numpy(state[self._paths[name]]) for name in self._shapes}

    def put(self, arrays: tuple[np.ndarray, ...]) -> tuple[Any, ...]:
        """A batch: the sample's arrays, whole numbers as int32; or (input, gradient of the output)."""
        batch = tuple(self._numpy(array) if array.dtype.kind == "f" else np.array(array) for array in arrays)
        return batch if self._trains else (Variable(batch[0]), batch[1])

    def step(self, batch: tuple[Any, ...]) -> np.ndarray:
        """Take one step; return its loss (an operator: its output)."""
        if not self._trains:
            return self._operator_output(batch)
        loss = self._loss_and_gradients(batch)
        self._optimizer.update()
        return loss

    def synchronize(self) -> None:
        """A step has done all its work when it returns."""

    def mark(self) -> None:
        """There is no event on the CPU."""

    def outputs(self, batch: tuple[Any, ...], training: bool) -> tuple[np.ndarray, ...]:
        """The model's outputs for a batch's inputs; weights and running statistics stay as they were."""
        with self._restore_untrained():
            if not self._trains and training:
                return (self._numpy(self._operator_output(batch)),)  # an operator's step is its output, and is measured
            with chainer.using_config("train", training), chainer.no_backprop_mode():
                outputs = self._model(*batch[: -self._targets])
            every = outputs if isinstance(outputs, tuple) else (outputs,)
            return tuple(self._numpy(one.array) for one in every)

    def predictions(self, batch: tuple[Any, ...]) -> np.ndarray:
        """The result of the file's ``predict`` for a batch's inputs, in evaluation behaviour."""
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return np.array(self._module.predict(self._model, batch[: -self._targets]).array)

    def gradients(self, batch: tuple[Any, ...]) -> dict[str, np.ndarray]:
        """Gradients of the loss by name (an operator: also ``input``); weights and statistics stay as they were."""
        with nullcontext() if self._training else self._without_ideep(), self._restore_untrained():
            self._loss_and_gradients(batch) if self._trains else self._output_and_gradients(batch)
            variables = {**({} if self._trains else {"input": batch[0]}), **self._trained}
            return {
                name: np.zeros(one.shape, self._float) if one.grad is None else self._numpy(one.grad)
                for name, one in variables.items()
            }

    def update(self, gradients: Sequence[Mapping[str, np.ndarray]], steps: int) -> None:
        """Steps of the optimizer with gradients that are given, in turn."""
        for number in range(steps):
            given = gradients[number % len(gradients)]
            self._model.cleargrads()
            for name, weight in self._trained.items():
                weight.update_rule.enabled = name in given  # or weight decay would move the others
                if name in given:
                    weight.grad = weight.device.send(self._numpy(given[name]))
            self._optimizer.update()

    def dropouts(self, batch: tuple[Any, ...], training: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """The input and the output of each dropout of a forward pass and, in training, of the loss."""
        seen: list[tuple[str, np.ndarray, np.ndarray]] = []

        def see(drop: Callable, node: Dropout, inputs: tuple[Any]) -> tuple[Any]:
            left = drop(node, inputs)
            seen.append(("dropout", self._numpy(inputs[0]), self._numpy(left[0])))
            return left

        behaving = chainer.using_config("train", training)
        with self._restore_untrained(), behaving, chainer.no_backprop_mode(), _replace_dropout(see):
            if training:
                self._module.loss(self._model, batch)
            else:
                self._model(*batch[: -self._targets])
        return seen

    @contextmanager
    def given_masks(self, draw: Draw) -> Iterator[None]:
        """Every dropout of a step, of gradients and of outputs takes its mask from ``draw``."""

        def masked(compute: Callable) -> Callable:
            def with_masks(*arguments: Any, **named: Any) -> Any:
                places = itertools.count()

                def see(drop: Callable, node: Dropout, inputs: tuple[Any]) -> tuple[Any]:
                    p = node.dropout_ratio
                    if p:
                        node.mask = self._numpy(draw(next(places), inputs[0].shape, p) / (1 - p))
                    return drop(node, inputs)

                with _replace_dropout(see):
                    return compute(*arguments, **named)

            return with_masks

        names = ("step", "gradients", "outputs")
        for name in names:
            setattr(self, name, masked(getattr(self, name)))
        try:
            yield
        finally:
            for name in names:
                delattr(self, name)

    def layers(self, batch: tuple[Any, ...]) -> list[tuple[str, np.ndarray]]:
        """The input and the output of each link that has weights of its own, and the loss."""
        owners = {name.rpartition(".")[0] for name in self._shapes}
        links = {_named(path): link for path, link in self._model.namedlinks()}
        names = {id(link): name or self._name for name, link in links.items() if name in owners}
        behaving = chainer.using_config("train", self._training)
        with self._restore_untrained(), behaving, chainer.no_backprop_mode(), _Layers(names) as layers:
            result = self._module.loss(self._model, batch) if self._trains else self._model(batch[0])
        arrays = [(name, self._numpy(array)) for name, array in layers.seen]
        return [*arrays, ("loss", self._numpy(result.array))] if self._trains else arrays

    def multiply_adds(self, batch: tuple[Any, ...]) -> float:
        """Those of the dense layers and convolutions that a step computes, ahead and back, from their shapes: Chainer
        has no counter.
        """
        with self._restore_untrained(), _Products() as products:
            self._loss_and_gradients(batch) if self._trains else self._operator_output(batch)
        return float(products.multiply_adds)

    def to_numpy(self, value: Any) -> np.ndarray:
        """The result of :meth:`step`, as a copy."""
        return self._numpy(value)

    def settings(self) -> dict[str, str | int | float | bool]:
        """Chainer's configuration, hooks that are left on, threads: read back from Chainer and linked libraries."""
        settings = {name: getattr(chainer.config, name) for name in _CONFIGURED}
        settings["dtype"] = np.dtype(settings["dtype"]).name
        settings["ideep"] = bool(intel64.should_use_ideep(">=auto"))
        settings["hooks"] = len(chainer.get_function_hooks()) + len(chainer._get_link_hooks())
        for library, name in ((_openblas(), "openblas_get_num_threads"), (_openmp(), "omp_get_max_threads")):
            if library:
                settings[name.partition("_")[0] + "_threads"] = _function(library, name)()
        return settings

    def device_memory(self) -> dict[str, float]:
        """Empty: there is no path to a device that has its own."""
        return {}

    @staticmethod
    def versions() -> dict[str, str]:
        """Chainer's version, and those of iDeep and of NumPy's OpenBLAS, where they are there."""
        versions = {"chainer": chainer.__version__}
        if intel64.is_ideep_available():
            versions["ideep"] = intel64.ideep.__version__
        library = _openblas()
        if library:
            config = _function(library, "openblas_get_config")
            config.restype = ctypes.c_char_p
            versions["openblas"] = config().decode().split()[1]
        return versions

    def _state(self) -> dict[str, np.ndarray]:
        """Weights and running statistics by Chainer's paths; not copies where they are NumPy's."""
        serializer = DictionarySerializer()
        serializer.save(self._model)
        return serializer.target

    def _set_state(self, arrays: Mapping[str, np.ndarray]) -> None:
        NpzDeserializer(arrays, strict=False).load(self._model)

    def _numpy(self, array: Any) -> np.ndarray:
        return np.array(array, self._float)

    def _loss_and_gradients(self, batch: tuple[Any, ...]) -> np.ndarray:
        self._model.cleargrads()
        loss = self._module.loss(self._model, batch)
        loss.backward()
        return loss.array

    def _operator_output(self, batch: tuple[Variable, np.ndarray]) -> Any:
        """The output of an operator's step."""
        if self._backward:
            return self._output_and_gradients(batch)
        with chainer.using_config("train", self._training), chainer.no_backprop_mode():
            return self._model(batch[0]).array

    def _output_and_gradients(self, batch: tuple[Variable, np.ndarray]) -> Any:
        inputs, gradient = batch
        inputs.cleargrad()
        self._model.cleargrads()
        with chainer.using_config("train", self._training):
            output = self._model(inputs)
        output.grad = gradient
        output.backward()
        return output.array

    @contextmanager
    def _restore_untrained(self) -> Iterator[None]:
        state = self._state()
        before = {path: np.array(state[path]) for path in self._untrained}
        yield
        self._set_state(before)

    @contextmanager
    def _without_ideep(self) -> Iterator[None]:
        """A model of NumPy's with the same state, where Chainer has an error with iDeep: the gradient of fixed running
        statistics.
        """
        usual, state = (self._model, self._trained), self._state()
        self._model = self._module.build(self._values)
        self._set_state(state)
        parameters = {_named(path): parameter for path, parameter in self._model.namedparams()}
        self._trained = {name: parameters[name] for name in self._trained}
        try:
            with chainer.using_config("use_ideep", "never"):
                yield
        finally:
            self._model, self._trained = usual


class _Layers(chainer.LinkHook):
    """What goes into links and comes out of them, by their names."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self.names = names
        self.seen: list[tuple[str, np.ndarray]] = []

    def forward_preprocess(self, args: Any) -> None:
        self.note("input", args.link, args.args)

    def forward_postprocess(self, args: Any) -> None:
        self.note("output", args.link, args.out)

    def note(self, what: str, link: chainer.Link, found: Any) -> None:
        if id(link) in self.names:
            first = found[0] if isinstance(found, (tuple, list)) else found
            self.seen.append((f"{what} of {self.names[id(link)]}", np.array(getattr(first, "array", first))))


class _Products(chainer.FunctionHook):
    """The multiply-adds of functions that are products, those of the way back among them."""

    multiply_adds = 0

    def forward_postprocess(self, function: chainer.FunctionNode, in_data: tuple[Any, ...]) -> None:
        count = _PRODUCTS.get(type(function).__name__)
        if count:
            self.multiply_adds += count(function, in_data[0].shape, in_data[1].shape)


_PRODUCTS = {
    "LinearFunction": lambda function, x, weight: product(x) * weight[0],
    "LinearGradData": lambda function, weight, gradient: product(weight) * gradient[0],
    "LinearGradWeight": lambda function, x, gradient: product(x) * gradient[1],
    "Convolution2DFunction": lambda function, x, kernel: (
        x[0] * product(function._get_out_size(x, kernel)) * product(kernel)
    ),
    "Deconvolution2DFunction": lambda function, gradient, kernel: product(gradient) * product(kernel[1:]),
    "Convolution2DGradW": lambda function, x, gradient: product(gradient) * product(function.W_shape[1:]),
}
"""From the shapes of their inputs. A convolution's gradients are a "deconvolution" and one by its weights."""


@contextmanager
def _replace_dropout(see: Callable[[Callable, Dropout, tuple[Any]], tuple[Any]]) -> Iterator[None]:
    """Have ``see`` compute each dropout that is at work, a model's own or one within another function, given what
    Chainer computes it by.
    """
    drop = Dropout.forward_cpu
    with patch.object(Dropout, "forward_cpu", lambda node, inputs: see(drop, node, inputs)):
        yield


def _named(path: str) -> str:
    """The workload's name for a path of Chainer's."""
    *parts, last = path.strip("/").split("/")
    return ".".join([*parts, _NAMES.get(last, last)])


def _openblas() -> ctypes.CDLL | None:
    """The one that NumPy's wheels bring."""
    return _library(np.__file__, "../numpy.libs/libopenblas*")


def _openmp() -> ctypes.CDLL | None:
    """The one that iDeep brings, where it is there."""
    return _library(intel64.ideep.__file__, "lib/libiomp5.so") if intel64.is_ideep_available() else None


def _library(beside: str, pattern: str) -> ctypes.CDLL | None:
    found = next(Path(beside).parent.glob(pattern), None)
    return ctypes.CDLL(str(found)) if found else None


def _function(library: ctypes.CDLL, name: str) -> Any:
    """Of OpenBLAS, whose functions are called otherwise where its integers have 64 bits."""
    return getattr(library, name, None) or getattr(library, f"{name}64_")
