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
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from types import MappingProxyType, ModuleType
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon
from mxnet.gluon import HybridBlock, nn
from mxnet.ndarray import NDArray

from benchlib.errors import BenchlibError, no_such
from benchlib.frameworks import LOSS_SCALE, check_trained, check_weights
from benchlib.workloads import Values, Workload

TITLE = "MXNet"
PACKAGE = "mxnet"
DISTRIBUTIONS = ("mxnet", "mxnet-cu112", "mxnet-cu110", "mxnet-cu102", "mxnet-cu101")
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
VARIABLES = ("MXNET_", "DMLC_", "MKLDNN_")
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
        "source": "MXNet documentation, 'HybridBlock.hybridize'; docs/mxnet.md has its effect",
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


class Session:
    """One workload in MXNet, in this process: see ``benchlib.frameworks.Session`` for what each method promises."""

    def __init__(
        self, device: str, mode: str, precision: str, seed: int, knobs: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        if precision != "fp32":
            raise BenchlibError(no_such("precision of mxnet", precision, ("fp32",)))
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
        self._graph = mode == "graph"
        self._backend = knobs.get("subgraph_backend")
        self._counted = 0  # steps since running variances were corrected, and the last of their batches
        self._batch: tuple[NDArray, ...] = ()
        mx.random.seed(seed)  # for dropout only: weights and batches come from files

    def build(self, workload: Workload, module: ModuleType, values: Values, learning_rate: float | None) -> None:
        """Build model, loss and optimizer (or the operator) from ``module``, the workload's file for MXNet."""
        self._shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
        self._trains = workload.kind == "training"
        self._module, self._values, self._rate = module, values, learning_rate
        self._targets, self._training = workload.targets, not workload.evaluates
        self._model = module.build(values)
        self._model.initialize(ctx=self._context)
        parameters = _named_parameters(self._model)
        shapes = {name: parameter.shape for name, parameter in parameters.items()}
        check_weights(f"{workload.name} in mxnet", self._shapes, shapes)
        self._trained = {name: parameters[name] for name in self._shapes if parameters[name].grad_req != "null"}
        self._untrained = {name: parameters[name] for name in self._shapes if name not in self._trained}
        check_trained(f"{workload.name} in mxnet", workload.weights(values), self._trained)
        self._norms = _batch_norms(self._model)
        self._numbers_of: dict[tuple[tuple[int, ...], ...], list[int]] = {}
        compute = module.loss if self._trains else _forward
        if self._graph:
            self._network = _Network(self._model, compute)
            self._compile()
            self._model.hybridize(active=False)  # called by itself, it runs operation by operation
        else:
            self._network = lambda *batch: compute(self._model, batch)
        self._backward = self._trains or values["passes"] == "forward+backward"
        if self._trains:
            self._clip = values.get("clip")

    def load(self, weights: dict[str, np.ndarray], loss_scale: float = LOSS_SCALE) -> None:
        """Set the model's whole state, forget the optimizer's; a wrong name or shape is a BenchlibError."""
        check_weights("weights for mxnet", self._shapes, {name: array.shape for name, array in weights.items()})
        for name, parameter in (self._trained | self._untrained).items():
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
        """The model's state now, as float32 copies."""
        self._correct_variances()
        parameters = self._trained | self._untrained
        return {name: _numpy(parameters[name].data()) for name in self._shapes}

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
                return (_numpy(self._operator_output(batch)),)  # an operator's step is its output, and is measured
            with _set_training(training):
                outputs = self._model(*batch[: -self._targets])
            return tuple(map(_numpy, outputs if isinstance(outputs, tuple) else (outputs,)))

    def predictions(self, batch: tuple[NDArray, ...]) -> np.ndarray:
        """The predictions for a batch's inputs, in evaluation behaviour."""
        if not hasattr(self._module, "predict"):
            return self.outputs(batch, training=False)[0].argmax(axis=-1)
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
            gradients |= {name: parameter.grad() for name, parameter in self._trained.items()}
            copies = {name: _numpy(gradient) for name, gradient in gradients.items()}
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
            return [("Dropout", _numpy(given), _numpy(left)) for given, left in seen]

    def to_numpy(self, value: NDArray) -> np.ndarray:
        """The result of :meth:`step`, as a float32 copy; a loss without the dimension that MXNet has to give it."""
        array = _numpy(value)
        return array.reshape(()) if self._trains else array

    def settings(self) -> dict[str, str | int | float | bool]:
        """Threads and libraries in force, read back from MXNet, its linked libraries and the operating system.

        ``threads`` are all of the process: MXNet's engine has some that wait for work, and one that computes.
        """
        linked = mx.base._LIB  # a name is looked up in libgomp and OpenBLAS, too
        return {
            "threads": len(os.listdir("/proc/self/task")),
            "omp_threads": linked.omp_get_max_threads(),
            "openblas_threads": linked.openblas_get_num_threads(),
            "onednn": mx.runtime.Features().is_enabled("MKLDNN"),
            "device": str(self._context),
        }

    def device_memory(self) -> dict[str, float]:
        """Empty: MXNet reports the free memory of a GPU, and not the memory that it has taken."""
        return {}

    @staticmethod
    def versions() -> dict[str, str]:
        """MXNet's version, and that of the OpenBLAS that it brings; its oneDNN is linked in and does not tell."""
        config = mx.base._LIB.openblas_get_config
        config.restype = ctypes.c_char_p
        return {"mxnet": mx.__version__, "openblas": config().decode().split()[1]}

    def _compile(self) -> None:
        """Compile the network: its next call is traced and compiled again."""
        self._network.hybridize(backend=self._backend, static_alloc=True, static_shape=True)

    def _array(self, array: np.ndarray) -> NDArray:
        return mx.nd.array(array, ctx=self._context, dtype=array.dtype)

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
            gluon.utils.clip_global_norm(gradients, self._clip, check_isfinite=False)  # which would wait for them
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
        for norm, number in zip(self._norms, self._numbers(), strict=True):
            own = norm.running_var.data().asnumpy().astype(float)
            kept = self._settled[norm] * norm._kwargs["momentum"] ** self._counted
            norm.running_var.set_data(self._array((kept + (own - kept) * number / (number - 1)).astype(np.float32)))
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

    def __init__(self, model: HybridBlock, compute: Callable) -> None:
        super().__init__()
        self.model = model
        self._compute = compute

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

    mx.nd.Dropout = watched
    try:
        yield seen
    finally:
        mx.nd.Dropout = drop


def _named_parameters(model: HybridBlock) -> dict[str, gluon.Parameter]:
    """A model's parameters by the workload's names."""
    named = {}
    for name, parameter in model._collect_params_with_prefix().items():  # as save_parameters calls them
        end = next((end for end in _NAMES if name.endswith(end)), "")
        named[name.removesuffix(end) + _NAMES.get(end, "")] = parameter
    return named


def _batch_norms(model: HybridBlock) -> list[HybridBlock]:
    norms: list[HybridBlock] = []
    model.apply(lambda block: norms.append(block) if isinstance(block, nn.BatchNorm) else None)
    return norms


def _numpy(value: NDArray) -> np.ndarray:
    return value.asnumpy().astype(np.float32, copy=False)
