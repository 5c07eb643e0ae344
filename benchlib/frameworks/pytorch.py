"""PyTorch: builds a workload and runs its steps.

Accelerators are reached through ``torch.accelerator``, one path for CUDA, Ascend and others. It has been run for
minutes on one NVIDIA H200 (docs/gallery/gpu), and never on Ascend.

Graph mode is ``torch.compile(dynamic=False)`` of forward and loss together (an operator: of its module); the
optimizer's step stays outside. Evaluation, and a training model's ``outputs``, run the model's own code. They are off
the clock, and their compilation would cost every process another 15 seconds or more.

Mixed precision is ``torch.autocast`` of forward and loss; with fp16 the loss is scaled by ``torch.amp.GradScaler``.
"""

from __future__ import annotations

import copy
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from types import MappingProxyType, ModuleType

import numpy as np
import torch
from torch import Tensor, distributed
from torch.nn.parallel import DistributedDataParallel
from torch.overrides import TorchFunctionMode

from benchlib.errors import BenchlibError, no_such
from benchlib.frameworks import GRADIENT_SCALE, LOSS_SCALE, check_trained, check_weights
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
PRECISIONS = ("fp32", "bf16", "fp16")
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

_AUTOCAST = {"bf16": torch.bfloat16, "fp16": torch.float16}
_MIB = 2**20
_CHANNELS_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}  # by number of dimensions


