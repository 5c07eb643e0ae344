"""MindSpore: builds a workload and runs its steps. Run on the CPU only so far, in 2.10 and 2.0.

Eager mode is PyNative. Graph mode is GRAPH_MODE, where the whole step is a cell: forward, loss, gradients and update.
MindSpore prints on standard output, and leaves ``rank_0/`` in the working directory when a compilation fails.

Mixed precision is ``auto_mixed_precision`` of the model at the level that the precision names. With fp16 a
``DynamicLossScaler`` with the constants of PyTorch's scales the loss.
"""

from __future__ import annotations

import ctypes
import functools
import inspect
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import mindspore as ms
import numpy as np
from mindspore import Parameter, Tensor, communication, nn, ops
from mindspore.common import api
from mindspore.common.api import _pynative_executor
from mindspore.ops.composite import _Grad
from mindspore.ops.function import nn_func
from mindspore.train import anf_ir_pb2

from benchlib.errors import BenchlibError, NotInThisVersion, no_such
from benchlib.frameworks import GRADIENT_SCALE, LOSS_SCALE, Draw, NoMasks, check_trained, check_weights, product
from benchlib.frameworks._mindspore_old import Variances
from benchlib.workloads import Values, Workload

try:
    from mindspore._c_expression import RuntimeConf
except ImportError:  # before 2.5
    RuntimeConf = None

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
CHANGING = ("actor_threads", "kernel_threads", "loss_scale")
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
        "source": "MindSpore API, 'mindspore.runtime.launch_blocking'; docs/knobs.md has its effect on each model",
        "by_session": True,
    },
)

_MIB = 2**20
_MIXED = {"bf16": getattr(ms, "bfloat16", None), "fp16": ms.float16}  # bf16 came with 2.2
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
_PRODUCT = re.compile("MatMul|Dense|Einsum|Conv|Attention|RNN|LSTM|GRU|^(Addm|Baddbm|B?[Mm])m")
_DEBUGGING = ("pynative_synchronize", "check_bprop", "debug_level", "save_graphs", "enable_profiling", "jit_level")


