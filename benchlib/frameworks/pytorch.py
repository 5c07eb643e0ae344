"""PyTorch: builds a workload and runs its steps.

Accelerators are reached through ``torch.accelerator``, one path for CUDA, Ascend and others. It has been run for
minutes on one NVIDIA H200 (docs/gallery/gpu), and never on Ascend.

Graph mode is ``torch.compile(dynamic=False)`` of forward and loss together (an operator: of its module); the
optimizer's step stays outside. Evaluation, and a training model's ``outputs``, run the model's own code. They are off
the clock, and their compilation would cost every process another 15 seconds or more.

Mixed precision is ``torch.autocast`` of forward and loss; with fp16 the loss is scaled by ``torch.amp.GradScaler``.
In fp64 new tensors are in double precision by default, a model's own, too.
"""

from __future__ import annotations

import copy
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import partial
from inspect import signature
from itertools import islice
from types import MappingProxyType, ModuleType
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, distributed
from torch.backends import mkldnn
from torch.nn.parallel import DistributedDataParallel

from benchlib.errors import BenchlibError, NotInThisVersion, no_such
from benchlib.frameworks import GRADIENT_SCALE, LOSS_SCALE, Draw, check_trained, check_weights
from benchlib.frameworks._pytorch_dropouts import DrawnMasks, Dropouts
from benchlib.frameworks._pytorch_old import GradScaler, accelerator, zero_grad
from benchlib.workloads import Values, Workload

TITLE = "PyTorch"
PACKAGE = "torch"
REFERENCE = True
DEVICES = ("cpu", "cuda", "npu", "xpu")
MODES = ("eager", "graph")
COMPILES = (("graph", "cpu"),)
NEEDS = (
    {
        "device": "cuda",
        "text": ("version.py", r"^cuda(: [^=]*)? = '[\d.]+'"),
        "otherwise": "the installed torch is a CPU build; install one for CUDA (see pytorch.org)",
    },
    {
        "device": "xpu",
        "text": ("version.py", r"^xpu(: [^=]*)? = '[\d.]+'"),
        "otherwise": "the installed torch is no build for Intel GPUs; install one (see pytorch.org), or use 'cpu'",
    },
    {
        "device": "npu",
        "modules": ("torch_npu",),
        "otherwise": "torch_npu is not installed; environments/ascend.txt says how; else use 'cpu'",
    },
)
PRECISIONS = ("fp32", "bf16", "fp16", "fp64")
LAUNCHER = (
    "-m",
    "torch.distributed.run",
    "--rdzv-backend=c10d",
    "--rdzv-endpoint=127.0.0.1:0",
    "--local-addr=127.0.0.1",  # else it looks for the machine's own name, which may not resolve
    "--nproc-per-node={world_size}",
    "--max-restarts=0",
)
VARIABLES = ("TORCH", "PYTORCH", "ATEN_", "C10_", "TRITON_")
CHANGING = ("loss_scale",)
KNOBS = (
    {
        "name": "cudnn_benchmark",
        "value": "on",
        "devices": ("cuda",),
        "reason": "cuDNN times its algorithms for each new shape and takes the fastest; as installed it guesses",
        "source": "PyTorch documentation, 'torch.backends.cudnn.benchmark'",
        "convolutions_only": True,
        "by_session": True,
    },
    {
        "name": "channels_last",
        "value": "on",
        "devices": ("cpu", "cuda"),
        "reason": (
            "images and kernels lie in memory with the channels innermost, as the fastest convolutions of oneDNN and "
            "cuDNN want them; batches are laid out so off the clock"
        ),
        "source": "PyTorch tutorials, 'Channels Last Memory Format'",
        "convolutions_only": True,
        "by_session": True,
    },
    {
        "name": "float32_matmul_precision",
        "value": "high",
        "devices": ("cuda",),
        "reason": (
            "matrix products of fp32 round their factors to TF32 (10 bits after the point), as cuDNN's convolutions do "
            "as installed; the gate runs without TF32"
        ),
        "source": "PyTorch documentation, 'torch.set_float32_matmul_precision'",
        "by_session": True,
    },
    {
        "name": "TORCHINDUCTOR_CACHE_DIR",
        "value": "{scratch}/inductor",
        "when": "always",
        "devices": ("cpu", "cuda", "npu", "xpu"),
        "reason": (
            "every process compiles again, so that first steps can be compared: a cache would favour later processes"
        ),
        "source": "PyTorch documentation, 'Compile Time Caching in torch.compile'",
    },
    {
        "name": "TORCH_DEVICE_BACKEND_AUTOLOAD",
        "value": "0",
        "when": "always",
        "devices": ("cpu", "cuda", "npu", "xpu"),
        "reason": "an installed torch_npu is imported on an NPU only: elsewhere it would fail, or patch torch",
        "source": "PyTorch documentation, 'Autoloading Out-of-Tree Extension'",
    },
)

