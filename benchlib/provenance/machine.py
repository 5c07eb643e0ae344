"""The machine of a measurement: the host's processors, memory, accelerators and system."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil

from benchlib.errors import BenchlibError, quote
from benchlib.provenance import npu_smi, nvml

HOST = "BENCHLIB_HOST"  # a name for this host, where nothing else tells it from others
OWN_GROUPS, GROUPS = Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")  # of a process, and where they are mounted


@functools.cache
def describe() -> dict[str, Any]:
    """The machine in words and numbers, for a report."""
    about_cpu, npus = read(Path("/proc/cpuinfo")), npu_smi.npus()
    cpu = re.search(r"^model name\s*:\s*(.+)$", about_cpu, re.MULTILINE)
    about = {
        "cpu": cpu[1] if cpu else platform.processor(),
        "cores": len(cpus()),
        "cpu_quota": min((quota for _, quota in quotas()), default=None),  # in cores; a container's, a batch system's
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
        "gpus": [f"{gpu['name']}, {_mib(gpu['memory_mib'])}, driver {gpu['driver']}" for gpu in nvml.gpus()],
        "npus": [f"Ascend {one['name'].removeprefix('Ascend')}, {_mib(one['memory_total_mib'])}" for one in npus],
        "cann": npu_smi.cann(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "virtual": "hypervisor" in about_cpu,
        "governor": _first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "huge_pages": _first_line("/sys/kernel/mm/transparent_hugepage/enabled"),
    }
    return {"host": _host(about), **about}


def _host(about: dict[str, Any]) -> str:
    """The name by ``HOST``, else hostname and a hash of it, machine-id and hardware; with the CPU quota, if any."""
    named, quota = os.environ.get(HOST), about["cpu_quota"]
    if named and not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", named):
        raise BenchlibError(f"{HOST}: {quote(named)}: give letters, digits and . _ -, 64 of them at most")
    parts = [read(Path("/etc/machine-id")), platform.node(), about["cpu"], os.cpu_count(), about["memory_gib"]]
    name = named or f"{platform.node()}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:8]}"
    return f"{name}, {quota:g} cores at most" if quota else name


def identity(device: str) -> dict[str, Any]:
    """The parts of the machine that a measurement on ``device`` depends on: a part of its key."""
    of_device = {"cuda": ("gpus",), "npu": ("npus", "cann")}.get(device, ())
    names = ("host", "cpu", "cores", "cpu_quota", "memory_gib", "governor", "huge_pages", *of_device)
    return {name: describe()[name] for name in names}


def cpus() -> set[int]:
    """The processors that this process and its workers may use, by number."""
    return os.sched_getaffinity(os.getpid())  # of the process: a thread of the gate may be bound to a few


def quotas() -> Iterator[tuple[Path, float]]:
    """The control groups that limit this process's CPU time, each with its limit in cores."""
    for group in control_groups("cpu"):
        version_1 = f"{read(group / 'cpu.cfs_quota_us')} {read(group / 'cpu.cfs_period_us')}"
        quota, _, period = (read(group / "cpu.max") or version_1).partition(" ")
        if quota.isdecimal() and period.isdecimal():  # else "max", or -1
            yield group, int(quota) / int(period)


def control_groups(controller: str) -> Iterator[Path]:
    """The folders of this process's control groups (versions 1 and 2) and of those that hold them; not all exist."""
    for line in read(OWN_GROUPS).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        top = GROUPS / controller if controllers else GROUPS
        group = top / path.lstrip("/")
        yield from (folder for folder in (group, *group.parents) if folder.is_relative_to(top))


def read(file: Path) -> str:
    """Its text; empty where it cannot be read."""
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _mib(size: float | None) -> str:
    return "memory unknown" if size is None else f"{size:.0f} MiB"


def _first_line(path: str) -> str:
    return read(Path(path)).partition("\n")[0] or "unknown"
