"""Was a block alone on the machine? What others used of it meanwhile, and the workers that should have slept.

CPU time is counted by the system in hundredths of a second a core, so a block of 0.15 s shows a disturbance of a third
of a core, a block of 1 s one of a tenth.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

import psutil

from benchlib.measure import machine
from benchlib.measure.processes import WorkerProcess

SHARE = 0.1
"""Cores that others may use before a block counts as disturbed; of a large machine a fiftieth, if that is more."""

LEAST_S = 0.05
"""CPU seconds below which nothing can be said: five hundredths, one for each clock that is read."""


@dataclass(frozen=True)
class Seen:
    """What went on beside a block."""

    idle_cpu_s: float
    others_cpu_s: float
    parent_cpu_s: float
    others_gpu: int
    disturbed: bool


class Watch:
    """Watches the machine from its construction to :meth:`end`, for a block of ``worker``."""

    def __init__(self, worker: WorkerProcess, others: list[WorkerProcess]) -> None:
        self._worker, self._others = worker, others
        self._parent_s = time.process_time()
        self._started = time.perf_counter()
        self._before = self._read()

    def end(self) -> Seen:
        """What has gone on since; a worker that worked although it was not asked is marked as restless."""
        self.window_s = time.perf_counter() - self._started
        machine_s, ours_s, own_s, idle = (
            now - before if not isinstance(now, dict) else {pid: now[pid] - before.get(pid, now[pid]) for pid in now}
            for now, before in zip(self._read(), self._before, strict=True)
        )
        for worker in self._others:  # over all blocks beside which it should have slept: one block is short
            worker.unasked_s += idle.get(worker.process.pid, 0.0)
            worker.watched_s += self.window_s
            worker.restless = worker.restless or _too_much(worker.unasked_s, worker.watched_s)
        idle_s = sum(idle.values())
        others_s = max(0.0, machine_s - ours_s - own_s - idle_s)
        gpu = _strangers_on_gpu([self._worker, *self._others]) if self._worker.condition.device == "cuda" else 0
        disturbed = _too_much(others_s, self.window_s) or _too_much(idle_s, self.window_s) or gpu > 0
        return Seen(idle_s, others_s, time.process_time() - self._parent_s, gpu, disturbed)

    def _read(self) -> tuple[float, float, float, dict[int, float]]:
        """CPU seconds so far: of the machine, this process, the worker, and each of the others."""
        times = psutil.cpu_times()
        busy = sum(times[:8]) - times.idle - times.iowait  # guests are in user already
        own = os.times()
        idle = {other.process.pid: _cpu_s(other) for other in self._others}
        return busy, own.user + own.system, _cpu_s(self._worker), idle


def hold_still(workers: list[WorkerProcess]) -> None:
    """Stop those of ``workers`` that have been seen at work when it was another's turn."""
    for worker in workers:
        if worker.restless and not worker.held:
            worker.hold()


def _too_much(seconds: float, window_s: float) -> bool:
    cores = max(SHARE, 0.02 * psutil.cpu_count())
    return seconds > max(LEAST_S, cores * window_s)


def _cpu_s(worker: WorkerProcess) -> float:
    """CPU seconds of a worker so far; 0 for one that is gone."""
    try:
        times = worker.cpu.cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system


def _strangers_on_gpu(workers: list[WorkerProcess]) -> int:
    """Processes that compute on the GPU beside ours. Counted, not compared by number: a container has its own."""
    import pynvml

    ours = sum(worker.condition.device == "cuda" and worker.process.poll() is None for worker in workers)

    handles = machine.gpu_handles()
    try:
        return max(0, len(pynvml.nvmlDeviceGetComputeRunningProcesses(handles[0])) - ours) if handles else 0
    except pynvml.NVMLError:
        return 0
