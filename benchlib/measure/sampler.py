"""The sampler: reads CPU, memory and GPU beside the blocks, in the parent, only while the parent waits anyway.

One reading costs well under a millisecond of one core, four times a second. GPU figures come from the NVIDIA driver
through NVML: how busy the whole device is, and how much of its memory the worker's process holds. What the driver does
not tell is left out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psutil

from benchlib.measure import machine
from benchlib.measure.processes import WorkerProcess
from benchlib.results import Sample


class Sampler:
    """Collects samples of one worker while it works: call :meth:`tick` now and then, read :attr:`trace`."""

    def __init__(self, worker: WorkerProcess) -> None:
        self.trace: list[Sample] = []
        self._worker = worker.cpu
        self._gpu = _gpu_reader(worker.process.pid) if worker.condition.device == "cuda" else None
        self._last: tuple[float, float, Any] | None = None

    def start(self) -> None:
        """Forget the time since the last sample: the worker was not at work."""
        self._last = self._read()

    def tick(self) -> None:
        """Take a sample of the time since the last one."""
        try:
            now, cpu, machine_times = self._read()
            rss = self._worker.memory_info().rss / 2**20
        except psutil.Error:
            return  # the worker is gone; whoever waits for its answer finds out
        then, cpu_then, machine_then = self._last
        idle = (machine_times.idle + machine_times.iowait) - (machine_then.idle + machine_then.iowait)
        total = sum(machine_times[:8]) - sum(machine_then[:8])
        if total <= 0 or now <= then:
            return
        utilisation, memory = self._gpu() if self._gpu else (None, None)
        self.trace.append(
            Sample(
                at_s=now,
                machine_cpu_percent=100 * (1 - idle / total),
                worker_cores=(cpu - cpu_then) / (now - then),
                rss_mib=rss,
                gpu_percent=utilisation,
                gpu_memory_mib=memory,
            )
        )
        self._last = (now, cpu, machine_times)

    def _read(self) -> tuple[float, float, Any]:
        times = self._worker.cpu_times()
        return time.perf_counter(), times.user + times.system, psutil.cpu_times()


def _gpu_reader(pid: int) -> Callable[[], tuple[float | None, float | None]] | None:
    """Reads the utilisation of the GPU that workers use in percent, and the MiB of it that process ``pid`` holds."""
    import pynvml

    handle = machine.gpu_handle()
    if handle is None:
        return None

    def told(ask: Callable[[], float | None]) -> float | None:
        try:
            return ask()
        except pynvml.NVMLError:  # not supported by this GPU, or not now: a gap in the trace, not the end of it
            return None

    def utilisation() -> float:
        return float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)

    def memory() -> float | None:
        held = [p.usedGpuMemory for p in pynvml.nvmlDeviceGetComputeRunningProcesses(handle) if p.pid == pid]
        return held[0] / 2**20 if held and held[0] is not None else None

    return lambda: (told(utilisation), told(memory))