class Session:
    """One workload in PyTorch, in this process: see ``benchlib.frameworks.Session`` for what each method promises."""

    def __init__(
        self, device: str, mode: str, precision: str, seed: int, knobs: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        if precision not in PRECISIONS:
            raise BenchlibError(no_such("precision of pytorch", precision, PRECISIONS))
        self._device = _device(device)
        self._graph = mode == "graph"
        self._autocast = _AUTOCAST.get(precision)
        self._layouts = dict.fromkeys(_CHANNELS_LAST, torch.contiguous_format)
        for name, value in knobs.items():
            self._set(name, value)
        torch.manual_seed(seed)  # for dropout only: weights and batches come from files
        self._parallel = False

    def join(self, communication: bool) -> tuple[int, int]:
        """Become one of the processes that torchrun has started."""
        if self._device.type != "cpu":
            torch.accelerator.set_device_index(int(os.environ["LOCAL_RANK"]))
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
            torch.compiler.reset()  # else the guards of code compiled for an earlier model would be tried at every step
        self._shapes = {name: weight.shape for name, weight in workload.weights(values).items()}
        self._trains = workload.kind == "training"
        self._module, self._values, self._targets = module, values, workload.targets
        self._model = module.build(values).to(self._device)
        for tensor in [*self._model.parameters(), *self._model.buffers()]:
            tensor.data = self._place(tensor.data)
        self._training = not workload.evaluates
        self._model.train(self._training)
        self._trained = dict(self._model.named_parameters())
        buffers = dict(self._model.named_buffers())
        self._untrained = {name: tensor for name, tensor in buffers.items() if not name.endswith("num_batches_tracked")}
        found = {name: tensor.shape for name, tensor in (self._trained | self._untrained).items()}
        check_weights(f"{workload.name} in pytorch", self._shapes, found)
        check_trained(f"{workload.name} in pytorch", workload.weights(values), self._trained)
        if self._trains:
            network = DistributedDataParallel(self._model) if self._parallel else self._model

            def loss(batch: tuple[Tensor, ...]) -> Tensor:
                with self._mixed_precision():
                    return module.loss(network, batch)

            self._loss = torch.compile(loss, dynamic=False) if self._graph else loss
            self._optimizer = module.optimizer(self._model, values, learning_rate)
            self._start = copy.deepcopy(self._optimizer.state_dict())
            self._clip = values.get("clip")
        else:

            def operator(inputs: Tensor) -> Tensor:
                with self._mixed_precision():
                    return self._model(inputs)

            self._operator = torch.compile(operator, dynamic=False) if self._graph else operator
            self._backward = values["passes"] == "forward+backward"

    def load(self, weights: dict[str, np.ndarray], loss_scale: float = LOSS_SCALE) -> None:
        """Set the model's whole state, forget the optimizer's; a wrong name or shape is a BenchlibError."""
        check_weights("weights for pytorch", self._shapes, {name: array.shape for name, array in weights.items()})
        with torch.no_grad():
            for name, tensor in (self._trained | self._untrained).items():
                tensor.copy_(torch.tensor(weights[name]))
        if self._trains:
            self._optimizer.load_state_dict(self._start)
            half = self._autocast is torch.float16
            self._scaler = torch.amp.GradScaler(self._device.type, init_scale=loss_scale, enabled=half)
            schedule = getattr(self._module, "schedule", None)
            self._schedule = schedule(self._optimizer, self._values) if schedule else None

    def weights(self) -> dict[str, np.ndarray]:
        """The model's state now, as float32 copies."""
        tensors = self._trained | self._untrained
        return {name: self.to_numpy(tensors[name]) for name in self._shapes}

    def put(self, arrays: tuple[np.ndarray, ...]) -> tuple[Tensor, ...]:
        """A batch on the device: the sample's arrays, whole numbers as int64; or (input, gradient of the output)."""
        tensors = [self._place(torch.tensor(array, device=self._device)) for array in arrays]
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
            torch.accelerator.synchronize()

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
        """The predictions for a batch's inputs, in evaluation behaviour."""
        if not hasattr(self._module, "predict"):
            return self.outputs(batch, training=False)[0].argmax(axis=-1)
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
                gradients = [weight.grad / scale for weight in self._trained.values()]
            else:
                names, gradients = ["input", *self._trained], self._output_and_gradients(batch)[1]
            return {name: self.to_numpy(gradient) for name, gradient in zip(names, gradients, strict=True)}

    def update(self, gradients: Sequence[Mapping[str, np.ndarray]], steps: int) -> None:
        """Steps of the optimizer with gradients that are given, in turn."""
        scale = self._scaler.scale(torch.ones((), device=self._device))
        ready = [
            {name: torch.tensor(array, device=self._device) * scale for name, array in one.items()} for one in gradients
        ]
        for number in range(steps):
            self._optimizer.zero_grad(set_to_none=True)  # it leaves weights without a gradient alone
            for name, gradient in ready[number % len(ready)].items():
                self._trained[name].grad = self._place(gradient.clone())  # clipping writes to it
            self._take_step()

    def dropouts(self, batch: tuple[Tensor, ...], training: bool) -> list[tuple[str, np.ndarray, np.ndarray]]:
        """The input and the output of each dropout of a forward pass and, in training, of the loss."""
        seen, behaving = _Dropouts(), nullcontext() if training else self._set_training(training=False)
        with self._restore_untrained(), behaving, torch.no_grad(), self._mixed_precision(), seen:
            if training:
                self._module.loss(self._model, batch)
            else:
                self._model(*batch[: -self._targets])
        return [(name, self.to_numpy(given), self.to_numpy(left)) for name, given, left in seen.all]

    def to_numpy(self, value: Tensor) -> np.ndarray:
        """A tensor, such as the result of :meth:`step`, as a float32 copy."""
        return value.detach().float().cpu().numpy().copy()  # numpy has no bf16

    def settings(self) -> dict[str, str | int | float | bool]:
        """Threads, instruction set and floating-point settings in force, read back from PyTorch."""
        settings = {
            "threads": torch.get_num_threads(),
            "interop_threads": torch.get_num_interop_threads(),
            "cpu_capability": torch.backends.cpu.get_cpu_capability(),
            "onednn": torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled,
            "float32_matmul_precision": torch.get_float32_matmul_precision(),
            "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        }
        if kernels := [weight for weight in self._trained.values() if weight.dim() in _CHANNELS_LAST]:
            settings["channels_last"] = all(
                one.is_contiguous(memory_format=_CHANNELS_LAST[one.dim()]) for one in kernels
            )
        if self._autocast is not None:
            settings["autocast"] = str(self._autocast).removeprefix("torch.")
            settings["loss_scale"] = self._scaler.get_scale() if self._trains else 1.0
        if self._device.type != "cpu":
            settings["device_name"] = torch.get_device_module(self._device).get_device_name(self._device)
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
            "allocated": torch.accelerator.memory.memory_allocated() / _MIB,
            "peak": torch.accelerator.memory.max_memory_allocated() / _MIB,
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
            if found := re.search(pattern, built):
                versions[name] = found[1]
        if torch.version.cuda:
            versions |= {"cuda": torch.version.cuda, "cudnn": str(torch.backends.cudnn.version())}
        return versions

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

    def _place(self, tensor: Tensor) -> Tensor:
        return tensor.to(memory_format=self._layouts[tensor.dim()]) if tensor.dim() in self._layouts else tensor

    def _output_and_gradients(self, batch: tuple[Tensor, Tensor]) -> tuple[Tensor, tuple[Tensor, ...]]:
        inputs, gradient = batch
        output = self._operator(inputs)
        gradients = torch.autograd.grad(output, [inputs, *self._trained.values()], gradient.to(output.dtype))
        return output.detach(), gradients

    def _gradients_of_step(self, batch: tuple[Tensor, Tensor]) -> dict[str, np.ndarray]:
        """The gradients that an operator's step computes and discards; those that it leaves out are not there."""
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
        before = {name: tensor.clone() for name, tensor in self._untrained.items()}
        yield
        for name, tensor in self._untrained.items():
            tensor.copy_(before[name])


class _Dropouts(TorchFunctionMode):
    """A record of each call of a function that drops, a module's or a model's own: its name, input and output."""

    def __init__(self) -> None:
        super().__init__()
        self.all: list[tuple[str, Tensor, Tensor]] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, getattr(function, "__name__", "")
        if "dropout" in name:
            given = args[0].clone()  # it may be done in place
            left = function(*args, **kwargs)
            self.all.append((name, given, left.clone()))
            return left
        if name == "scaled_dot_product_attention":
            self.all.append((name, *_attention_weights(function, *args, **kwargs)))
        return function(*args, **kwargs)


def _attention_weights(
    attend: Callable, query: Tensor, key: Tensor, value: Tensor, attn_mask=None, dropout_p=0.0, **others
) -> tuple[Tensor, Tensor]:
    """The weights of an attention that is one operator, without and with its dropout. They are its output with the
    identity in place of the values.
    """
    length = key.shape[-2]
    identity = torch.eye(length, dtype=value.dtype, device=value.device).expand(*value.shape[:-2], length, length)
    return tuple(attend(query, key, identity, attn_mask, p, **others) for p in (0.0, dropout_p))


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
    found = torch.accelerator.current_accelerator(check_available=True)
    if found is None or found.type != name:
        raise BenchlibError(
            f"device {name!r}: torch {torch.__version__} finds {found or 'no accelerator'} here; "
            f"install the build of torch for {name} and its driver, or choose device 'cpu'"
        )
    return found
