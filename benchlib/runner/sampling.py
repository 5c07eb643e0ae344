"""The sampler: reads CPU, memory and the accelerator beside the blocks, in the parent, only while the parent waits
anyway.

One reading costs well under a millisecond of one core; it is made four times a second, and at the end of a block. What
the accelerator's driver does not tell is left out.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import psutil

from benchlib.provenance import accelerators
from benchlib.runner.processes import WorkerProcess
from benchlib.store import Sample


class Sampler:
    """Collects samples of one worker while it works: call :meth:`tick` now and then, read :attr:`trace`."""

    def __init__(self, worker: WorkerProcess) -> None:
        self.trace: list[Sample] = []
        self._process, self._worker = worker, worker.cpu
        self._accelerator = accelerators.reader(worker.condition.device, worker.pids, worker.condition.world_size)
        self._last: tuple[float, float, Any] | None = None

    def start(self) -> None:
        """Forget the time since the last sample: the worker was not at work."""
        try:
            self._last = self._read()
        except psutil.Error as error:  # of a group's process, which its launcher has already reaped
            raise self._process.failed(f"died: {error}") from error

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
        reading = asdict(self._accelerator()) if self._accelerator else {}
        self.trace.append(
            Sample(
                at_s=now,
                machine_cpu_percent=100 * (1 - idle / total),
                worker_cores=(cpu - cpu_then) / (now - then),
                rss_mib=rss,
                **{f"accelerator_{name}": value for name, value in reading.items()},
            )
        )
        self._last = (now, cpu, machine_times)

    def _read(self) -> tuple[float, float, Any]:
        times = self._worker.cpu_times()
        return time.perf_counter(), times.user + times.system, psutil.cpu_times()
