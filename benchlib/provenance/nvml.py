"""The GPUs that workers may use, read from NVIDIA's driver through NVML (the extra ``nvidia``)."""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

try:
    import pynvml
except ModuleNotFoundError:
    pynvml = None


@functools.cache
def gpus() -> tuple[dict[str, Any], ...]:
    """NVIDIA GPUs that workers may use (CUDA_VISIBLE_DEVICES): name, memory in MiB, driver."""
    return tuple(
        {
            "name": ask(lambda one=handle: pynvml.nvmlDeviceGetName(one), "a GPU without a name"),
            "memory_mib": ask(lambda one=handle: pynvml.nvmlDeviceGetMemoryInfo(one).total / 2**20),
            "driver": ask(pynvml.nvmlSystemGetDriverVersion, "unknown"),
        }
        for handle in handles()
    )


@functools.cache
def handles() -> list[Any]:
    """The handles of the GPUs of CUDA_VISIBLE_DEVICES, in order, up to the first missing one, as CUDA reads it."""
    if pynvml is None or not ask(lambda: pynvml.nvmlInit() or True, False):
        return []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = visible.split(",") if visible is not None else map(str, range(ask(pynvml.nvmlDeviceGetCount, 0)))
    seen = (ask(lambda one=name: _find_handle(one.strip())) for name in names)
    return list(itertools.takewhile(lambda handle: handle is not None, seen))


def ask(question: Callable[[], Any], otherwise: Any = None) -> Any:
    """NVML's answer; ``otherwise`` where it has none: this GPU does not support it, or not now."""
    try:
        return question()
    except pynvml.NVMLError:
        return otherwise


def compute_processes(handle: Any) -> list[Any]:
    """The processes that compute on a GPU: ``pid``, and ``usedGpuMemory`` (or None); none where they are unknown."""
    return ask(lambda: pynvml.nvmlDeviceGetComputeRunningProcesses(handle), [])


def why_missing() -> str | None:
    """The reason why workers may use no GPU, and the remedy; None where they may."""
    if pynvml is None and any(Path("/dev").glob("nvidia[0-9]*")):
        return "an NVIDIA GPU, but nothing to ask its driver with: pip install 'benchlib[nvidia]', or use device 'cpu'"
    if gpus():
        return None
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    shown = "" if visible is None else f", and CUDA_VISIBLE_DEVICES is {visible!r}"
    return f"the NVIDIA driver shows no GPU (nvidia-smi tells why){shown}; use device 'cpu'"


def _find_handle(name: str) -> Any:
    """NVML's handle by index, or by UUID or its beginning, as CUDA takes them."""
    if name.isdigit():
        return pynvml.nvmlDeviceGetHandleByIndex(int(name))
    for index in range(pynvml.nvmlDeviceGetCount()):
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
        if name and pynvml.nvmlDeviceGetUUID(handle).startswith(name):
            return handle
    return pynvml.nvmlDeviceGetHandleByUUID(name)  # a part of a GPU (MIG), or none
