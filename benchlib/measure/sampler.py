"""The sampler: reads CPU, memory and GPU beside the blocks, in the parent, only while the parent waits anyway.

One reading costs well under a millisecond of one core, four times a second. GPU figures come from the NVIDIA driver
through NVML and are of the whole device.
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
        self._gpu = _gpu_reader() if worker.condition.device == "cuda" else None
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


def cpu_seconds(workers: list[WorkerProcess]) -> float:
    """CPU seconds that these workers have used so far; one that is gone counts as 0."""
    total = 0.0
    for worker in workers:
        try:
            times = worker.cpu.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system
    return total


def _gpu_reader() -> Callable[[], tuple[float, float]] | None:
    if not machine.gpus():
        return None
    import pynvml

    handle = pynvml.nvmlDeviceGetHandleByIndex(0)

    def read() -> tuple[float, float]:
        return float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu), pynvml.nvmlDeviceGetMemoryInfo(
            handle
        ).used / 2**20

    return read
