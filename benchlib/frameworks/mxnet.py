"""Apache MXNet, with Gluon: builds a workload and runs its steps. Run on the CPU only so far.

Eager mode is imperative Gluon. Graph mode is ``hybridize(static_alloc=True, static_shape=True)`` of forward and loss
together (an operator: of its block). The optimizer's step stays outside, as it does wherever Gluon's ``Trainer`` is
used. Evaluation, and a training model's ``outputs``, run the model's own code.

In both modes an operation is queued for MXNet's engine, whose threads compute it; Python goes on meanwhile.

MXNet puts the variance of a batch into the running variance, and PyTorch that of a sample (a sum over one number less).
While steps are taken, MXNet's is kept here; it is converted to PyTorch's before it is read: see
``_correct_variances``.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import itertools
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from types import MappingProxyType, ModuleType
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon, runtime
from mxnet.gluon import HybridBlock, nn, rnn
from mxnet.ndarray import NDArray

from benchlib.errors import BenchlibError, no_such
from benchlib.frameworks import LOSS_SCALE, Draw, NoMasks, check_trained, check_weights, product
from benchlib.workloads import Values, Workload

TITLE = "MXNet"
PACKAGE = "mxnet"
DISTRIBUTIONS = ("mxnet", "mxnet-mkl", "mxnet-cu112", "mxnet-cu110", "mxnet-cu102", "mxnet-cu101")
DEVICES = ("cpu", "cuda")
NEEDS = (
    {
        "device": "cuda",
        "distributions": ("mxnet-cu112", "mxnet-cu110", "mxnet-cu102", "mxnet-cu101"),
        "otherwise": "{lacking} is not installed, but a build without CUDA; environments/mxnet-cuda.txt has one",
    },
    {
        "device": "cuda",
        "linked": "libmxnet.so",
        "otherwise": "mxnet lacks {lacking}: put CUDA 11.2, cuDNN 8 and NCCL 2 on LD_LIBRARY_PATH; else use 'cpu'",
    },
)
MODES = ("graph", "eager")
PRECISIONS = ("fp32", "fp64")
ROUNDS = 2e-5  # optimizers and running statistics keep some scalars in fp32, whatever the precision
VARIABLES = ("MXNET_", "DMLC_", "MKLDNN_")
CHANGING = ("threads",)
KNOBS = (
    {
        "name": "OMP_NUM_THREADS",
        "value": "{cores}",
        "devices": ("cpu",),
        "reason": (
            "MXNet takes half of the processors on x86 unless a number is set, because it takes two for one core: "
            "of two cores one, where the others take both"
        ),
        "source": "MXNet's src/engine/openmp.cc; docs/mxnet.md has its effect",
    },
    {
        "name": "subgraph_backend",
        "value": "MKLDNN",
        "devices": ("cpu",),
        "modes": ("graph",),
        "inference_only": True,
        "by_session": True,
        "reason": (
            "oneDNN computes convolution, batch normalisation, ReLU and sum as one operator, where nothing goes back; "
            "MXNET_SUBGRAPH_BACKEND, which is on as installed, does so for Symbol only, not for Gluon"
        ),
        "source": (
            "MXNet documentation, 'HybridBlock.hybridize', before 1.7 'Symbol.get_backend_symbol'; docs/mxnet.md has "
            "its effect"
        ),
    },
)

_NAMES = {  # the end of Gluon's name for a weight to the workload's, where they differ
    "gamma": "weight",
    "beta": "bias",
    "_unfused.0.i2h_weight": "weight_ih_l0",  # Gluon's names of the weights of a recurrent layer when it saves them
    "_unfused.0.h2h_weight": "weight_hh_l0",
    "_unfused.0.i2h_bias": "bias_ih_l0",
    "_unfused.0.h2h_bias": "bias_hh_l0",
}
_PIECE = 100_000
"""Values that are read at once. MXNet copies 200,000 and more from and to NumPy in Python's own thread, with OpenMP
threads for it; once it has, all steps of the process are slower (docs/mxnet.md).
"""
_HAS_BACKENDS = "backend" in inspect.signature(HybridBlock.hybridize).parameters  # since 1.7


class Session:
    """One workload in MXNet, in this process: see ``benchlib.frameworks.Session`` for what each method promises."""

    def __init__(
        self, device: str, mode: str, precision: str, seed: int, knobs: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        if precision not in PRECISIONS:
            raise BenchlibError(no_such("precision of mxnet", precision, PRECISIONS))
        if device not in DEVICES:
            raise BenchlibError(
                f"device {device!r}: mxnet has a path to {' and '.join(DEVICES)} only; install a framework that has "
                "one to it, or choose device 'cpu'"
            )
        for name, value in knobs.items():
            if (name, value) != ("subgraph_backend", "MKLDNN"):
                raise BenchlibError(no_such("knob of mxnet", f"{name}={value}", ["subgraph_backend=MKLDNN"]))
        if device == "cuda" and not mx.context.num_gpus():
            raise BenchlibError(
                f"device 'cuda': mxnet {mx.__version__} finds no GPU here; install the build of mxnet for CUDA and its "
                "driver (environments/mxnet-cuda.txt), or choose device 'cpu'"
            )
        self._context = mx.gpu() if device == "cuda" else mx.cpu()
        self._float = np.dtype("float64" if precision == "fp64" else "float32")
        self._graph = mode == "graph"
        self._backend = knobs.get("subgraph_backend")
        self._model: Any = None
        self._network: Any = None
        self._counted = 0  # steps since running variances were corrected, and the last of their batches
        self._batch: tuple[NDArray, ...] = ()
        mx.random.seed(seed)  # for dropout only: weights and batches come from files

    def build(self, workload: Workload, module: ModuleType, values: Values, learning_rate: float | None) -> None:
        """Build model, loss and optimizer (or the operator) from ``module``, the workload's file for MXNet."""
        self._shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
        self._trains = workload.kind == "training"
        self._name, self._module, self._values, self._rate = workload.name, module, values, learning_rate
        self._targets, self._training = workload.targets, not workload.evaluates
        self._model = module.build(values)
        self._model.initialize(ctx=self._context)
        if self._float != np.float32:
            self._model.cast(self._float.name)
        parameters = _named_parameters(self._model)
        shapes = {name: parameter.shape for name, parameter in parameters.items()}
        check_weights(f"{workload.name} in mxnet", self._shapes, shapes)
        self._trained = {name: parameters[name] for name in self._shapes if parameters[name].grad_req != "null"}
        self._untrained = {name: parameters[name] for name in self._shapes if name not in self._trained}
        check_trained(f"{workload.name} in mxnet", workload.weights(values), self._trained)
        self._norms = _blocks(self._model, nn.BatchNorm)
        self._numbers_of: dict[tuple[tuple[int, ...], ...], list[int]] = {}
        compute = self._compute = module.loss if self._trains else _forward
        self._masks: Callable[[], AbstractContextManager] = nullcontext  # around a forward pass that runs eagerly
        self._masked: _Network | None = None
        self._places_of: dict[tuple[tuple[int, ...], ...], list[tuple]] = {}
        if self._graph:
            self._network = _Network(self._model, compute, self._backend)
            self._compile()
        else:
            self._network = lambda *batch: compute(self._model, batch)
        self._backward = self._trains or values["passes"] == "forward+backward"
        if self._trains:
            self._clip = values.get("clip")
            self._cut = gluon.utils.clip_global_norm if self._float == np.float32 else _clip_global_norm

    def load(self, weights: dict[str, np.ndarray], loss_scale: float = LOSS_SCALE) -> None:
        """Set the model's whole state, forget the optimizer's; a wrong name or shape is a BenchlibError."""
        check_weights("weights for mxnet", self._shapes, {name: array.shape for name, array in weights.items()})
        for name, parameter in {**self._trained, **self._untrained}.items():
            parameter.set_data(self._array(weights[name]))
        self._forget_gradients()
        self._keep_variances()
        if self._backend:  # which has taken batch normalisation's weights into those of convolutions, and keeps them
            self._compile()
        if self._trains:
            self._trainer = self._module.optimizer(self._model, self._values, self._rate)
            schedule = getattr(self._module, "schedule", None)
            self._schedule = schedule(self._trainer, self._values) if schedule else None

    def weights(self) -> dict[str, np.ndarray]:
        """The model's state now, as copies."""
        self._correct_variances()
        parameters = {**self._trained, **self._untrained}
        return {name: self._numpy(parameters[name].data()) for name in self._shapes}

    def put(self, arrays: tuple[np.ndarray, ...]) -> tuple[NDArray, ...]:
        """A batch on the device: the sample's arrays, whole numbers as int32; or (input, gradient of the output)."""
        batch = tuple(map(self._array, arrays))
        if not self._trains:
            batch[0].attach_grad()
        return batch

    def step(self, batch: tuple[NDArray, ...]) -> NDArray:
        """Queue one step; return its loss (an operator: its output)."""
        self._count(batch)
        if not self._trains:
            return self._operator_output(batch)
        loss = self._loss_and_gradients(batch)
        self._take_step(self._trained)
        return loss

    def synchronize(self) -> None:
        """Wait until all queued work is done."""
        mx.nd.waitall()

    def mark(self) -> None:
        """MXNet hands out no events of the device's queue."""

    def outputs(self, batch: tuple[NDArray, ...], training: bool) -> tuple[np.ndarray, ...]:
        """The model's outputs for a batch's inputs; weights and running statistics stay as they were."""
        with self._restore_untrained():
            if not self._trains and training:
                return (self._numpy(self._operator_output(batch)),)  # an operator's step is its output, and is measured
            with _set_training(training), self._masks():
                outputs = self._model(*batch[: -self._targets])
            return tuple(map(self._numpy, outputs if isinstance(outputs, tuple) else (outputs,)))

    def predictions(self, batch: tuple[NDArray, ...]) -> np.ndarray:
        """The result of the file's ``predict`` for a batch's inputs, in evaluation behaviour."""
        self._correct_variances()
        with _set_training(training=False):
            return self._module.predict(self._model, batch[: -self._targets]).asnumpy()

    def gradients(self, batch: tuple[NDArray, ...]) -> dict[str, np.ndarray]:
        """Gradients of the loss by name (an operator: also ``input``); weights and statistics stay as they were."""
        with self._restore_untrained():
            if self._trains:
                self._loss_and_gradients(batch)
            elif self._training and self._values["passes"] == "forward+backward":
                self._operator_output(batch)  # the step that is timed, whether it goes back or not
            elif self._training:
                self._output_and_gradients(batch, self._network, training=True)
            else:  # in evaluation oneDNN's pooling remembers no maxima, and its gradient is of unwritten memory
                with _fix_statistics(self._norms):
                    self._output_and_gradients(batch, self._model, training=True)
            gradients = {} if self._trains else {"input": batch[0].grad}
            gradients.update({name: parameter.grad() for name, parameter in self._trained.items()})
            copies = {name: self._numpy(gradient) for name, gradient in gradients.items()}
        self._forget_gradients()
        return copies

    def update(self, gradients: Sequence[Mapping[str, np.ndarray]], steps: int) -> None:
        """Steps of the optimizer with gradients that are given, in turn."""
        ready = [{name: self._array(array) for name, array in one.items()} for one in gradients]
        for number in range(steps):
            given = ready[number % len(ready)]
            with autograd.record():  # of arrays with the weights' values, whose gradients are the weights'
                same = [mx.nd.identity(self._trained[name].data()) for name in given]
            autograd.backward(same, [*given.values()])
            self._take_step(given)

    def dropouts(self, batch: tuple[NDArray, ...], training: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """The input and the output of each dropout of a forward pass and, in training, of the loss. The model's own
        code runs operation by operation for this, because nothing can look into a graph.
        """
        with self._restore_untrained(), _set_training(training), _record_dropouts() as seen:
            if training:
                self._module.loss(self._model, batch)
            else:
                self._model(*batch[: -self._targets])
            return [("Dropout", self._numpy(given), self._numpy(left)) for given, left in seen]

    @contextmanager
    def given_masks(self, draw: Draw) -> Iterator[None]:
        """Masks from ``draw``. In graph mode they are inputs of a network that is compiled for it, beside the usual."""
        if any(layer._dropout and layer._num_layers > 1 for layer in _blocks(self._model, rnn.rnn_layer._RNNLayer)):
            raise NoMasks("MXNet's recurrent operator drops between its layers and takes no mask there")

        def see(data: NDArray, *of: Any) -> NDArray:
            return mx.nd.broadcast_mul(data, self._mask(draw, data.shape, *of))

        usual, self._masks = self._network, functools.partial(_replace_dropout, see)
        self._network = functools.partial(self._run_masked, usual, draw)
        try:
            yield
        finally:
            self._network, self._masks = usual, nullcontext

    def layers(self, batch: tuple[NDArray, ...]) -> list[tuple[str, np.ndarray]]:
        """What goes into each layer that has weights and comes out of it, and the loss, operation by operation."""
        seen: list[tuple[str, NDArray]] = []

        def watch(name: str, layer: HybridBlock) -> None:
            def note_input(layer: HybridBlock, given: tuple) -> None:
                seen.append((f"input of {name}", given[0]))

            def note_output(layer: HybridBlock, given: tuple, left: Any) -> None:
                seen.append((f"output of {name}", left[0] if isinstance(left, (tuple, list)) else left))

            hooks.extend((layer.register_forward_pre_hook(note_input), layer.register_forward_hook(note_output)))

        hooks: list[Any] = []
        for name, layer in _named_layers(self._model):
            if name or not self._trains:
                watch(name or self._name, layer)
        with self._restore_untrained(), _set_training(self._training):
            result = self._compute(self._model, batch if self._trains else batch[:1])
        for hook in hooks:
            hook.detach()
        arrays = [(name, self._numpy(array)) for name, array in seen]
        return [*arrays, ("loss", self.to_numpy(result))] if self._trains else arrays

    def multiply_adds(self, batch: tuple[NDArray, ...]) -> float:
        """Those of the operators that a step calls, operation by operation, from their shapes: MXNet has no counter.
        The way back takes as many again for each factor of a product that has a gradient.
        """
        arrays = batch if self._trains else batch[:1]
        with ExitStack() as stack:
            if self._backward:
                stack.enter_context(autograd.record(train_mode=self._training))
            counts = stack.enter_context(_count_products())
            self._compute(self._model, arrays)
        return float(sum(counts))

    def to_numpy(self, value: NDArray) -> np.ndarray:
        """The result of :meth:`step`, as a copy; a loss without the dimension that MXNet has to give it."""
        array = self._numpy(value)
        return array.reshape(()) if self._trains else array

    def settings(self) -> dict[str, str | int | float | bool]:
        """Threads and libraries in force, read back from MXNet, its linked libraries and the operating system.

        ``threads`` are all of the process: MXNet's engine has some that wait for work, and one that computes.
        ``compilations`` are the network's since it was hybridized; a model that is ``hybridized`` by itself is compiled
        beside it.
        """
        heeded = sorted(item for item in os.environ.items() if item[0].startswith(VARIABLES))
        linked = mx.base._LIB  # a name is looked up in libgomp and OpenBLAS, too
        settings = {
            "threads": len(os.listdir("/proc/self/task")),
            "omp_threads": linked.omp_get_max_threads(),
            "onednn": runtime.Features().is_enabled("MKLDNN"),
            "device": str(self._context),
            "bulk_size": _bulk_size(),
            "amp": getattr(sys.modules.get("mxnet.contrib.amp.amp"), "_amp_initialized", False),
            "variables": " ".join(f"{name}={value}" for name, value in heeded),
            "hybridized": any(block._active for block in _blocks(self._model, HybridBlock)) if self._model else False,
        }
        if hasattr(linked, "openblas_get_num_threads"):  # not in 1.5 and 1.6
            settings["openblas_threads"] = linked.openblas_get_num_threads()
        if self._graph:
            settings["compilations"] = getattr(self._network, "compilations", 0)
        return settings

    def device_memory(self) -> dict[str, float]:
        """Empty: MXNet reports the free memory of a GPU, and not the memory that it has taken."""
        return {}

    @staticmethod
    def versions() -> dict[str, str]:
        """MXNet's version, and that of the library that it brings and that tells its own: OpenBLAS in 1.9, oneDNN
        (then MKL-DNN) in 1.5 and 1.6.
        """
        versions, linked = {"mxnet": mx.__version__}, mx.base._LIB
        if hasattr(linked, "openblas_get_config"):
            linked.openblas_get_config.restype = ctypes.c_char_p
            versions["openblas"] = linked.openblas_get_config().decode().split()[1]
        if hasattr(linked, "mkldnn_version"):
            linked.mkldnn_version.restype = ctypes.POINTER(ctypes.c_int * 3)
            versions["onednn"] = ".".join(map(str, linked.mkldnn_version().contents))
        return versions

    def _compile(self) -> None:
        """Compile the network: its next call is traced and compiled again."""
        backend = {"backend": self._backend} if _HAS_BACKENDS else {}
        self._network.hybridize(static_alloc=True, static_shape=True, **backend)
        self._network.compilations = 0
        self._model.hybridize(active=False)  # called by itself, it runs operation by operation

    def _array(self, array: np.ndarray) -> NDArray:
        """A copy that MXNet's engine makes: see ``_PIECE``."""
        own = np.array(array, dtype=self._float if array.dtype.kind == "f" else array.dtype, order="C")
        copy = mx.nd.from_numpy(own).copyto(self._context)
        copy.wait_to_read()
        return copy

    def _run_masked(self, usual: Callable, draw: Draw, *batch: NDArray) -> NDArray:
        """The network's result for a batch, with masks from ``draw`` where it trains."""
        if not self._graph:
            with self._masks():
                return usual(*batch)
        if not autograd.is_training():
            return usual(*batch)
        if self._masked is None:
            self._masked = _Network(self._model, functools.partial(_compute_masked, self._compute, len(batch)))
            self._masked.hybridize(static_alloc=True, static_shape=True)
            self._model.hybridize(active=False)
        return self._masked(*batch, *(self._mask(draw, *place) for place in self._places(batch)))

    def _places(self, batch: tuple[NDArray, ...]) -> list[tuple]:
        """What :meth:`_mask` takes of each dropout in a forward pass, from one that runs eagerly."""
        shapes = tuple(array.shape for array in batch)
        if shapes not in self._places_of:
            seen = self._places_of[shapes] = []

            def see(data: NDArray, *of: Any) -> NDArray:
                seen.append((data.shape, *of))
                return data

            with autograd.pause(train_mode=True), _replace_dropout(see):
                self._compute(self._model, batch)
        return self._places_of[shapes]

    def _mask(self, draw: Draw, shape: tuple[int, ...], place: int, p: float, axes: Sequence[int]) -> NDArray:
        """The factors of a dropout, which are the same along ``axes``: the first of them there."""
        kept = draw(place, shape, p)[tuple(slice(1 if axis in axes else None) for axis in range(len(shape)))]
        return self._array(kept / (1 - p))

    def _numpy(self, value: NDArray) -> np.ndarray:
        flat = value.reshape((-1,))
        ends = [*range(0, value.size, _PIECE), value.size]
        pieces = [flat[start:end].asnumpy() for start, end in zip(ends, ends[1:])]
        return np.concatenate(pieces).reshape(value.shape).astype(self._float, copy=False)

    def _loss_and_gradients(self, batch: tuple[NDArray, ...]) -> NDArray:
        with autograd.record(train_mode=self._training):
            loss = self._network(*batch)
        loss.backward(train_mode=self._training)
        return loss

    def _forget_gradients(self) -> None:
        """Reset the gradients: an update of some weights would move the others with them."""
        for parameter in self._trained.values():
            parameter.zero_grad()
            parameter.data()._fresh_grad = False  # as in Trainer: this one has not been computed

    def _take_step(self, names: Iterable[str]) -> None:
        """The optimizer's, with the gradients of these weights, which are those computed since the last."""
        if self._clip is not None:
            gradients = [self._trained[name].grad() for name in names]
            self._cut(gradients, self._clip, check_isfinite=False)  # which would wait for them
        self._trainer.step(1, ignore_stale_grad=True)  # 1: the loss is a mean already
        if self._schedule:
            self._schedule.step()

    def _operator_output(self, batch: tuple[NDArray, NDArray]) -> NDArray:
        """The output of an operator's step."""
        if self._backward:
            return self._output_and_gradients(batch, self._network, self._training)
        with _set_training(self._training):
            return self._network(batch[0])

    @staticmethod
    def _output_and_gradients(batch: tuple[NDArray, NDArray], network: Callable, training: bool) -> NDArray:
        inputs, gradient = batch
        with autograd.record(train_mode=training):
            output = network(inputs)
        output.backward(gradient, train_mode=training)
        return output

    def _count(self, batch: tuple[NDArray, ...]) -> None:
        """Remember that running statistics have taken this batch in, which MXNet has them do on the way back."""
        if not (self._norms and self._training and self._backward):
            return
        if self._counted and batch[0].shape != self._batch[0].shape:
            self._correct_variances()
        self._counted, self._batch = self._counted + 1, batch

    def _correct_variances(self) -> None:
        """Turn each running variance into the one that PyTorch would have.

        MXNet makes r m^k + s of a variance r, k batches of n numbers for each channel, and momentum m. Here s is the
        sum of the batches' variances with their weights. PyTorch makes r m^k + s n / (n - 1).
        """
        if not self._counted:
            return
        for norm, number in zip(self._norms, self._numbers()):
            own = norm.running_var.data().asnumpy().astype(float)
            kept = self._settled[norm] * norm._kwargs["momentum"] ** self._counted
            norm.running_var.set_data(self._array(kept + (own - kept) * number / (number - 1)))
        self._keep_variances()

    def _keep_variances(self) -> None:
        self._counted = 0
        self._settled = {norm: norm.running_var.data().asnumpy().astype(float) for norm in self._norms}

    def _numbers(self) -> list[int]:
        """The number of values of a channel, in the last batch, that each batch normalisation is given."""
        inputs = self._batch[: -self._targets]
        shapes = tuple(array.shape for array in inputs)
        if shapes not in self._numbers_of:
            seen: dict[HybridBlock, int] = {}

            def see(norm: HybridBlock, given: tuple[NDArray]) -> None:
                seen[norm] = given[0].size // given[0].shape[1]

            hooks = [norm.register_forward_pre_hook(see) for norm in self._norms]
            with _set_training(training=False):
                self._model(*inputs)
            for hook in hooks:
                hook.detach()
            self._numbers_of[shapes] = [seen[norm] for norm in self._norms]
        return self._numbers_of[shapes]

    @contextmanager
    def _restore_untrained(self) -> Iterator[None]:
        self._correct_variances()
        before = {name: parameter.data().copy() for name, parameter in self._untrained.items()}
        yield
        for name, parameter in self._untrained.items():
            parameter.set_data(before[name])


class _Network(HybridBlock):
    """A model and a step's computation with it, as one block."""

    def __init__(self, model: HybridBlock, compute: Callable, backend: str | None = None) -> None:
        super().__init__()
        self.model = model
        self._compute = compute
        self._backend_before = None if _HAS_BACKENDS else backend
        self.compilations = 0

    def _build_cache(self, *arrays: NDArray) -> None:
        self.compilations += 1
        super()._build_cache(*arrays)

    def _get_graph(self, *arrays: NDArray) -> Any:
        data, graph = super()._get_graph(*arrays)
        return data, graph.get_backend_symbol(self._backend_before) if self._backend_before else graph

    def hybrid_forward(self, F: ModuleType, first: Any, *others: Any) -> Any:
        return self._compute(self.model, (first, *others))


def _forward(model: HybridBlock, inputs: tuple[Any, ...]) -> Any:
    return model(*inputs)


def _set_training(training: bool) -> AbstractContextManager:
    return autograd.train_mode() if training else autograd.predict_mode()


@contextmanager
def _fix_statistics(norms: Iterable[HybridBlock]) -> Iterator[None]:
    """Have batch normalisation that runs as in training keep to its running statistics, as in evaluation."""
    for norm in norms:
        norm._kwargs["use_global_stats"] = True
    try:
        yield
    finally:
        for norm in norms:
            norm._kwargs["use_global_stats"] = False


@contextmanager
def _record_dropouts() -> Iterator[list[tuple[NDArray, NDArray]]]:
    """Record each call of the operator that drops, a block's or a model's own: its input and its output."""
    seen: list[tuple[NDArray, NDArray]] = []
    drop = mx.nd.Dropout

    def watched(data: NDArray, *arguments: Any, **named: Any) -> NDArray:
        left = drop(data, *arguments, **named)
        seen.append((data, left))
        return left

    with _replace_operator(mx.nd, "Dropout", watched):
        yield seen


@contextmanager
def _replace_dropout(see: Callable[[NDArray, int, float, Sequence[int]], NDArray]) -> Iterator[None]:
    """Have ``see`` compute each dropout of a forward pass in training, given its input, its place, its probability and
    the axes along which a mask is the same.
    """
    drop, places = mx.nd.Dropout, itertools.count()

    def replaced(data: NDArray, p: float = 0.5, mode: str = "training", axes: Sequence[int] = (), **named: Any) -> Any:
        if not p or not autograd.is_training():
            return drop(data, p=p, mode=mode, axes=axes, **named)
        return see(data, next(places), p, axes)

    with _replace_operator(mx.nd, "Dropout", replaced):
        yield


def _compute_masked(compute: Callable, fields: int, model: HybridBlock, arrays: tuple[Any, ...]) -> Any:
    """The graph of a step's computation with a batch of so many fields, which the masks of its dropouts follow."""
    drop, masks = mx.sym.Dropout, iter(arrays[fields:])

    def replaced(data: Any, p: float = 0.5, **named: Any) -> Any:
        return mx.sym.broadcast_mul(data, next(masks)) if p else drop(data, p=p, **named)

    with _replace_operator(mx.sym, "Dropout", replaced):
        return compute(model, arrays[:fields])


@contextmanager
def _replace_operator(where: ModuleType, name: str, operator: Callable) -> Iterator[None]:
    own = getattr(where, name)
    setattr(where, name, operator)
    try:
        yield
    finally:
        setattr(where, name, own)


def _clip_global_norm(arrays: Sequence[NDArray], max_norm: float, check_isfinite: bool) -> None:
    """``gluon.utils.clip_global_norm`` in double precision, for which Gluon's has a number in fp32."""
    norm = mx.nd.sqrt(mx.nd.add_n(*[(array * array).sum() for array in arrays]))
    scale = mx.nd.minimum(max_norm / (norm + 1e-8), 1.0)
    for array in arrays:
        array *= scale


def _named_parameters(model: HybridBlock) -> dict[str, gluon.Parameter]:
    """A model's parameters by the workload's names."""
    named = {}
    for name, parameter in model._collect_params_with_prefix().items():  # as save_parameters calls them
        end = next((end for end in _NAMES if name.endswith(end)), "")
        named[name[: len(name) - len(end)] + _NAMES.get(end, "")] = parameter
    return named


def _named_layers(block: HybridBlock, name: str = "") -> Iterator[tuple[str, HybridBlock]]:
    """Blocks that have parameters of their own, with their names among the workload's."""
    if block._reg_params:
        yield name, block
    for child, within in block._children.items():
        yield from _named_layers(within, f"{name}.{child}" if name else child)


@contextmanager
def _count_products() -> Iterator[list[float]]:
    """The multiply-adds of each call of an operator that is a product, its way back included where it is recorded."""
    counts: list[float] = []

    def count(operator: Callable, multiply_adds: Callable, *arguments: Any, **named: Any) -> Any:
        result = operator(*arguments, **named)
        output = result[0] if isinstance(result, list) else result
        first, second = [array for array in (*arguments, *named.values()) if isinstance(array, NDArray)][:2]
        passes = 1 + _is_recorded(output) * (_is_recorded(first) + _is_recorded(second))
        counts.append(passes * multiply_adds(first.shape, second.shape, output.shape, named))
        return result

    with ExitStack() as stack:
        for name, multiply_adds in _PRODUCTS.items():
            counted = functools.partial(count, getattr(mx.nd, name), multiply_adds)
            for where in (mx.nd, mx.nd.op):  # an array's own methods call the latter
                stack.enter_context(_replace_operator(where, name, counted))
        yield counts


def _is_recorded(array: NDArray) -> bool:
    """Whether the way back comes by this array: MXNet hands out a graph of such, and of constants beside them."""
    try:
        computed = autograd.get_symbol(array).get_children() is not None
    except mx.MXNetError:
        return False
    return computed or array.grad is not None


def _of_layer(first: Sequence[int], weights: Sequence[int], output: Sequence[int], named: Mapping[str, Any]) -> float:
    """Each number of the output, of a convolution or a dense layer, is a sum over the weights of its channel."""
    return product(output) * product(weights[1:])


def _of_rnn(data: Sequence[int], weights: Sequence[int], output: Sequence[int], named: Mapping[str, Any]) -> float:
    """A step of a sequence takes each weight once for each sample, but no bias."""
    gates = {"lstm": 4, "gru": 3}.get(named["mode"], 1)
    biases = 2 * gates * (1 + named["bidirectional"]) * named["num_layers"] * named["state_size"]
    return data[0] * data[1] * (weights[0] - biases)


def _of_matrices(first: Sequence[int], second: Sequence[int], output: Sequence[int], named: Mapping[str, Any]) -> float:
    """(batch, n, k) and (batch, k, m) to (batch, n, m), in whichever order, with or without a batch."""
    batch = output[0] if len(output) == 3 else 1
    return math.sqrt(product(first) * product(second) * product(output) / batch)


_PRODUCTS = {
    "Convolution": _of_layer,
    "FullyConnected": _of_layer,
    "RNN": _of_rnn,
    "dot": _of_matrices,
    "batch_dot": _of_matrices,
}


def _bulk_size() -> int:
    """How many operations MXNet's engine takes at once; to read it is to set it."""
    size = mx.engine.set_bulk_size(0)
    mx.engine.set_bulk_size(size)
    return size


def _blocks(model: HybridBlock, kind: type) -> list[HybridBlock]:
    """A model's blocks of a kind, itself included."""
    blocks: list[HybridBlock] = []
    model.apply(blocks.append)
    return [block for block in blocks if isinstance(block, kind)]
