"""Stands in for Ascend's torch_npu: brings a device ``npu`` into torch, on host memory (device.cpp), with a backend
``hccl`` over gloo. For tests only; it says nothing of Ascend.
"""

from __future__ import annotations

import types
from pathlib import Path

import torch
from torch import distributed
from torch.utils import cpp_extension

HERE = Path(__file__).parent
BUILD = HERE / "build"  # 2 to 3 minutes the first time


class Hccl(distributed.ProcessGroup):
    """Collectives of npu tensors, by way of gloo's of copies on the CPU."""

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self._gloo = distributed.ProcessGroupGloo(store, rank, size, timeout)

    def getBackendName(self):  # noqa: N802: torch's name
        return "hccl"

    def allreduce(self, tensors, options=None):
        return self._done(tensors, lambda copies: self._gloo.allreduce(copies, options))

    def broadcast(self, tensors, options=None):
        return self._done(tensors, lambda copies: self._gloo.broadcast(copies, options))

    def allgather(self, outputs, inputs, options=None):
        copies = [[one.cpu() for one in each] for each in outputs]
        self._gloo.allgather(copies, [one.cpu() for one in inputs]).wait()
        for of, found in zip(outputs, copies, strict=True):
            for one, copy in zip(of, found, strict=True):
                one.copy_(copy)
        return _Done([one for of in outputs for one in of])

    def barrier(self, options=None):
        self._gloo.barrier().wait()
        return _Done([])

    def _done(self, tensors, collective):
        copies = [tensor.cpu() for tensor in tensors]
        collective(copies).wait()
        for tensor, copy in zip(tensors, copies, strict=True):
            tensor.copy_(copy)
        return _Done(tensors)


class _Done(distributed._Work):
    def __init__(self, result):
        super().__init__()
        self._future = torch.futures.Future()
        self._future.set_result(result)

    def wait(self, timeout=None):
        return True

    def is_completed(self):
        return True

    def get_future(self):
        return self._future


def _module() -> types.ModuleType:
    """What torch asks of a device's module."""
    module = types.ModuleType("torch.npu")
    module.is_available = lambda: True
    module.is_initialized = lambda: True
    module.device_count = lambda: 2
    module.current_device = torch.accelerator.current_device_index
    module.get_device_name = lambda device=None: "simulated npu on host memory"
    module.get_amp_supported_dtype = lambda: [torch.float16, torch.bfloat16]
    module.manual_seed_all = lambda seed: None  # operators run on the CPU, with its generator
    module._is_in_bad_fork = lambda: False
    return module


def build() -> None:
    """Compile the device, unless it is there."""
    BUILD.mkdir(exist_ok=True)
    cpp_extension.load(
        name="simulated_npu",
        sources=[str(HERE / "device.cpp")],
        build_directory=str(BUILD),
        extra_cflags=["-O1"],
        is_python_module=False,
    )


build()
torch.utils.rename_privateuse1_backend("npu")
torch._register_device_module("npu", _module())
torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
distributed.Backend.register_backend(
    "hccl", lambda store, rank, size, timeout: Hccl(store, rank, size, timeout), devices=["npu"]
)