class Session:
    """One workload in MindSpore, in this process: see ``benchlib.frameworks.Session`` for what each method promises."""

    def __init__(
        self, device: str, mode: str, precision: str, seed: int, knobs: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        if precision not in PRECISIONS:
            raise BenchlibError(no_such("precision of mindspore", precision, PRECISIONS))
        if device not in _TARGETS:
            raise BenchlibError(no_such("device of mindspore", device, _TARGETS))
        own = {knob["name"]: knob["value"] for knob in KNOBS if knob.get("by_session")}
        for name, value in knobs.items():
            if own.get(name) != value:
                known = [f"{one}={own[one]}" for one in own]
                raise BenchlibError(no_such("knob of mindspore", f"{name}={value}", known))
        target = _TARGETS[device]
        if target != "CPU" and not hasattr(ms, "hal"):  # came with 2.3
            raise NotInThisVersion(
                f"device {device!r}: not in this version: mindspore {ms.__version__} has no mindspore.hal, whose "
                "events and memory benchlib reads"
            )
        if _MIXED.get(precision[:4], ms.float32) is None:
            raise NotInThisVersion(
                f"precision {precision!r}: not in this version: mindspore {ms.__version__} has no mindspore.bfloat16"
            )
        if target != "CPU" and not ms.hal.is_available(target):
            raise BenchlibError(
                f"device {device!r}: mindspore {ms.__version__} finds no {target} here; "
                f"install the build of mindspore for {target} and its driver, or choose device 'cpu'"
            )
        self._target = target
        self._graph = mode == "graph"
        self._precision = precision
        if RuntimeConf:
            ms.set_device(target)
        else:
            ms.set_context(device_target=target)
        if "launch_blocking" in knobs:
            if RuntimeConf:
                ms.runtime.launch_blocking()
            else:
                ms.set_context(pynative_synchronize=True)
        ms.set_context(mode=ms.GRAPH_MODE if self._graph else ms.PYNATIVE_MODE)
        # For dropout only: weights and batches come from files. On the CPU its masks differ between equal runs all the
        # same, from about the sixth step on.
        ms.set_seed(seed)
        self._world_size = 1
        self._scaler = None
        self._compiled_before: set[str] = set()
        self._compiled: set[str] = set()
        self._own_code: tuple[str, ...] = ()
        if RuntimeConf is None:
            self.step = self._counted_step

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
        self._layers = {
            id(cell): path for path, cell in built.cells_and_names() if path and cell.parameters_dict(recurse=False)
        }
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
        self._variances = None
        norms = [cell for _, cell in built.cells_and_names() if isinstance(cell, nn.BatchNorm2d)]
        if norms and self._training and RuntimeConf is None:
            self._variances = Variances(norms, functools.partial(self._numbers_of, norms))

        # Each function below has a ``def`` of its own, because MindSpore reads their source.
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
                    return optimizer(gradients)  # 2.0 leaves out a function that returns nothing, without a word

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
            output_and_gradients = _output_and_gradients(model, ms.ParameterTuple(self._trained.values()))

            def gradients(inputs, gradient):
                return output_and_gradients(inputs, gradient)

            def forward(inputs, gradient):
                return model(inputs), ()

            # A step returns the gradients, too: the graph would leave out unused results.
            step = gradients if values["passes"] == "forward+backward" else forward

        if self._trains:
            self._updating, self._rate = updating, learning_rate
            self._all = self._part = self._optimizer_step(optimizer)

        def outputs(*inputs):
            return model(*inputs)

        self._own = {"_step": step, "_gradients": gradients, "_forward": outputs}
        self._with_masks: dict[tuple, _WithMasks | None] = {}
        self._step = _AsCell(step) if self._graph else step
        self._gradients = _AsCell(gradients) if self._graph else gradients
        self._forward = model
        self._compiled_before = set(api.ms_compile_cache)
        self._compiled = self._step.compile_cache if self._graph else set()
        self._own_code = (f"{module.__name__}.",)
        if not self._trains and values["passes"] == "forward+backward":
            self._gradients = self._step  # the measured step is the compared one

    def load(self, weights: dict[str, np.ndarray], loss_scale: float = LOSS_SCALE) -> None:
        """Set the model's whole state, forget the optimizer's; a wrong name or shape is a BenchlibError."""
        check_weights("weights for mindspore", self._shapes, {name: array.shape for name, array in weights.items()})
        # In place and not by set_data, which cuts a parameter off from earlier compiled code, without a word. So it is
        # in eager mode too, because MindSpore's optimizers are compiled.
        for name, parameter in {**self._trained, **self._untrained}.items():
            _write(parameter, Tensor(weights[name]))
        for parameter, value in self._optimizer_state:
            _write(parameter, Tensor(value))
        if self._trains and self._scaler:
            _write(self._scaler.scale_value, Tensor(loss_scale, ms.float32))
        schedule = getattr(self._module, "schedule", None)
        self._schedule = schedule(self._optimizer, self._values) if schedule else None
        if self._trains:
            self._part = self._all
        if self._variances:
            self._variances.keep()

    def weights(self) -> dict[str, np.ndarray]:
        """The model's state now, as float32 copies."""
        self.synchronize()
        if self._variances:
            self._variances.correct()
        parameters = {**self._trained, **self._untrained}
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

    def _counted_step(self, batch: tuple[Tensor, ...]) -> Tensor:
        """The ``step`` of MindSpore 2.0: running variances are to be corrected."""
        if self._variances:
            self._variances.count(batch)
        return Session.step(self, batch)

    def synchronize(self) -> None:
        """Wait until all queued work is done.

        Reading a loss is no such wait in eager mode: an update is queued behind it. On the CPU a graph's call waits.
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
            forward = self._forward if training else self._model
            found = forward(*batch[: -self._targets])
            return tuple(map(self.to_numpy, found if isinstance(found, tuple) else (found,)))

    def predictions(self, batch: tuple[Tensor, ...]) -> np.ndarray:
        """The result of the file's ``predict`` for a batch's inputs, in evaluation behaviour."""
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
            return {name: self.to_numpy(gradient) / scale for name, gradient in zip(names, gradients)}

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
        return _AsCell(update) if self._graph else update, order

    def dropouts(self, batch: tuple[Tensor, ...], training: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """The input and the output of each dropout of a forward pass and, in training, of the loss."""
        seen: list[tuple[str, Tensor, Tensor]] = []

        def watched(call, operator, *arguments):
            result = call(operator, *arguments)
            seen.append((operator.name, arguments[0], result[0] if isinstance(result, tuple) else result))
            return result

        behaving = nullcontext() if training else self._set_training(training=False)
        if training and self._graph and RuntimeConf is None:
            self._run_eagerly(self._loss, *batch)  # in 2.0 the first two passes after a graph drop the same
        with behaving, _dropouts_through(watched):
            if training:
                self._run_eagerly(self._loss, *batch)
            else:
                self._run_eagerly(self._model, *batch[: -self._targets])
        return [(name, self.to_numpy(given), self.to_numpy(left)) for name, given, left in seen]

    @contextmanager
    def given_masks(self, draw: Draw) -> Iterator[None]:
        """Within it, dropouts take the masks that are drawn. In graph mode these are inputs of functions that are
        compiled beside those in use.
        """
        usual = {name: getattr(self, name) for name in self._own}
        run = self._run_compiled if self._graph else self._run_masked
        for name, function in usual.items():
            setattr(self, name, functools.partial(run, draw, name, function))
        try:
            yield
        finally:
            for name, function in usual.items():
                setattr(self, name, function)

    def _run_masked(self, draw: Draw, _: str, function: Callable, *arguments: Tensor) -> Any:
        with _dropouts_through(_masking(draw)):
            return function(*arguments)

    def _run_compiled(self, draw: Draw, name: str, function: Callable, *arguments: Tensor) -> Any:
        key = (name, *(tensor.shape for tensor in arguments))
        if key not in self._with_masks:
            places = self._places(self._model if name == "_forward" else self._loss, arguments)
            self._with_masks[key] = _WithMasks(self._own[name], places) if places else None
        with_masks = self._with_masks[key]
        return with_masks(draw, *arguments) if with_masks else function(*arguments)

    def _places(self, function: Callable, arguments: tuple[Tensor, ...]) -> list[tuple[tuple[int, ...], float]]:
        """The shape and the probability of each dropout that a function goes through."""
        found = []

        def watched(call, operator, x, *rest):
            p = _probability(operator)
            if p:
                found.append((x.shape, p))
            return call(operator, x, *rest)

        with _dropouts_through(watched):
            self._run_eagerly(function, *arguments)
        return found

    def _loss(self, *batch: Tensor) -> Tensor:
        """The loss of a batch; an operator's output."""
        return self._module.loss(self._model, batch) if self._trains else self._model(*batch[: -self._targets])

    def _run_eagerly(self, function: Callable, *arguments: Tensor) -> Any:
        """The result of a model's own code in eager mode, because nothing can look into a graph; weights and running
        statistics stay as they were.
        """
        ms.set_context(mode=ms.PYNATIVE_MODE)
        try:
            with self._restore_untrained():
                result = function(*arguments)
                self.synchronize()
                return result
        finally:
            ms.set_context(mode=ms.GRAPH_MODE if self._graph else ms.PYNATIVE_MODE)

    def layers(self, batch: tuple[Tensor, ...]) -> list[tuple[str, np.ndarray]]:
        """The input and the output of each layer with weights, then the loss."""
        seen: list[tuple[str, Tensor]] = []
        call = nn.Cell.__call__

        def watched(cell, *arguments, **named):
            name = self._layers.get(id(cell))
            if name:
                seen.append((f"input of {name}", arguments[0]))
            result = call(cell, *arguments, **named)
            if name:
                seen.append((f"output of {name}", result[0] if isinstance(result, tuple) else result))
            return result

        with _attributes((nn.Cell, "__call__", watched)):
            loss = self._run_eagerly(self._loss, *batch)
        if self._trains:
            seen.append(("loss", loss))
        return [(name, self.to_numpy(value)) for name, value in seen]

    def _numbers_of(self, norms: Sequence[nn.BatchNorm2d], batch: tuple[Tensor, ...]) -> list[int]:
        """The number of values of a channel in a batch that each batch normalisation is given."""
        seen: dict[int, int] = {}
        call = nn.Cell.__call__

        def watched(cell, *arguments, **named):
            if isinstance(cell, nn.BatchNorm2d):
                seen[id(cell)] = arguments[0].size // arguments[0].shape[1]
            return call(cell, *arguments, **named)

        with self._set_training(training=False), _attributes((nn.Cell, "__call__", watched)):
            self._run_eagerly(self._model, *batch[: -self._targets])
        return [seen[id(norm)] for norm in norms]

    def multiply_adds(self, batch: tuple[Tensor, ...]) -> float | None:
        """Those of the graph that a step is compiled to; None in eager mode, where no product on the way back shows."""
        if not self._graph:
            return None
        self._step.compile(*batch)
        model = anf_ir_pb2.ModelProto.FromString(self._step.get_func_graph_proto())
        branches = sum(node.op_type == "Partial" for node in model.graph.node)  # what is in them does not show
        if branches > (2 if self._scaler else 0):  # those of the scaler, with or without an update, have no products
            return None
        return _multiply_adds(model.graph)

    def to_numpy(self, value: Tensor) -> np.ndarray:
        """A tensor, such as the result of :meth:`step`, as a float32 copy."""
        return value.asnumpy().astype(np.float32, copy=True)

    def settings(self) -> dict[str, str | int | float | bool]:
        """Threads and instruction set in force, read back from MindSpore, its oneDNN and the operating system.

        MindSpore does not heed OMP_NUM_THREADS. Its pool has ``actor_threads`` and ``kernel_threads`` (none before the
        first step), and the thread that launches an operator spins beside them until they are done.
        """
        tasks = Path("/proc/self/task").iterdir()
        pool = Counter((task / "comm").read_text(encoding="utf-8").strip().rstrip("0123456789") for task in tasks)
        settings = {
            "device_target": ms.get_context("device_target"),
            "runtime_num_threads": ms.get_context("runtime_num_threads"),
            "actor_threads": pool["ActorThread_"],
            "kernel_threads": pool["KernelThread_"],
            "deterministic": ms.get_context("deterministic"),
            "launch_blocking": (
                RuntimeConf.get_instance().is_launch_blocking()
                if RuntimeConf
                else ms.get_context("pynative_synchronize")
            ),
            "graph_mode": ms.get_context("mode") == ms.GRAPH_MODE,
            **_of_context(_DEBUGGING),
            "compilations": self._compilations(),
        }
        if self._precision != "fp32":
            settings["mixed_precision"] = self._precision
            settings["loss_scale"] = float(self._scaler.scale_value.asnumpy()) if self._scaler else 1.0
        onednn = _onednn()
        if onednn:
            isa = onednn.dnnl_get_effective_cpu_isa()
            settings["onednn_isa"] = _ISA.get(isa, hex(isa))
        return settings

    def _compilations(self) -> int:
        """How often the step was compiled, and functions of the model's own file."""
        found = api.ms_compile_cache - self._compiled_before
        return len(self._compiled) + sum(name.startswith(self._own_code) for name in found)

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
        onednn = _onednn()
        if onednn:
            onednn.dnnl_version.restype = ctypes.POINTER(ctypes.c_int * 3)  # major, minor, patch
            versions["onednn"] = ".".join(map(str, onednn.dnnl_version().contents))
        return versions

    def _cast_model(self, model: nn.Cell) -> nn.Cell:
        """The model, with the casts that the precision's level asks for; its parameters stay fp32."""
        if self._precision == "fp32":
            return model
        name, _, level = self._precision.partition("-")
        dtype = [_MIXED["bf16"]] if name == "bf16" else []  # fp16 is MindSpore's own choice
        mixed = ms.amp.auto_mixed_precision(model, level, *dtype)
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
        if self._variances:
            self._variances.correct()
        before = {name: self.to_numpy(parameter) for name, parameter in self._untrained.items()}
        yield
        for name, parameter in self._untrained.items():
            _write(parameter, Tensor(before[name]))
        if self._variances:
            self._variances.keep()


class _AsCell(nn.Cell):
    """A function as a cell, compiled whole: what ``ms.jit`` makes is slower from 2.8 on (docs/environments.md)."""

    def __init__(self, function: Callable) -> None:
        super().__init__(auto_prefix=False)
        self._function = function

    def construct(self, *arguments):
        return self._function(*arguments)


class _WithMasks:
    """A function that is compiled with masks as inputs, for dropouts with these shapes and probabilities, in order.

    A graph cannot count its dropouts. So they take their masks, scaled, from a parameter that holds all, in a row.
    """

    def __init__(self, function: Callable, places: Sequence[tuple[tuple[int, ...], float]]) -> None:
        self._places = places
        size = sum(product(shape) for shape, _ in places)
        self._masks = Parameter(Tensor(np.zeros(size, np.float32)), "given_masks", requires_grad=False)
        self._taken = Parameter(Tensor(0, ms.int32), "masks_taken", requires_grad=False)

        self._function = _AsCell(function)

    def __call__(self, draw: Draw, *arguments: Tensor) -> Any:
        masks = [draw(place, shape, p).ravel() / (1 - p) for place, (shape, p) in enumerate(self._places)]
        _write(self._masks, Tensor(np.concatenate(masks).astype(np.float32)))
        _write(self._taken, Tensor(0, ms.int32))
        with _taking(self._masks, self._taken):  # its first call compiles it
            result = self._function(*arguments)
        if int(self._taken.asnumpy()) != self._masks.size:
            raise NoMasks("MindSpore's graph drops elsewhere than in nn.Dropout and ops.dropout")
        return result


def _taking(masks: Parameter, taken: Parameter) -> AbstractContextManager[None]:
    """Have compilations make code that takes a dropout's mask from ``masks``, after the numbers ``taken`` so far."""

    def take(x):
        size = x.size
        mask = ops.gather(masks, taken + ops.arange(size), 0)
        ops.assign_add(taken, size)
        return x * mask.reshape(x.shape).astype(x.dtype)

    def construct(self, x):
        if not self.training or self.keep_prob == 1 or self.p == 0:
            return x
        return take(x)

    def dropout(input, p=0.5, training=True, seed=None):
        if not training or p == 0:
            return input
        return take(input)

    return _attributes((nn.Dropout, "construct", construct), (ops, "dropout", dropout), (nn_func, "dropout", dropout))


def _dropouts_through(instead: Callable) -> AbstractContextManager[None]:
    """Have each eager call of an operator that drops, a cell's or a model's own, go through ``instead``. It gets the
    call itself, the operator and its arguments.
    """
    call = ops.Primitive.__call__

    def watched(operator, *arguments):
        drops = operator.name.startswith("Dropout")
        return instead(call, operator, *arguments) if drops else call(operator, *arguments)

    return _attributes((ops.Primitive, "__call__", watched))


def _masking(draw: Draw) -> Callable:
    """For :func:`_dropouts_through`: dropout with masks that are drawn."""
    places = itertools.count()

    def masked(call, operator, x, *rest):
        p = _probability(operator)
        if p == 0:
            return call(operator, x, *rest)
        mask = Tensor(draw(next(places), x.shape, p))
        return x * mask.astype(x.dtype) / (1 - p), mask

    return masked


def _probability(operator: ops.Primitive) -> float:
    """The probability of an operator to drop a number."""
    if operator.name != "Dropout":
        raise NoMasks(f"MindSpore's operator {operator.name} drops in a way of its own")
    return round(1 - operator.keep_prob, 12)  # 1 - 0.9 is no 0.1


@contextmanager
def _attributes(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Let attributes of modules and classes have other values for a while."""
    usual = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for change in changes:
        setattr(*change)
    try:
        yield
    finally:
        for change in usual:
            setattr(*change)


def _multiply_adds(graph: anf_ir_pb2.GraphProto) -> float | None:
    """Those of a graph's products, convolutions and LSTMs; None where it has others of that kind."""
    constants = {constant.key: constant.value for constant in graph.const_vals}
    shapes = {name: tuple(value.tensor_val.dims) for name, value in constants.items()}
    shapes.update({one.name: _shape(one.type) for one in graph.parameters})
    shapes.update({node.name: _shape(node.output_type) for node in graph.node})
    total = 0.0
    for node in graph.node:
        given = [one.name for one in node.input]
        if node.op_type in ("MatMul", "BatchMatMul"):
            turned = constants[given[2]].bool_val if len(given) > 2 else _attributes_of(node)["transpose_a"]  # in 2.0
            total += product(shapes[node.name]) * shapes[given[0]][-2 if turned else -1]
        elif node.op_type in ("MatMulExt", "BatchMatMulExt"):
            total += product(shapes[node.name]) * shapes[given[0]][-1]
        elif node.op_type == "Conv2D":
            total += product(shapes[node.name]) * product(shapes[given[1]][1:])
        elif node.op_type == "Conv2DBackpropInput":
            total += product(shapes[given[0]]) * product(shapes[given[1]][1:])
        elif node.op_type == "Conv2DBackpropFilter":
            total += product(shapes[given[0]]) * product(shapes[node.name][1:])
        elif node.op_type in ("LSTM", "LSTMGrad"):
            length, batch, _ = shapes[given[0]]
            total += length * batch * _lstm(_attributes_of(node)) * (2 if node.op_type == "LSTMGrad" else 1)
        elif _PRODUCT.search(node.op_type):
            return None
    return total


def _attributes_of(node: anf_ir_pb2.NodeProto) -> dict[str, int]:
    return {one.name: one.value.int_val or one.value.bool_val for one in node.attribute}


def _lstm(sizes: Mapping[str, int]) -> int:
    """Multiply-adds of an LSTM with one element of a sequence, from the operator's attributes."""
    hidden, ways = sizes["hidden_size"], 1 + sizes["bidirectional"]
    inputs = sizes["input_size"] + (sizes["num_layers"] - 1) * ways * hidden
    return ways * 4 * hidden * (inputs + sizes["num_layers"] * hidden)


def _shape(kind: anf_ir_pb2.TypeProto) -> tuple[int, ...]:
    return tuple(dim.size for dim in kind.tensor_type.shape.dim)


def _write(parameter: Parameter, value: Tensor) -> None:
    """In place: ``copy_`` came with 2.3."""
    if hasattr(parameter, "copy_"):
        parameter.copy_(value)
    else:
        ops.assign(parameter, value)


def _output_and_gradients(model: nn.Cell, weights: ms.ParameterTuple) -> Callable:
    """A function from an input and the gradient of the output to the output and the gradients."""
    if "sens_param" in inspect.signature(ms.value_and_grad).parameters:
        return ms.value_and_grad(model, 0, weights, sens_param=True)
    # What value_and_grad of 2.0 makes, with a gradient of the output.
    grad = _Grad(get_by_list=True, sens_param=True, get_by_position=True, get_value=True)
    return grad(model, weights, (0,))


def _of_context(names: Iterable[str]) -> dict[str, Any]:
    """Values in MindSpore's context; without those that this version has no name for."""
    found = {}
    for name in names:
        with suppress(ValueError):
            found[name] = ms.get_context(name)
    return found


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
