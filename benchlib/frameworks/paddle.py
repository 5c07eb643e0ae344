"""PaddlePaddle: builds a workload and runs its steps. Run on the CPU only.

Graph mode is ``paddle.jit.to_static(full_graph=True)`` of forward and loss together (an operator: of its layer). The
optimizer's step stays outside, as it does wherever a model is decorated. Evaluation, and a training model's
``outputs``, run the model's own code.

Paddle puts the variance of a batch into the running variance, and PyTorch that of a sample (a sum over one number
less). While steps are taken, Paddle's is kept here; it is converted to PyTorch's before it is read: see
``_correct_variances``.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from types import MappingProxyType, ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import paddle
from paddle import Tensor, nn

from benchlib.errors import BenchlibError, no_such
from benchlib.frameworks import LOSS_SCALE, Draw, NoMasks, check_trained, check_weights, product
from benchlib.workloads import Values, Workload

TITLE = "PaddlePaddle"
PACKAGE = "paddle"
DISTRIBUTIONS = ("paddlepaddle", "paddlepaddle-gpu")
DEVICES = ("cpu",)
MODES = ("eager", "graph")
PRECISIONS = ("fp32", "fp64")
ROUNDS = 1e-6  # Momentum keeps its momentum, and batch normalisation its share, in fp32, whatever the precision
CUTS = ("far/first loss", "far/losses")  # the loss of a sample is 64 at most: softmax takes no exponent below -64
VARIABLES = ("FLAGS_", "PADDLE_", "GLOG_")
KNOBS = (
    {
        "name": "OMP_NUM_THREADS",
        "value": "{cores}",
        "devices": ("cpu",),
        "reason": "Paddle sets it to 1 for itself when it is imported, unless a number is set: it takes one core",
        "source": "Paddle's python/paddle/base/__init__.py, __bootstrap__",
    },
)

_NAMES = {"_mean": "running_mean", "_variance": "running_var"}  # of batch normalisation's statistics
_LIBRARIES = os.path.join(os.path.dirname(paddle.__file__), "libs")
_OPERATORS = paddle._C_ops  # all that Paddle's Python computes goes through these, eagerly or traced


class Session:
    """One workload in Paddle, in this process: see ``benchlib.frameworks.Session`` for what each method promises."""

    def __init__(
        self, device: str, mode: str, precision: str, seed: int, knobs: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        if precision not in PRECISIONS:
            raise BenchlibError(no_such("precision of paddle", precision, PRECISIONS))
        if device not in DEVICES:
            raise BenchlibError(
                f"device {device!r}: paddle has a path to {' and '.join(DEVICES)} only; install a framework that has "
                "one to it, or choose device 'cpu'"
            )
        for name, value in knobs.items():
            raise BenchlibError(no_such("knob of paddle", f"{name}={value}", []))
        paddle.set_device(device)
        self._float = "float64" if precision == "fp64" else "float32"
        paddle.set_default_dtype(self._float)
        self._graph = mode == "graph"
        self._flags = _flags()
        self._network: Any = None
        self._counted = 0  # steps since running variances were corrected, and the last of their batches
        self._batch: tuple[Tensor, ...] = ()
        paddle.seed(seed)  # for dropout only: weights and batches come from files

    def build(self, workload: Workload, module: ModuleType, values: Values, learning_rate: float | None) -> None:
        """Build model, loss and optimizer (or the operator) from ``module``, the workload's file for Paddle."""
        self._shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
        self._trains = workload.kind == "training"
        self._name, self._module, self._values, self._rate = workload.name, module, values, learning_rate
        self._targets, self._training = workload.targets, not workload.evaluates
        self._model = model = module.build(values)
        self._set_training(self._training)
        parts = dict(model.named_sublayers(include_self=True))
        self._turned = {_joined(name, "weight") for name, part in parts.items() if isinstance(part, nn.Linear)}
        self._norms = {name: part for name, part in parts.items() if isinstance(part, nn.layer.norm._BatchNormBase)}
        self._recurrent = [part for part in parts.values() if isinstance(part, nn.layer.rnn.RNNBase)]
        weights = {_named(name): weight for name, weight in model.named_parameters()}
        found = {name: weight.shape[::-1] if name in self._turned else weight.shape for name, weight in weights.items()}
        check_weights(f"{workload.name} in paddle", self._shapes, found)
        self._trained = {name: weight for name, weight in weights.items() if not weight.stop_gradient}
        self._untrained = {name: weight for name, weight in weights.items() if weight.stop_gradient}
        check_trained(f"{workload.name} in paddle", workload.weights(values), self._trained)
        compute = module.loss if self._trains else _forward

        def computed(batch: tuple[Tensor, ...]) -> Tensor:
            return compute(model, batch)

        self._compute = computed
        self._network = paddle.jit.to_static(computed, full_graph=True) if self._graph else computed
        self._masks: Callable[[], AbstractContextManager] = nullcontext  # around a forward pass that runs eagerly
        self._masked: Any = None
        self._places_of: dict[tuple, list[tuple]] = {}
        self._numbers_of: dict[tuple, list[int]] = {}
        self._backward = self._trains or values["passes"] == "forward+backward"
        self._clip = values.get("clip")

    def load(self, weights: dict[str, np.ndarray], loss_scale: float = LOSS_SCALE) -> None:
        """Set the model's whole state, forget the optimizer's; a wrong name or shape is a BenchlibError."""
        check_weights("weights for paddle", self._shapes, {name: array.shape for name, array in weights.items()})
        for name, weight in {**self._trained, **self._untrained}.items():
            weight.set_value(self._tensor(self._turn(name, weights[name])))
        self._keep_variances()
        self._forget_gradients()
        if self._trains:
            self._optimizer = self._module.optimizer(self._model, self._values, self._rate)
            schedule = getattr(self._module, "schedule", None)
            self._schedule = schedule(self._optimizer, self._values) if schedule else None

    def weights(self) -> dict[str, np.ndarray]:
        """The model's state now, as copies."""
        self._correct_variances()
        tensors = {**self._trained, **self._untrained}
        return {name: self._turn(name, self.to_numpy(tensors[name])) for name in self._shapes}

    def put(self, arrays: tuple[np.ndarray, ...]) -> tuple[Tensor, ...]:
        """A batch on the device: the sample's arrays, whole numbers as int64; or (input, gradient of the output)."""
        batch = tuple(map(self._tensor, arrays))
        if not self._trains:
            batch[0].stop_gradient = False
        return batch

    def step(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Take one step; return its loss (an operator: its output)."""
        self._count(batch)
        if not self._trains:
            return self._operator_output(batch)
        loss = self._network(batch)
        loss.backward()
        self._take_step()
        return loss.detach()

    def synchronize(self) -> None:
        """On the CPU a step has done all its work when it returns."""

    def mark(self) -> None:
        """There are no events of a device's queue on the CPU."""

    def outputs(self, batch: tuple[Tensor, ...], training: bool) -> tuple[np.ndarray, ...]:
        """The model's outputs for a batch's inputs; weights and running statistics stay as they were."""
        with self._restore_untrained():
            if not self._trains and training:
                return (self.to_numpy(self._operator_output(batch)),)  # a step's output, and is measured
            with self._behaving(training), paddle.no_grad(), self._masks():
                found = self._model(*batch[: -self._targets])
            return tuple(map(self.to_numpy, found if isinstance(found, tuple) else (found,)))

    def predictions(self, batch: tuple[Tensor, ...]) -> np.ndarray:
        """The result of the file's ``predict`` for a batch's inputs, in evaluation behaviour."""
        self._correct_variances()
        with self._behaving(training=False), paddle.no_grad():
            return self._module.predict(self._model, batch[: -self._targets]).numpy()

    def gradients(self, batch: tuple[Tensor, ...]) -> dict[str, np.ndarray]:
        """Gradients of the loss by name (an operator: also ``input``); weights and statistics stay as they were."""
        tensors = self._trained if self._trains else {"input": batch[0], **self._trained}
        with self._restore_untrained():
            if self._trains:
                self._network(batch).backward()
            elif self._values["passes"] == "forward+backward":
                self._operator_output(batch)  # the step that is timed
            else:  # what is traced under no_grad has no way back
                self._output_and_gradients(batch, self._compute)
        found = {name: self._turn(name, self._gradient(tensor)) for name, tensor in tensors.items()}
        self._forget_gradients()
        return found

    def update(self, gradients: Sequence[Mapping[str, np.ndarray]], steps: int) -> None:
        """Steps of the optimizer with gradients that are given, in turn."""
        for number in range(steps):
            for name, gradient in gradients[number % len(gradients)].items():
                self._trained[name].grad = self._tensor(self._turn(name, gradient))
            self._take_step()

    def dropouts(self, batch: tuple[Tensor, ...], training: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """The input and the output of each dropout of a forward pass and, in training, of the loss."""
        seen: list[tuple[str, np.ndarray, np.ndarray]] = []
        drop = _OPERATORS.dropout

        def watched(x: Tensor, *others: Any) -> Tensor:
            left = drop(x, *others)
            seen.append(("dropout", self.to_numpy(x), self.to_numpy(left)))
            return left

        replaced = patch.object(_OPERATORS, "dropout", watched)
        with self._restore_untrained(), self._behaving(training), paddle.no_grad(), replaced:
            if training:
                self._compute(batch)
            else:
                self._model(*batch[: -self._targets])
        return seen

    @contextmanager
    def given_masks(self, draw: Draw) -> Iterator[None]:
        """Masks from ``draw``. In graph mode they are inputs of a network that is traced for it, beside the usual."""
        if any(layer.dropout and layer.num_layers > 1 for layer in self._recurrent):
            raise NoMasks("Paddle's recurrent operator drops between its layers and takes no mask there")

        def run(batch: tuple[Tensor, ...]) -> Tensor:
            if not self._graph:
                with self._masks():
                    return usual(batch)
            self._masked = self._masked or paddle.jit.to_static(self._compute_masked(), full_graph=True)
            return self._masked(batch, [self._mask(draw, *place) for place in self._places(batch)])

        usual, self._network = self._network, run
        self._masks = lambda: _dropouts_replaced(lambda x, *place: x * self._mask(draw, x.shape, *place))
        try:
            yield
        finally:
            self._network, self._masks = usual, nullcontext

    def layers(self, batch: tuple[Tensor, ...]) -> list[tuple[str, np.ndarray]]:
        """What goes into each layer that has weights and comes out of it, and the loss, operation by operation."""
        seen: list[tuple[str, np.ndarray]] = []

        def watch(name: str, layer: nn.Layer) -> None:
            def note(what: str, tensors: Any) -> None:
                seen.append((f"{what} of {name}", self.to_numpy(tensors[0] if isinstance(tensors, tuple) else tensors)))

            hooks.append(layer.register_forward_pre_hook(lambda layer, given: note("input", given)))
            hooks.append(layer.register_forward_post_hook(lambda layer, given, left: note("output", left)))

        self._correct_variances()  # with a forward pass of its own
        hooks: list[Any] = []
        owners = {name.rpartition(".")[0] for name in self._shapes}
        for name, layer in self._model.named_sublayers(include_self=True):
            if name in owners and (name or not self._trains):
                watch(name or self._name, layer)
        with self._restore_untrained(), paddle.no_grad():
            result = self._compute(batch)
        for hook in hooks:
            hook.remove()
        return [*seen, ("loss", self.to_numpy(result))] if self._trains else seen

    def multiply_adds(self, batch: tuple[Tensor, ...]) -> float:
        """Those of the operators that a step calls, operation by operation, from their shapes: ``paddle.flops`` counts
        layers, and forward passes only. The way back takes as many again for each factor that has a gradient.
        """
        with self._restore_untrained(), paddle.set_grad_enabled(self._backward), _count_products() as counts:
            self._compute(batch)
        return float(sum(counts))

    def to_numpy(self, value: Tensor) -> np.ndarray:
        """A tensor, such as the result of :meth:`step`, as a copy."""
        return np.array(value.numpy(), self._float)

    def settings(self) -> dict[str, str | int | float | bool]:
        """Threads and flags in force, read back from Paddle and the libraries that it brings."""
        flags = _flags()
        settings = {
            "threads": _library("libiomp5.so").omp_get_max_threads(),
            "mkl_threads": _library("libmklml_intel.so").MKL_Get_Max_Threads(),
            "onednn": flags["FLAGS_use_onednn"] or flags["FLAGS_use_mkldnn"],
            "device": paddle.get_device(),
            "default_dtype": paddle.get_default_dtype(),
            "to_static": paddle.jit.dy2static.program_translator.ProgramTranslator().enable_to_static,
            "flags": " ".join(f"{name}={value}" for name, value in flags.items() if value != self._flags[name]),
            "variables": " ".join(f"{name}={os.environ[name]}" for name in sorted(os.environ) if _heeds(name)),
        }
        if self._graph:
            settings["compilations"] = getattr(self._network, "get_traced_count", int)()
        return settings

    def device_memory(self) -> dict[str, float]:
        """Empty on the CPU."""
        return {}

    @staticmethod
    def versions() -> dict[str, str]:
        """Paddle's version, and that of the oneDNN that it brings."""
        version = _library("libdnnl.so.3").dnnl_version
        version.restype = ctypes.POINTER(ctypes.c_int * 3)
        return {"paddle": paddle.__version__, "onednn": ".".join(map(str, version().contents))}

    def _compute_masked(self) -> Callable:
        """The computation of a step with masks as an argument."""
        compute = self._compute

        def computed(batch: Any, masks: Any) -> Any:
            left = iter(masks)
            with _dropouts_replaced(lambda x, *place: x * next(left)):
                return compute(batch)

        return computed

    def _places(self, batch: tuple[Tensor, ...]) -> list[tuple]:
        """What :meth:`_mask` takes of each dropout in a forward pass, from one that runs eagerly."""
        shapes = tuple(tuple(tensor.shape) for tensor in batch)
        if shapes not in self._places_of:
            seen = self._places_of[shapes] = []

            def see(x: Tensor, *place: Any) -> Tensor:
                seen.append((x.shape, *place))
                return x

            with self._restore_untrained(), paddle.no_grad(), _dropouts_replaced(see):
                self._compute(batch)
        return self._places_of[shapes]

    def _mask(self, draw: Draw, shape: Sequence[int], place: int, p: float) -> Tensor:
        """The factors of a dropout."""
        return self._tensor(draw(place, tuple(shape), p) / (1 - p))

    def _tensor(self, array: np.ndarray) -> Tensor:
        return paddle.to_tensor(array, dtype=self._float if array.dtype.kind == "f" else "int64")

    def _turn(self, name: str, array: np.ndarray) -> np.ndarray:
        """A weight as Paddle has it from the workload's, or the other way round: (inputs, outputs) of a dense layer."""
        return np.ascontiguousarray(array.T) if name in self._turned else array

    def _gradient(self, tensor: Tensor) -> np.ndarray:
        return np.zeros(tensor.shape, self._float) if tensor.grad is None else self.to_numpy(tensor.grad)

    def _forget_gradients(self) -> None:
        for weight in self._trained.values():
            weight.clear_gradient(set_to_zero=False)

    def _take_step(self) -> None:
        """The optimizer's, with the gradients that the weights have, which are gone then."""
        if self._clip is not None:
            nn.utils.clip_grad_norm_(self._model.parameters(), self._clip)
        self._optimizer.step()
        self._optimizer.clear_grad(set_to_zero=False)
        if self._schedule:
            self._schedule.step()

    def _operator_output(self, batch: tuple[Tensor, Tensor]) -> Tensor:
        """The output of an operator's step."""
        if self._backward:
            return self._output_and_gradients(batch, self._network)
        with paddle.no_grad():
            return self._network(batch)

    def _output_and_gradients(self, batch: tuple[Tensor, Tensor], network: Callable) -> Tensor:
        """The output; the input and the weights have their gradients then, and no earlier ones."""
        for tensor in (batch[0], *self._trained.values()):
            tensor.clear_gradient(set_to_zero=False)
        output = network(batch)
        output.backward(batch[1])
        return output.detach()

    def _set_training(self, training: bool) -> None:
        self._model.train() if training else self._model.eval()

    @contextmanager
    def _behaving(self, training: bool) -> Iterator[None]:
        self._set_training(training)
        try:
            yield
        finally:
            self._set_training(self._training)

    def _count(self, batch: tuple[Tensor, ...]) -> None:
        """Remember that running statistics have taken this batch in."""
        if not (self._norms and self._training):
            return
        if self._counted and batch[0].shape != self._batch[0].shape:
            self._correct_variances()
        self._counted, self._batch = self._counted + 1, batch

    def _correct_variances(self) -> None:
        """Turn each running variance into the one that PyTorch would have.

        Paddle makes r m^k + s of a variance r, k batches of n numbers for each channel, and momentum m. Here s is the
        sum of the batches' variances with their weights. PyTorch makes r m^k + s n / (n - 1).
        """
        if not self._counted:
            return
        for (name, norm), number in zip(self._norms.items(), self._numbers()):
            own = norm._variance.numpy().astype(float)
            kept = self._settled[name] * norm._momentum**self._counted
            norm._variance.set_value(self._tensor(kept + (own - kept) * number / (number - 1)))
        self._keep_variances()

    def _keep_variances(self) -> None:
        self._counted = 0
        self._settled = {name: norm._variance.numpy().astype(float) for name, norm in self._norms.items()}

    def _numbers(self) -> list[int]:
        """The number of values of a channel, in the last batch, that each batch normalisation is given."""
        inputs = self._batch[: -self._targets]
        shapes = tuple(tuple(tensor.shape) for tensor in inputs)
        if shapes not in self._numbers_of:
            seen: dict[nn.Layer, int] = {}

            def see(norm: nn.Layer, given: tuple[Tensor]) -> None:
                seen[norm] = given[0].size // given[0].shape[1]

            hooks = [norm.register_forward_pre_hook(see) for norm in self._norms.values()]
            with self._behaving(training=False), paddle.no_grad():
                self._model(*inputs)
            for hook in hooks:
                hook.remove()
            self._numbers_of[shapes] = [seen[norm] for norm in self._norms.values()]
        return self._numbers_of[shapes]

    @contextmanager
    def _restore_untrained(self) -> Iterator[None]:
        self._correct_variances()
        before = {name: tensor.clone() for name, tensor in self._untrained.items()}
        yield
        for name, tensor in self._untrained.items():
            tensor.set_value(before[name])


def _forward(model: nn.Layer, batch: tuple[Tensor, ...]) -> Tensor:
    return model(batch[0])


@contextmanager
def _dropouts_replaced(see: Callable[..., Tensor]) -> Iterator[None]:
    """Have ``see`` compute each dropout of a forward pass in training, given its input, its place, its probability."""
    drop, places = _OPERATORS.dropout, itertools.count()

    def replaced(x: Tensor, seeds: Any, p: float, is_test: bool, *others: Any) -> Tensor:
        return drop(x, seeds, p, is_test, *others) if is_test else see(x, next(places), p)

    with patch.object(_OPERATORS, "dropout", replaced):
        yield


@contextmanager
def _count_products() -> Iterator[list[float]]:
    """The multiply-adds of each call of an operator that is a product, its way back included where it is recorded."""
    counts: list[float] = []

    def count(operator: Callable, multiply_adds: Callable, *given: Any, **named: Any) -> Any:
        result = operator(*given, **named)
        output = result[0] if isinstance(result, (tuple, list)) else result
        factors = [one for one in (*given, *named.values()) if isinstance(one, Tensor)][:2]
        if multiply_adds is _of_rnn:  # (inputs, initial states, weights ...)
            factors = [given[0], *given[2]]
        recorded = paddle.is_grad_enabled() and not output.stop_gradient
        ways = [one for one in factors[:2] if recorded and not one.stop_gradient]
        counts.append((1 + len(ways)) * multiply_adds(output, *factors))
        return result

    with ExitStack() as stack:
        for where, name, multiply_adds in _PRODUCTS:
            counted = functools.partial(count, getattr(where, name), multiply_adds)
            method = (lambda call: lambda *given, **named: call(*given, **named))(counted)  # which a class can have
            stack.enter_context(patch.object(where, name, method))
        yield counts


def _of_convolution(output: Tensor, images: Tensor, kernels: Tensor) -> float:
    """Each number of the output is a sum over the weights of its channel."""
    return output.size * product(kernels.shape[1:])


def _of_matrices(output: Tensor, first: Tensor, second: Tensor) -> float:
    """(batch, n, k) and (batch, k, m) to (batch, n, m), in whichever order, with or without a batch."""
    batch = product(output.shape[:-2])
    if second.ndim <= 2:
        return first.size * second.size / first.shape[-1] if second.ndim == 2 else first.size
    return (first.size * second.size * output.size / batch) ** 0.5


def _of_rnn(output: Tensor, data: Tensor, *weights: Tensor) -> float:
    """A step of a sequence takes each weight once for each sample, but no bias."""
    return data.shape[0] * data.shape[1] * sum(one.size for one in weights if one.ndim == 2)


_PRODUCTS = (
    (_OPERATORS, "conv2d", _of_convolution),
    (_OPERATORS, "linear", _of_matrices),
    (_OPERATORS, "matmul", _of_matrices),
    (_OPERATORS, "bmm", _of_matrices),
    (_OPERATORS, "rnn", _of_rnn),
    (Tensor, "__matmul__", _of_matrices),
)


def _named(name: str) -> str:
    """A weight's name among the workload's."""
    owner, _, own = name.rpartition(".")
    return _joined(owner, _NAMES.get(own, own))


def _joined(owner: str, name: str) -> str:
    return f"{owner}.{name}" if owner else name


def _heeds(name: str) -> bool:
    return name.startswith(VARIABLES)


def _flags() -> dict[str, Any]:
    """Paddle's flags, each with its value now."""
    flags = paddle.base.core.globals()
    return {name: flags[name] for name in sorted(flags.keys())}


def _library(name: str) -> ctypes.CDLL:
    """A library that Paddle has loaded."""
    return ctypes.CDLL(os.path.join(_LIBRARIES, name))