_BROUGHT = {"graph": "compiler", "bf16": "autocast", "fp16": "amp.GradScaler"}
"""Modes and precisions that came with later versions, and their names in torch."""

_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
_ATTENTIONS = ("flash", "mem_efficient", "math", "cudnn")
_MIB = 2**20
_COUNTER = "num_batches_tracked"
_CHANNELS_LAST = {4: torch.channels_last}  # by number of dimensions
if hasattr(torch, "channels_last_3d"):  # 1.5
    _CHANNELS_LAST[5] = torch.channels_last_3d
_SETTINGS = {
    "threads": torch.get_num_threads,
    "interop_threads": torch.get_num_interop_threads,
    "cpu_capability": lambda: torch.backends.cpu.get_cpu_capability(),
    "onednn": lambda: mkldnn.is_available() and getattr(mkldnn, "enabled", True),
    "float32_matmul_precision": lambda: torch.get_float32_matmul_precision(),
    "onednn_fp32_precision": lambda: ", ".join(one.fp32_precision for one in (mkldnn.matmul, mkldnn.conv, mkldnn.rnn)),
    "attention": lambda: ", ".join(
        name for name in _ATTENTIONS if getattr(torch.backends.cuda, f"{name}_sdp_enabled")()
    ),
    "flush_denormal": lambda: bool(torch.tensor(1e-40, dtype=torch.float32) * 1 == 0),
    "default_dtype": lambda: str(torch.get_default_dtype()).split(".")[-1],
    "deterministic_algorithms": lambda: torch.are_deterministic_algorithms_enabled(),
    "anomaly_detection": torch.is_anomaly_enabled,
    "profiler": lambda: torch.autograd._profiler_enabled(),
    "function_modes": lambda: torch._C._len_torch_function_stack() + torch._C._len_torch_dispatch_stack(),
}
"""How settings are read; one of a later version is left out."""


