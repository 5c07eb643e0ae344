"""What a measurement ran on: the host's processors, memory, accelerators and system."""

from __future__ import annotations

import functools
import os
import platform
import re
from pathlib import Path
from typing import Any

import psutil

from benchlib.measure import ascend, npu_smi, nvml


@functools.cache
def describe() -> dict[str, Any]:
    """The machine in words and numbers, for a report: cpu, cores, memory in GiB, GPUs, NPUs, system."""
    return {
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "gpus": [f"{gpu['name']}, {_mib(gpu['memory_mib'])}, driver {gpu['driver']}" for gpu in nvml.gpus()],
        "npus": [f"Ascend {one.name.removeprefix('Ascend')}, {_mib(one.memory_total_mib)}" for one in npu_smi.npus()],
        "cann": ascend.cann(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "virtual": "hypervisor" in _cpuinfo(),
        "governor": _first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "huge_pages": _first_line("/sys/kernel/mm/transparent_hugepage/enabled"),
    }


def identity(device: str) -> dict[str, Any]:
    """What of the machine a measurement on ``device`` depends on: a part of its key."""
    of_device = {"cuda": ("gpus",), "npu": ("npus", "cann")}.get(device, ())
    names = ("cpu", "cores", "memory_gib", "governor", "huge_pages", *of_device)
    return {name: describe()[name] for name in names}


def _mib(size: float | None) -> str:
    return "memory not told" if size is None else f"{size:.0f} MiB"


def _cpuinfo() -> str:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return ""


def _cpu_name() -> str:
    match = re.search(r"^model name\s*:\s*(.+)$", _cpuinfo(), re.MULTILINE)
    return match.group(1) if match else platform.processor()


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()[0]
    except (OSError, IndexError):
        return "unknown"
