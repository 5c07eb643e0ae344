"""MindSpore: builds a workload and runs its steps. Run on the CPU only so far.

Eager mode is PyNative. Graph mode is GRAPH_MODE, with ``mindspore.jit`` of the whole step: forward, loss, gradients and
update. MindSpore prints on standard output, and leaves ``rank_0/`` in the working directory when a compilation fails.

Mixed precision is ``auto_mixed_precision`` of the model at the level that the precision names. With fp16 a
``DynamicLossScaler`` with the constants of PyTorch's scales the loss.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import MappingProxyType, ModuleType

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, communication, nn, ops
from mindspore._c_expression import RuntimeConf
from mindspore.common.api import _pynative_executor

from benchlib.errors import BenchlibError, no_such
from benchlib.frameworks import GRADIENT_SCALE, LOSS_SCALE, check_trained, check_weights
from benchlib.workloads import Values, Workload

TITLE = "MindSpore"
PACKAGE = "mindspore"
DEVICES = ("cpu", "cuda", "npu")
NEEDS = (
    {
        "device": "cuda",
        "linked": "lib/plugin/libmindspore_gpu.so*",
        "otherwise": (
            "mindspore's plugin for GPUs lacks {lacking}: put CUDA 11 and cuDNN 8 on LD_LIBRARY_PATH; else use 'cpu'"
        ),
    },
)
MODES = ("graph", "eager")
PRECISIONS = ("fp32", "bf16-O1", "bf16-O2", "bf16-O3", "fp16-O1", "fp16-O2", "fp16-O3")
LAUNCHER = (
    "-m",
    "mindspore.parallel.cluster.run",
    "--worker_num={world_size}",
    "--local_worker_num={world_size}",
    "--master_port={port}",
    "--join=True",
    "--log_dir={scratch}",
)
VARIABLES = ("MS_", "MINDSPORE")
KNOBS = (
    {
        "name": "ONEDNN_MAX_CPU_ISA",
        "value": "AVX2",
        "devices": ("cpu",),
        "reason": (
            "on AVX-512 machines MindSpore 2.9 and 2.10 get oneDNN's reference convolution; this selects gemm:jit. "
            "Set where there are convolutions only: it slows matrix products down"
        ),
        "source": "ONEDNN_VERBOSE=1 output; oneDNN manual, 'CPU dispatcher control'",
        "convolutions_only": True,
    },
    {
        "name": "launch_blocking",
        "value": "on",
        "devices": ("cpu",),
        "modes": ("eager",),
        "reason": (
            "each operator is run before the next is taken: as installed, threads that hand operators on to each other "
            "wait in loops, which on few cores takes the cores from the work itself. Measured on 2 cores only"
        ),
        "source": "MindSpore API, 'mindspore.runtime.launch_blocking'; docs/training.md has its effect on each model",
        "by_session": True,
    },
)

_MIB = 2**20
_MIXED = {"bf16": ms.bfloat16, "fp16": ms.float16}
_TARGETS = {"cpu": "CPU", "cuda": "GPU", "npu": "Ascend"}
_NAMES = {  # by type of cell: MindSpore's name to the workload's, where they differ
    nn.BatchNorm2d: {
        "gamma": "weight",
        "beta": "bias",
        "moving_mean": "running_mean",
        "moving_variance": "running_var",
    },
    nn.Embedding: {"embedding_table": "weight"},
    nn.LayerNorm: {"gamma": "weight", "beta": "bias"},
}
_ISA = {  # oneDNN's numbers, see dnnl_cpu_isa_t in its manual
    0x1: "SSE41",
    0x3: "AVX",
    0x7: "AVX2",
    0xF: "AVX2_VNNI",
    0x27: "AVX512_CORE",
    0x67: "AVX512_CORE_VNNI",
    0xE7: "AVX512_CORE_BF16",
    0x1EF: "AVX512_CORE_FP16",
    0xFEF: "AVX512_CORE_AMX",
}


class Session:
    """One workload in MindSpore, in this process: see ``benchlib.frameworks.Session`` for what each method promises."""

    def __init__(
        self, device: str, mode: str, precision: str, seed: int, knobs: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        if precision not in PRECISIONS:
            raise BenchlibError(no_such("precision of mindspore", precision, PRECISIONS))
        if device not in _TARGETS:
            raise BenchlibError(no_such("device of mindspore", device, _TARGETS))
        for name, value in knobs.items():
            if (name, value) != ("launch_blocking", "on"):
                raise BenchlibError(no_such("knob of mindspore", f"{name}={value}", ["launch_blocking=on"]))
        target = _TARGETS[device]
        if target != "CPU" and not ms.hal.is_available(target):
            raise BenchlibError(
                f"device {device!r}: mindspore {ms.__version__} finds no {target} here; "
                f"install the build of mindspore for {target} and its driver, or choose device 'cpu'"
            )
        self._target = target
        self._graph = mode == "graph"
        self._precision = precision
        ms.set_device(target)
        if "launch_blocking" in knobs:
            ms.runtime.launch_blocking()
        ms.set_context(mode=ms.GRAPH_MODE if self._graph else ms.PYNATIVE_MODE)
        # For dropout only: weights and batches come from files. On the CPU its masks differ between equal runs all the
        # same, from about the sixth step on.
        ms.set_seed(seed)
        self._world_size = 1

    @staticmethod
    def schedule() -> None:
        """Be msrun's scheduler, which brings the processes together, until they have ended."""
        communication.init()

    def join(self, communicate: bool) -> tuple[int, int]:
        """Become one of the processes that msrun has started."""
        communication.init()
        self._world_size = communication.get_group_size() if communicate else 1
        return communication.get_rank(), communication.get_group_size()

    def agree(self, value: float) -> float:
        """The mean of the processes' values."""
        return float(ops.AllReduce()(Tensor([value], ms.float32)).asnumpy()[0]) / communication.get_group_size()

    def build(self, workload: Workload, module: ModuleType, values: Values, learning_rate: float | None) -> None:
        """Build model, loss and optimizer (or the operator) from ``module``, the workload's file for MindSpore."""
        self._shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
        self._trains = workload.kind == "training"
        self._module, self._values, self._targets = module, values, workload.targets
        self._built = built = module.build(values)
        self._training = not workload.evaluates
        found = _named_parameters(built)  # before mixed precision puts cells between
        self._model = model = self._cast_model(built)
        model.set_train(self._training)
        check_weights(
            f"{workload.name} in mindspore", self._shapes, {name: weight.shape for name, weight in found.items()}
        )
        self._trained = {name: found[name] for name in self._shapes if found[name].requires_grad}
        self._untrained = {name: found[name] for name in self._shapes if not found[name].requires_grad}
        check_trained(f"{workload.name} in mindspore", workload.weights(values), self._trained)
        self._optimizer_state = []

        # Each function for jit below has a ``def`` of its own, because MindSpore reads their source.
        if self._trains:
            self._optimizer = optimizer = module.optimizer(built, values, learning_rate)
            rates = [group["lr"] for group in getattr(optimizer, "param_groups", [])]  # get_parameters() has them not
            scaler = self._scaler = ms.amp.DynamicLossScaler(LOSS_SCALE, 2, 2000) if "fp16" in self._precision else None
            scales = [scaler.scale_value, scaler.counter] if scaler else []
            self._optimizer_state = _initial({*optimizer.get_parameters(), *rates, *scales} - set(found.values()))
            clip = values.get("clip")

            def loss(*batch):
                value = module.loss(model, batch)
                return value if scaler is None else scaler.scale(value)

            trained = ms.ParameterTuple(self._trained.values())
            reduced, reduced_trained = self._reducer(optimizer.parameters), self._reducer(trained)
            loss_and_gradients = ms.value_and_grad(loss, None, optimizer.parameters)
            scale = 1.0 if scaler is None else GRADIENT_SCALE

            def scaled_loss(*batch):
                return module.loss(model, batch) * scale

            of_trained = ms.value_and_grad(scaled_loss, None, trained)

            def updating(optimizer):
                def update(gradients):
                    if clip is not None:
                        gradients = ops.clip_by_global_norm(gradients, clip)
                    optimizer(gradients)

                return update

            update = updating(optimizer)

            def step(*batch):
                value, gradients = loss_and_gradients(*batch)
                gradients = reduced(gradients)
                if scaler is None:
                    update(gradients)
                    return value
                value, gradients = scaler.unscale(value), scaler.unscale(gradients)
                finite = ms.amp.all_finite(gradients)
                if finite:
                    update(gradients)
                scaler.adjust(finite)
                return value

            def gradients(*batch):
                return reduced_trained(of_trained(*batch)[1])

        else:
            output_and_gradients = ms.value_and_grad(
                model, 0, ms.ParameterTuple(self._trained.values()), sens_param=True
            )

            def gradients(inputs, gradient):
                return output_and_gradients(inputs, gradient)

            def forward(inputs, gradient):
                return model(inputs), ()

            # A step returns the gradients, too: the graph would leave out unused results.
            step = gradients if values["passes"] == "forward+backward" else forward

        if self._trains:
            self._updating, self._rate = updating, learning_rate
            self._all = self._part = self._optimizer_step(optimizer)
        self._step = ms.jit(step) if self._graph else step
        self._gradients = ms.jit(gradients) if self._graph else gradients
        if not self._trains and values["passes"] == "forward+backward":
            self._gradients = self._step  # the measured step is the compared one

    def load(self, weights: dict[str, np.ndarray], loss_scale: float = LOSS_SCALE) -> None:
        """Set the model's whole state, forget the optimizer's; a wrong name or shape is a BenchlibError."""
        check_weights("weights for mindspore", self._shapes, {name: array.shape for name, array in weights.items()})
        # copy_ and not set_data, which cuts a parameter off from earlier compiled code, without a word. So it is
        # in eager mode too, because MindSpore's optimizers are compiled.
        for name, parameter in (self._trained | self._untrained).items():
            parameter.copy_(Tensor(weights[name]))
        for parameter, value in self._optimizer_state:
            parameter.copy_(Tensor(value))
        if self._trains and self._scaler:
            self._scaler.scale_value.copy_(Tensor(loss_scale, ms.float32))
        schedule = getattr(self._module, "schedule", None)
        self._schedule = schedule(self._optimizer, self._values) if schedule else None
        if self._trains:
            self._part = self._all

    def weights(self) -> dict[str, np.ndarray]:
        """The model's state now, as float32 copies."""
        self.synchronize()
        parameters = self._trained | self._untrained
        return {name: self.to_numpy(parameters[name]) for name in self._shapes}

    def put(self, arrays: tuple[np.ndarray, ...]) -> tuple[Tensor, ...]:
        """A batch on the device: the sample's arrays, whole numbers as int32; or (input, gradient of the output)."""
        return tuple(Tensor(array) for array in arrays)

    def step(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Queue one step; return its loss (an operator: its output)."""
        if not self._trains:
            return self._step(*batch)[0]
        loss = self._step(*batch)
        if self._schedule:
            self._schedule.step()
        return loss

    def synchronize(self) -> None:
        """Wait until all queued work is done.

        Reading a loss is no such wait: a compiled step hands its loss out before gradients and update are done.
        """
        # mindspore.runtime.synchronize(), the public way to this wait, refuses the CPU: its first call returns at once.
        _pynative_executor.sync()

    def mark(self) -> ms.runtime.Event | None:
        """An event in the device's queue; None on the CPU. Never run on Ascend or a GPU."""
        if self._target == "CPU":
            return None
        event = ms.runtime.Event(enable_timing=True)
        event.record()
        return event

    def elapsed_s(self, start: ms.runtime.Event, end: ms.runtime.Event) -> float:
        """Seconds between two marks, by the device's clock."""
        return start.elapsed_time(end) / 1000

    def outputs(self, batch: tuple[Tensor, ...], training: bool) -> tuple[np.ndarray, ...]:
        """The model's outputs for a batch's inputs; weights and running statistics stay as they were."""
        if not self._trains and training:
            with self._restore_untrained():
                return (self.to_numpy(self.step(batch)),)  # an operator's step is its output, and is measured
        with self._restore_untrained(), self._set_training(training):
            found = self._model(*batch[: -self._targets])
            return tuple(map(self.to_numpy, found if isinstance(found, tuple) else (found,)))

    def predictions(self, batch: tuple[Tensor, ...]) -> np.ndarray:
        """The predictions for a batch's inputs, in evaluation behaviour."""
        if not hasattr(self._module, "predict"):
            return self.outputs(batch, training=False)[0].argmax(axis=-1)
        self._built.set_train(False)  # decoding asks the model's parts, and has no place for casts at its ends
        found = self._module.predict(self._built, batch[: -self._targets]).asnumpy()
        self._built.set_train(self._training)
        return found

    def gradients(self, batch: tuple[Tensor, ...]) -> dict[str, np.ndarray]:
        """Gradients of the loss by name (an operator: also ``input``); weights and statistics stay as they were."""
        with self._restore_untrained():
            names, gradients = [*self._trained], self._gradients(*batch)
            scale = GRADIENT_SCALE if self._trains and self._scaler else 1.0
            if not self._trains:
                _, (of_input, of_weights) = gradients
                names, gradients = ["input", *names], (of_input, *of_weights)
            return {name: self.to_numpy(gradient) / scale for name, gradient in zip(names, gradients, strict=True)}

    def update(self, gradients: Sequence[Mapping[str, np.ndarray]], steps: int) -> None:
        """Steps of the optimizer with gradients that are given, in turn."""
        if gradients[0].keys() != set(self._part[1]):
            self._take_part(gradients[0])
        update, order = self._part
        # mutable, or these would be constants of the code compiled for them.
        ready = [ms.mutable(tuple(Tensor(one[name]) for name in order)) for one in gradients]
        for number in range(steps):
            update(ready[number % len(ready)])
            if self._schedule:
                self._schedule.step()

    def _take_part(self, names: Iterable[str]) -> None:
        """Have an optimizer of some of the weights alone: one of all asks for all gradients."""
        for name, parameter in self._trained.items():
            parameter.requires_grad = name in names
        optimizer = self._module.optimizer(self._built, self._values, self._rate)
        for parameter in self._trained.values():
            parameter.requires_grad = True
        self._part = self._optimizer_step(optimizer)
        schedule = getattr(self._module, "schedule", None)
        self._schedule = schedule(optimizer, self._values) if schedule else None

    def _optimizer_step(self, optimizer: nn.Optimizer) -> tuple[Callable, list[str]]:
        """A function that takes a step with given gradients, and the names of their weights, in order."""
        update = self._updating(optimizer)
        order = [name for each in optimizer.parameters for name, one in self._trained.items() if one is each]
        return ms.jit(update) if self._graph else update, order

    def dropouts(self, batch: tuple[Tensor, ...], training: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """The input and the output of each dropout of a forward pass and, in training, of the loss. The model's own
        code runs in eager mode for this, because nothing can look into a graph.
        """
        ms.set_context(mode=ms.PYNATIVE_MODE)
        try:
            behaving = nullcontext() if training else self._set_training(training=False)
            with self._restore_untrained(), behaving, _record_dropouts() as seen:
                if training:
                    self._module.loss(self._model, batch)
                else:
                    self._model(*batch[: -self._targets])
                self.synchronize()
        finally:
            ms.set_context(mode=ms.GRAPH_MODE if self._graph else ms.PYNATIVE_MODE)
        return [(name, self.to_numpy(given), self.to_numpy(left)) for name, given, left in seen]

    def to_numpy(self, value: Tensor) -> np.ndarray:
        """A tensor, such as the result of :meth:`step`, as a float32 copy."""
        return value.asnumpy().astype(np.float32, copy=True)

    def settings(self) -> dict[str, str | int | float | bool]:
        """Threads and instruction set in force, read back from MindSpore, its oneDNN and the operating system.

        MindSpore does not heed OMP_NUM_THREADS. Its pool has ``actor_threads`` and ``kernel_threads`` (none before the
        first step), and the thread that launches an operator spins beside them until they are done.
        """
        pool = Counter(name.rstrip("0123456789") for name in _thread_names())
        settings = {
            "device_target": ms.get_context("device_target"),
            "runtime_num_threads": ms.get_context("runtime_num_threads"),
            "actor_threads": pool["ActorThread_"],
            "kernel_threads": pool["KernelThread_"],
            "deterministic": ms.get_context("deterministic"),
            "launch_blocking": RuntimeConf.get_instance().is_launch_blocking(),
        }
        if self._precision != "fp32":
            settings["mixed_precision"] = self._precision
            settings["loss_scale"] = float(self._scaler.scale_value.asnumpy()) if self._trains and self._scaler else 1.0
        if onednn := _onednn():
            isa = onednn.dnnl_get_effective_cpu_isa()
            settings["onednn_isa"] = _ISA.get(isa, hex(isa))
        return settings

    def device_memory(self) -> dict[str, float]:
        """Device memory in MiB as MindSpore counts it; empty on the CPU, where it counts none."""
        if self._target == "CPU":
            return {}
        return {
            "allocated": ms.runtime.memory_allocated() / _MIB,
            "peak": ms.runtime.max_memory_allocated() / _MIB,
        }

    @staticmethod
    def versions() -> dict[str, str]:
        """MindSpore's version and that of the oneDNN that it comes with."""
        versions = {"mindspore": ms.__version__}
        if onednn := _onednn():
            onednn.dnnl_version.restype = ctypes.POINTER(ctypes.c_int * 3)  # major, minor, patch
            versions["onednn"] = ".".join(map(str, onednn.dnnl_version().contents))
        return versions

    def _cast_model(self, model: nn.Cell) -> nn.Cell:
        """The model, with the casts that the precision's level asks for; its parameters stay fp32."""
        if self._precision == "fp32":
            return model
        name, _, level = self._precision.partition("-")
        mixed = ms.amp.auto_mixed_precision(model, level, _MIXED[name])
        # O2 and O3 put a cell around the model, which casts its outputs. A loss may ask the model for its parts.
        if mixed is not model:
            own = {name: value for name, value in vars(model).items() if name not in vars(mixed)}
            for name, part in {**own, **model.name_cells()}.items():
                setattr(mixed, name, part)
        return mixed

    def _reducer(self, parameters: Iterable[Parameter]) -> Callable:
        """A function that averages gradients over the processes of the group."""
        if self._world_size == 1:
            return _same
        return nn.DistributedGradReducer(parameters, mean=True, degree=self._world_size)

    @contextmanager
    def _set_training(self, training: bool) -> Iterator[None]:
        self._model.set_train(training)
        try:
            yield
        finally:
            self._model.set_train(self._training)

    @contextmanager
    def _restore_untrained(self) -> Iterator[None]:
        self.synchronize()
        before = {name: self.to_numpy(parameter) for name, parameter in self._untrained.items()}
        yield
        for name, parameter in self._untrained.items():
            parameter.copy_(Tensor(before[name]))


@contextmanager
def _record_dropouts() -> Iterator[list[tuple[str, Tensor, Tensor]]]:
    """Record each call of an operator that drops, a cell's or a model's own: its name, its input and its output."""
    seen: list[tuple[str, Tensor, Tensor]] = []
    call = ops.Primitive.__call__

    def watched(operator, *arguments):
        result = call(operator, *arguments)
        if operator.name.startswith("Dropout"):
            seen.append((operator.name, arguments[0], result[0] if isinstance(result, tuple) else result))
        return result

    ops.Primitive.__call__ = watched
    try:
        yield seen
    finally:
        ops.Primitive.__call__ = call


def _same(gradients):
    return gradients


def _named_parameters(model: nn.Cell) -> dict[str, Parameter]:
    """A model's parameters by the workload's names."""
    named = {}
    for path, cell in model.cells_and_names():
        names = _NAMES.get(type(cell), {})
        for full_name, parameter in cell.parameters_and_names(expand=False):
            name = full_name.rpartition(".")[2]
            named[f"{path}.{names.get(name, name)}".lstrip(".")] = parameter
    return named


def _initial(parameters: Iterable[Parameter]) -> list[tuple[Parameter, np.ndarray]]:
    """Each parameter and its present value; one that is the same everywhere, such as zeros, takes no memory."""
    found = []
    for parameter in parameters:
        value = parameter.asnumpy()
        constant = value.size > 1 and (value == value.flat[0]).all()
        found.append((parameter, np.broadcast_to(value.flat[0], value.shape) if constant else value.copy()))
    return found


def _onednn() -> ctypes.CDLL | None:
    """The oneDNN library that MindSpore computes with on the CPU; None where it comes without one."""
    library = next((Path(ms.__file__).parent / "lib").glob("libdnnl.so.*"), None)
    return ctypes.CDLL(str(library)) if library else None


def _thread_names() -> list[str]:
    return [path.read_text(encoding="utf-8").strip() for path in Path("/proc/self/task").glob("*/comm")]