class Session:
    """One workload in PyTorch, in this process: see ``benchlib.frameworks.Session`` for what each method promises."""

    def __init__(
        self, device: str, mode: str, precision: str, seed: int, knobs: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        if precision not in PRECISIONS:
            raise BenchlibError(no_such("precision of pytorch", precision, PRECISIONS))
        for kind, choice in {"mode": mode, "precision": precision}.items():
            if choice in _BROUGHT and not _has(_BROUGHT[choice]):
                lacks = f"torch {torch.__version__} has no torch.{_BROUGHT[choice]}"
                raise NotInThisVersion(f"{kind} {choice!r}: not in this version: {lacks}")
        self._device = _device(device)
        self._graph = mode == "graph"
        self._autocast = _AUTOCAST.get(precision)
        self._type = torch.float64 if precision == "fp64" else torch.float32
        torch.set_default_dtype(self._type)
        self._layouts = dict.fromkeys(_CHANNELS_LAST, torch.contiguous_format)
        for name, value in knobs.items():
            self._set(name, value)
        if self._graph:
            from benchlib.frameworks import (
                _pytorch_compiled,  # only where there is a compiler: it takes a second or more
            )

            self._compiler = _pytorch_compiled
            self._configured = _pytorch_compiled.config()
        torch.manual_seed(seed)  # for dropout only: weights and batches come from files
        self._parallel = False
        self._trained: dict[str, Tensor] = {}
        self._masked: Any = None  # the function that is timed, compiled with masks
        self._scaler: Any = None

    def join(self, communication: bool) -> tuple[int, int]:
        """Become one of the processes that torchrun has started."""
        if self._device.type != "cpu":
            accelerator.set_device_index(int(os.environ["LOCAL_RANK"]))
        distributed.init_process_group(distributed.get_default_backend_for_device(self._device))
        self._parallel = communication
        return distributed.get_rank(), distributed.get_world_size()

    def agree(self, value: float) -> float:
        """The mean of the processes' values."""
        mine = torch.tensor([value], device=self._device)
        distributed.all_reduce(mine)
        return float(mine) / distributed.get_world_size()

    def build(self, workload: Workload, module: ModuleType, values: Values, learning_rate: float | None) -> None:
        """Build model, loss and optimizer (or the operator) from ``module``, the workload's file for PyTorch."""
        if self._graph:
            torch._dynamo.utils.clear_compilation_metrics()
            torch.compiler.reset()  # else the guards of code compiled for an earlier model would be tried at every step
        self._shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
        self._trains = workload.kind == "training"
        self._module, self._values, self._targets, self._name = module, values, workload.targets, workload.name
        self._model = module.build(values).to(self._device)
        if self._type is torch.float64:
            self._model.double()
        for tensor in [*self._model.parameters(), *self._model.buffers()]:
            tensor.data = self._place(tensor.data)
        self._training = not workload.evaluates
        self._model.train(self._training)
        weights, buffers = dict(self._model.named_parameters()), dict(self._model.named_buffers())
        self._trained = {name: weight for name, weight in weights.items() if weight.requires_grad}
        frozen = {name: weight for name, weight in weights.items() if not weight.requires_grad}
        self._counters = [tensor for name, tensor in buffers.items() if name.endswith(_COUNTER)]
        kept = self._model.state_dict().keys()  # without what the model's code makes again, such as a causal mask
        of_state = {name: tensor for name, tensor in buffers.items() if name in kept and not name.endswith(_COUNTER)}
        self._untrained = {**frozen, **of_state}
        self._moving = [*frozen.values(), *buffers.values()]
        found = {name: tensor.shape for name, tensor in {**self._trained, **self._untrained}.items()}
        check_weights(f"{workload.name} in pytorch", self._shapes, found)
        check_trained(f"{workload.name} in pytorch", workload.weights(values), self._trained)
        if self._trains:
            network = DistributedDataParallel(self._model) if self._parallel else self._model

            def loss(batch: tuple[Tensor, ...]) -> Tensor:
                with self._mixed_precision():
                    return module.loss(network, batch)

            self._uncompiled, self._computes = loss, "_loss"
            self._loss = torch.compile(loss, dynamic=False) if self._graph else loss
            self._optimizer = module.optimizer(self._model, values, learning_rate)
            if "set_to_none" not in signature(self._optimizer.zero_grad).parameters:
                self._optimizer.zero_grad = partial(zero_grad, self._optimizer)
            self._start = copy.deepcopy(self._optimizer.state_dict())
            self._clip = values.get("clip")
        else:

            def operator(inputs: Tensor) -> Tensor:
                with self._mixed_precision():
                    return self._model(inputs)

            self._uncompiled, self._computes = operator, "_operator"
            self._operator = torch.compile(operator, dynamic=False) if self._graph else operator
            self._backward = values["passes"] == "forward+backward"
        if self._graph:
            self._masked = self._compiler.CompiledWithMasks(self._uncompiled)

    def load(self, weights: dict[str, np.ndarray], loss_scale: float = LOSS_SCALE) -> None:
        """Set the model's whole state, forget the optimizer's; a wrong name or shape is a BenchlibError."""
        check_weights("weights for pytorch", self._shapes, {name: array.shape for name, array in weights.items()})
        with torch.no_grad():
            for name, tensor in {**self._trained, **self._untrained}.items():
                tensor.copy_(torch.tensor(weights[name]))
            for counter in self._counters:
                counter.zero_()
        if self._trains:
            self._optimizer.load_state_dict(self._start)
            half = self._autocast is torch.float16
            self._scaler = GradScaler(self._device.type, init_scale=loss_scale, enabled=half)
            schedule = getattr(self._module, "schedule", None)
            self._schedule = schedule(self._optimizer, self._values) if schedule else None

    def weights(self) -> dict[str, np.ndarray]:
        """The model's state now, as copies."""
        tensors = {**self._trained, **self._untrained}
        return {name: self.to_numpy(tensors[name]) for name in self._shapes}

    def put(self, arrays: tuple[np.ndarray, ...]) -> tuple[Tensor, ...]:
        """A batch on the device: the sample's arrays, whole numbers as int64; or (input, gradient of the output)."""
        tensors = [self._place(self._tensor(array)) for array in arrays]
        if self._trains:
            return tuple(tensor if tensor.is_floating_point() else tensor.long() for tensor in tensors)
        inputs, gradient = tensors
        return inputs.requires_grad_(), gradient

    def step(self, batch: tuple[Tensor, ...]) -> Tensor:
        """Queue one step; return its loss (an operator: its output)."""
        if self._trains:
            self._optimizer.zero_grad(set_to_none=True)
            loss = self._loss(batch)
            self._scaler.scale(loss).backward()
            self._take_step()
            return loss.detach()
        if self._backward:
            return self._output_and_gradients(batch)[0]
        with torch.no_grad():
            return self._operator(batch[0])

    def synchronize(self) -> None:
        """Wait until all queued work is done. On the CPU a step has done all its work when it returns."""
        if self._device.type != "cpu":
            accelerator.synchronize()

    def mark(self) -> torch.Event | None:
        """An event in the device's queue; None on the CPU."""
        if self._device.type == "cpu":
            return None
        event = torch.Event(device=self._device, enable_timing=True)
        event.record()
        return event

    def elapsed_s(self, start: torch.Event, end: torch.Event) -> float:
        """Seconds between two marks, by the device's clock."""
        return start.elapsed_time(end) / 1000

    def outputs(self, batch: tuple[Tensor, ...], training: bool) -> tuple[np.ndarray, ...]:
        """The model's outputs for a batch's inputs; weights and running statistics stay as they were."""
        if not self._trains and training:
            with self._restore_untrained():
                return (self.to_numpy(self.step(batch)),)  # an operator's step is its output, and is measured
        with self._restore_untrained(), self._set_training(training):
            with torch.no_grad(), self._mixed_precision():
                found = self._model(*batch[: -self._targets])
            return tuple(map(self.to_numpy, found if isinstance(found, tuple) else (found,)))

    def predictions(self, batch: tuple[Tensor, ...]) -> np.ndarray:
        """The result of the file's ``predict`` for a batch's inputs, in evaluation behaviour."""
        with self._set_training(training=False), torch.no_grad(), self._mixed_precision():
            return self._module.predict(self._model, batch[: -self._targets]).cpu().numpy()

    def gradients(self, batch: tuple[Tensor, ...]) -> dict[str, np.ndarray]:
        """Gradients of the loss by name (an operator: also ``input``); weights and statistics stay as they were."""
        with self._restore_untrained():
            if not self._trains and self._values["passes"] == "forward+backward":
                return self._gradients_of_step(batch)
            if self._trains:
                self._optimizer.zero_grad(set_to_none=True)
                scale = GRADIENT_SCALE if self._autocast is torch.float16 else 1.0
                (self._loss(batch) * scale).backward()  # not autograd.grad, which DDP does not see
                names = [*self._trained]
                weights = self._trained.values()
                gradients = [torch.zeros_like(one) if one.grad is None else one.grad / scale for one in weights]
            else:
                names, gradients = ["input", *self._trained], self._output_and_gradients(batch)[1]
            return {name: self.to_numpy(gradient) for name, gradient in zip(names, gradients)}

    def update(self, gradients: Sequence[Mapping[str, np.ndarray]], steps: int) -> None:
        """Steps of the optimizer with gradients that are given, in turn."""
        scale = self._scaler.scale(torch.ones((), device=self._device))
        ready = [{name: self._tensor(array) * scale for name, array in one.items()} for one in gradients]
        modules = self._model.named_modules()
        sparse = {f"{name}.weight".lstrip(".") for name, module in modules if getattr(module, "sparse", False)}
        for number in range(steps):
            self._optimizer.zero_grad(set_to_none=True)  # it leaves weights without a gradient alone
            for name, gradient in ready[number % len(ready)].items():
                gradient = gradient.to_sparse(1) if name in sparse else self._place(gradient.clone())
                self._trained[name].grad = gradient  # a copy: clipping writes to it
            self._take_step()

    def dropouts(self, batch: tuple[Tensor, ...], training: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """The input and the output of each dropout of a forward pass and, in training, of the loss."""
        seen, behaving = Dropouts(), nullcontext() if training else self._set_training(training=False)
        with self._restore_untrained(), behaving, torch.no_grad(), self._mixed_precision(), seen:
            if training:
                self._module.loss(self._model, batch)
            else:
                self._model(*batch[: -self._targets])
        return [(name, self.to_numpy(given), self.to_numpy(left)) for name, given, left in seen.all]

    @contextmanager
    def given_masks(self, draw: Draw) -> Iterator[None]:
        """Every dropout of a step, of gradients and of outputs takes its mask from ``draw``."""

        def masked(compute: Callable, masks: Callable) -> Callable:
            def with_masks(*args, **named):
                with masks(draw, self._device):
                    return compute(*args, **named)

            return with_masks

        timed = getattr(self, self._computes)
        steps = self._masked.given if self._graph else DrawnMasks
        others = {"step": steps, "gradients": steps, "outputs": DrawnMasks}
        for name, masks in others.items():
            setattr(self, name, masked(getattr(self, name), masks))  # so that a step that is timed has nothing to ask
        if self._graph:
            setattr(self, self._computes, self._masked)
        try:
            yield
        finally:
            for name in others:
                delattr(self, name)
            setattr(self, self._computes, timed)

    def layers(self, batch: tuple[Tensor, ...]) -> list[tuple[str, np.ndarray]]:
        """The input and the output of each module that has weights of its own, and the loss; of others that hold none,
        such as a pooling, the name (``through pool``).
        """
        seen: list[tuple[str, np.ndarray]] = []

        def note(what: str, module: torch.nn.Module, given: tuple, named: dict, *results) -> None:
            for tensor in islice(_tensors(results or (given, named)), 1):
                seen.append((what, self.to_numpy(tensor)))

        owners, hooks = {name.rpartition(".")[0] for name in self._shapes}, []
        for path, module in self._model.named_modules():
            if (path or not self._trains) and (path in owners or any(True for _ in module.parameters(recurse=False))):
                name = path or self._name
                before, after = partial(note, f"input of {name}"), partial(note, f"output of {name}")
                hooks.append(_hook(module.register_forward_pre_hook, before))
                hooks.append(_hook(module.register_forward_hook, after))
            elif path and not any(True for _ in module.children()):
                passed = partial(lambda what, *_: seen.append((what, np.zeros(0))), f"through {path}")
                hooks.append(_hook(module.register_forward_hook, passed))
        with self._restore_untrained(), torch.no_grad(), self._mixed_precision():
            if self._trains:
                seen.append(("loss", self.to_numpy(self._module.loss(self._model, batch))))
            else:
                self._model(batch[0])
        for hook in hooks:
            hook.remove()
        return seen

    def multiply_adds(self, batch: tuple[Tensor, ...]) -> float | None:
        """Those of a step, operation by operation in graph mode, too, as PyTorch's counter counts them by shapes.
        Recurrent operators of accelerators are none that it could count.
        """
        recurrent = any(isinstance(one, torch.nn.RNNBase) for one in self._model.modules())
        counter = _flop_counter()
        if counter is None or (self._device.type != "cpu" and recurrent):
            return None
        tensors = [*self._trained.values(), *self._moving]
        before = [tensor.detach().clone() for tensor in tensors]
        of_steps = [one for one in (self._optimizer, self._scaler) if one] if self._trains else []
        if not self._trains:
            batch = (batch[0].clone(), batch[1])  # the counter's hooks want no leaf there
        states = copy.deepcopy([one.state_dict() for one in of_steps])
        uncompiled = patch.object(self, self._computes, self._uncompiled)
        with uncompiled, patch.object(self, "_schedule", None, create=True), counter:
            self.step(batch)
        with torch.no_grad():
            for tensor, earlier in zip(tensors, before):
                tensor.copy_(earlier)
        for one, state in zip(of_steps, states):
            one.load_state_dict(state)
        return counter.get_total_flops() / 2

    def to_numpy(self, value: Tensor) -> np.ndarray:
        """A tensor, such as the result of :meth:`step`, as a copy of float32 (in fp64: float64)."""
        value = value.to_dense() if value.is_sparse else value
        return value.detach().to(self._type).cpu().numpy().copy()  # numpy has no bf16

    def settings(self) -> dict[str, str | int | float | bool]:
        """Threads, instruction set and floating-point settings in force, read back from PyTorch."""
        settings = {}
        for name, read in _SETTINGS.items():
            with suppress(AttributeError):
                settings[name] = read()
        if self._graph:
            settings["dynamo"] = "off" if torch._dynamo.config.disable else torch._dynamo.eval_frame._stance.stance
            settings["compiler_config"] = ", ".join(
                f"{name}={value}" for name, value in self._compiler.config().items() if value != self._configured[name]
            )
            settings["compilations"] = self._compilations()
        kernels = [weight for weight in self._trained.values() if weight.dim() in _CHANNELS_LAST]
        if kernels:
            settings["channels_last"] = all(
                one.is_contiguous(memory_format=_CHANNELS_LAST[one.dim()]) for one in kernels
            )
        if self._autocast is not None:
            settings["autocast"] = str(self._autocast).split(".")[-1]
            settings["loss_scale"] = self._scaler.get_scale() if self._scaler else 1.0
        if self._device.type != "cpu":
            found = getattr(torch, "get_device_module", lambda device: torch.cuda)(self._device)  # 2.4
            settings["device_name"] = found.get_device_name(self._device)
        if self._device.type == "cuda":
            settings["cudnn_benchmark"] = torch.backends.cudnn.benchmark
            settings["cudnn_allow_tf32"] = torch.backends.cudnn.allow_tf32
            settings["matmul_allow_tf32"] = torch.backends.cuda.matmul.allow_tf32
        return settings

    def device_memory(self) -> dict[str, float]:
        """Device memory in MiB as PyTorch's allocator counts it; empty on the CPU."""
        if self._device.type == "cpu":
            return {}
        return {
            "allocated": accelerator.memory.memory_allocated() / _MIB,
            "peak": accelerator.memory.max_memory_allocated() / _MIB,
        }

    @staticmethod
    def versions() -> dict[str, str]:
        """PyTorch's version and those of the libraries that it was built with."""
        versions = {"torch": torch.__version__}
        built = torch.__config__.show()
        for name, pattern in {
            "onednn": r"MKL-DNN v([\d.]+)",
            "mkl": r"oneAPI Math Kernel Library Version (\S+)",
        }.items():
            found = re.search(pattern, built)
            if found:
                versions[name] = found[1]
        if torch.version.cuda:
            versions.update({"cuda": torch.version.cuda, "cudnn": str(torch.backends.cudnn.version())})
        return versions

    def _compilations(self) -> int:
        """How often the code of steps was compiled; where it has several parts, of the one that was most often."""
        others = self._masked.compiled if self._masked else set()
        of_steps = (one for one in self._compiler.compilations() if one not in others)
        return max(Counter(one.partition("/")[0] for one in of_steps).values(), default=0)

    def _take_step(self) -> None:
        """The optimizer's, with the gradients that the weights have."""
        if self._clip is not None:
            self._scaler.unscale_(self._optimizer)
            torch.nn.utils.clip_grad_norm_(self._model.parameters(), self._clip)
        self._scaler.step(self._optimizer)
        self._scaler.update()
        if self._schedule:
            self._schedule.step()

    def _set(self, name: str, value: str) -> None:
        if (name, value) == ("channels_last", "on"):
            self._layouts = _CHANNELS_LAST
        elif (name, value) == ("cudnn_benchmark", "on"):
            torch.backends.cudnn.benchmark = True
        elif name == "float32_matmul_precision":
            torch.set_float32_matmul_precision(value)
        else:
            known = ("channels_last=on", "cudnn_benchmark=on", "float32_matmul_precision=high")
            raise BenchlibError(no_such("knob of pytorch", f"{name}={value}", known))

    def _tensor(self, array: np.ndarray) -> Tensor:
        """An array on the device; numbers with a fraction are of the session's type."""
        tensor = torch.tensor(array, device=self._device)
        return tensor.to(self._type) if tensor.is_floating_point() else tensor

    def _place(self, tensor: Tensor) -> Tensor:
        return tensor.to(memory_format=self._layouts[tensor.dim()]) if tensor.dim() in self._layouts else tensor

    def _output_and_gradients(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        inputs, gradient = batch
        output = self._operator(inputs)
        gradients = torch.autograd.grad(output, [inputs, *self._trained.values()], gradient.to(output.dtype))
        return output.detach(), gradients

    def _gradients_of_step(self, batch: tuple[Tensor, Tensor]) -> dict[str, np.ndarray]:
        """The gradients that an operator's step computes and discards; those that it leaves out are not there."""
        if not _has("compile"):  # before 2.0 autograd.grad does not call the hooks of what it is asked for
            names = ["input", *self._trained]
            return {name: self.to_numpy(one) for name, one in zip(names, self._output_and_gradients(batch)[1])}
        seen: dict[str, Tensor] = {}
        tensors = {"input": batch[0], **self._trained}
        hooks = [one.register_hook(partial(seen.__setitem__, name)) for name, one in tensors.items()]
        self.step(batch)
        for hook in hooks:
            hook.remove()
        return {name: self.to_numpy(seen[name]) for name in tensors if name in seen}

    def _mixed_precision(self) -> AbstractContextManager:
        return torch.autocast(self._device.type, self._autocast) if self._autocast else nullcontext()

    @contextmanager
    def _set_training(self, training: bool) -> Iterator[None]:
        self._model.train(training)
        try:
            yield
        finally:
            self._model.train(self._training)

    @contextmanager
    def _restore_untrained(self) -> Iterator[None]:
        before = [tensor.clone() for tensor in self._moving]
        yield
        for tensor, earlier in zip(self._moving, before):
            tensor.copy_(earlier)


def _flop_counter() -> Any:
    """PyTorch's counter (2.1; None before), with formulas of products that it has none for, from shapes."""
    try:
        from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count
    except ImportError:
        return None

    def of_layer(inputs: Sequence[int], of_inputs: Sequence[int], of_state: Sequence[int], *_, **__) -> int:
        """Of a recurrent layer: inputs (length, batch, features), weights of inputs and of the state."""
        return 2 * inputs[0] * inputs[1] * (of_inputs[0] * of_inputs[1] + of_state[0] * of_state[1])

    formulas = {
        "mkldnn_rnn_layer": of_layer,
        "mkldnn_rnn_layer_backward": lambda *shapes, **kwargs: 2 * of_layer(*shapes),
        "_scaled_dot_product_flash_attention_for_cpu": lambda *shapes, **kwargs: sdpa_flop_count(*shapes[:3]),
        "_scaled_dot_product_flash_attention_for_cpu_backward": (
            lambda *shapes, **kwargs: sdpa_backward_flop_count(*shapes[:4])
        ),
        "mv": lambda matrix, vector, **kwargs: 2 * matrix[0] * matrix[1],
        "dot": lambda one, other, **kwargs: 2 * one[0],
    }
    there = {name: getattr(torch.ops.aten, name, None) for name in formulas}
    return FlopCounterMode(display=False, custom_mapping={one: formulas[name] for name, one in there.items() if one})


def _has(name: str) -> bool:
    """Is this of torch in this version?"""
    found = torch
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None


def _hook(register: Callable, function: Callable) -> Any:
    """Register a module's hook that takes arguments by name, too (2.0; none before)."""
    if "with_kwargs" in signature(register).parameters:
        return register(function, with_kwargs=True)
    return register(lambda module, given, *results: function(module, given, {}, *results))


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in arguments, or in a result, in order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list, dict)):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _tensors(one)


def _device(name: str) -> torch.device:
    if name == "cpu":
        return torch.device("cpu")
    if name == "npu":
        try:
            import torch_npu  # noqa: F401 (brings the device into torch)
        except ImportError as error:
            raise BenchlibError(
                f"device 'npu': torch_npu cannot be imported ({error}): install it, see environments/ascend.txt"
            ) from None
    found = accelerator.current_accelerator(check_available=True)
    if found is None or found.type != name:
        raise BenchlibError(
            f"device {name!r}: torch {torch.__version__} finds {found or 'no accelerator'} here; "
            f"install the build of torch for {name} and its driver, or choose device 'cpu'"
        )
    return found
