"""Was a block alone on the machine, and like the other blocks of its process?

Others count on the processors that this process may use, in hundredths of a second a core. A block of 0.15 s shows a
third of a core, one of 1 s a tenth. A worker that was stopped within a block (a paused container, a hypervisor) leaves
no such trace. Its block is far from the process's others, or longer with less CPU time a second.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import NamedTuple

import psutil

from benchlib.cache import Block
from benchlib.provenance import machine, nvml
from benchlib.runner.processes import WorkerProcess

SHARE = 0.1  # cores that others may use, or a quota take, undisturbed; or a fiftieth of ours, if more
LEAST_S = 0.05  # CPU seconds below which nothing can be said: five hundredths, one for each clock that is read
FAR = 3.0  # times the usual step, or this part of it: far off. (Beside neighbours blocks vary by 2 times: that counts.)
LEAST_CORES = 0.5  # on fewer, and fewer than the ``FAR``-th part of the usual, a block had next to no CPU time
SLOWER = 1.5  # times the usual step, on fewer cores than this part of the usual: the block was stopped for a part of it

OTHERS, IDLE_WORKERS, ON_GPU = "other processes", "the other workers", "others on the GPU"
THROTTLED, STOPPED = "a CPU quota", "stopped for a part of it"
FAR_OFF, NO_CPU = "far from the process's other blocks", "next to no CPU time"
"""The causes of a disturbed block."""


class Pace(NamedTuple):
    """The pace of a process for a while."""

    step_s: float
    cores: float


class Watch:
    """Watches the machine until :meth:`end`, for a block of ``worker``, its children included while it ``compiles``."""

    def __init__(self, worker: WorkerProcess, others: list[WorkerProcess], compiles: bool = False) -> None:
        self._worker, self._others = worker, others
        self._compiles, self._own_s = compiles, with_children_s if compiles else cpu_s
        self._parent_s, self._throttled_s = time.process_time(), throttled_s()
        self._started = time.perf_counter()
        self._before = self._read()

    def end(self) -> SimpleNamespace:
        """The load since the start, in fields of a ``Block``; a worker that worked unasked is marked as restless."""
        self.window_s = time.perf_counter() - self._started
        machine_s, ours_s, self.own_s, *idle = (
            now - before for now, before in zip(self._read(), self._before, strict=True)
        )
        others_s = max(0.0, machine_s - ours_s - self.own_s - sum(idle))
        throttled = throttled_s() - self._throttled_s
        gpu = _strangers_on_gpu([self._worker, *self._others]) if self._worker.condition.device == "cuda" else 0
        causes = {
            OTHERS: _too_much(others_s, self.window_s),
            IDLE_WORKERS: _too_much(sum(idle), self.window_s),
            ON_GPU: gpu > 0,
            THROTTLED: _too_much(throttled, self.window_s),
        }
        for worker, seconds in [] if self._compiles else zip(self._others, idle, strict=True):
            worker.unasked_s += seconds  # over all blocks: one is short
            worker.watched_s += self.window_s
            worker.restless = worker.restless or _too_much(worker.unasked_s, worker.watched_s)
            worker.restless = worker.restless or (causes[OTHERS] and _has_children_at_work(worker))
        seen = SimpleNamespace(idle_cpu_s=sum(idle), others_cpu_s=others_s, throttled_s=throttled, others_gpu=gpu)
        seen.parent_cpu_s = time.process_time() - self._parent_s
        seen.disturbed_by = ", ".join(cause for cause, there in causes.items() if there)
        seen.disturbed = bool(seen.disturbed_by)
        return seen

    def _read(self) -> list[float]:
        """CPU seconds so far: of the processors that we may use, this process, the worker, and each of the others."""
        each = dict(enumerate(psutil.cpu_times(percpu=True)))
        mine = machine.cpus() if machine.cpus() <= each.keys() else each  # else some are offline, and have no number
        busy = sum(sum(each[cpu][:8]) - each[cpu].idle - each[cpu].iowait for cpu in mine)  # guests are in user already
        own = os.times()
        return [busy, own.user + own.system, self._own_s(self._worker), *map(cpu_s, self._others)]


def was_stopped(chunks: Sequence[tuple[float, float]]) -> bool:
    """Had a process next to no CPU time for more than a tenth of its warm-up, by wall and CPU seconds of each chunk?"""
    cores = [cpu / wall for wall, cpu in chunks]
    least = min(LEAST_CORES, statistics.median_high(cores) / FAR)
    stopped = sum(wall for (wall, _), used in zip(chunks, cores, strict=True) if used < least)
    return stopped > max(LEAST_S, SHARE * sum(wall for wall, _ in chunks))


def mark_outliers(blocks: Sequence[Block], device: str, warm_up: Pace | None) -> None:
    """Mark the outliers of a process's blocks: far from the median of its undisturbed blocks and the ``warm_up``.
    Without a warm-up the first block may compile, so it may take long. The marks of the last call count.
    """
    alone = [block for block in blocks if block.disturbed_by in ("", FAR_OFF, NO_CPU, STOPPED)]
    if not alone:
        return
    paces = [Pace(block.wall_s / block.steps, block.cores_used) for block in alone]
    known = [*paces, *([] if warm_up is None else [warm_up])]
    usual_s = statistics.median_low([pace.step_s for pace in known])
    usual_cores = statistics.median_high([pace.cores for pace in known])
    for block, (step_s, cores) in zip(alone, paces, strict=True):
        settled = warm_up is not None or block is not blocks[0]
        starved = device == "cpu" and cores < min(LEAST_CORES, usual_cores / FAR)
        far = settled and not usual_s / FAR <= step_s <= usual_s * FAR
        stopped = device == "cpu" and settled and step_s > SLOWER * usual_s and cores < usual_cores / SLOWER
        block.disturbed_by = NO_CPU if starved else FAR_OFF if far else STOPPED if stopped else ""
        block.disturbed = bool(block.disturbed_by)


def hold_still(workers: list[WorkerProcess]) -> None:
    """Stop those of ``workers`` that have been seen at work when it was another's turn."""
    for worker in workers:
        if worker.restless and not worker.held:
            worker.hold()


def cpu_s(worker: WorkerProcess) -> float:
    """CPU seconds of a worker so far; 0 for one that is gone."""
    try:
        times = worker.cpu.cpu_times()
    except psutil.Error:
        return 0.0
    return times.user + times.system


def throttled_s() -> float:
    """Core seconds for which CPU quotas have kept the processes of our control groups from running."""
    total = 0.0
    for group, _ in machine.quotas():
        stat = dict(line.split() for line in machine.read(group / "cpu.stat").splitlines())
        total += int(stat.get("throttled_usec", 0)) / 1e6 + int(stat.get("throttled_time", 0)) / 1e9  # versions 2 and 1
    return total


def with_children_s(worker: WorkerProcess) -> float:
    """CPU seconds of a worker and of all that it has started so far, ended or not; 0 for one that is gone."""
    total = 0.0
    with contextlib.suppress(psutil.Error):
        root = psutil.Process(worker.process.pid)
        for process in [root, *root.children(recursive=True)]:
            with contextlib.suppress(psutil.Error):
                total += sum(process.cpu_times()[:4])  # user and system, own and of its children
    return total


def _has_children_at_work(worker: WorkerProcess) -> bool:
    """Have the processes that it has started worked since this was asked last?"""
    now, seen_s = time.monotonic(), sum(worker.map_children(lambda child: sum(child.cpu_times()[:2])))
    before, worker.children_seen = worker.children_seen, (seen_s, now)
    return before is not None and _too_much(seen_s - before[0], now - before[1])


def _too_much(seconds: float, window_s: float) -> bool:
    cores = max(SHARE, 0.02 * len(machine.cpus()))
    return seconds > max(LEAST_S, cores * window_s)


def _strangers_on_gpu(workers: list[WorkerProcess]) -> int:
    """Processes that compute on the GPU beside ours. Counted, not compared by number: a container has its own."""
    ours = sum(worker.condition.device == "cuda" and worker.process.poll() is None for worker in workers)
    return max(0, sum(len(nvml.compute_processes(handle)) for handle in nvml.handles()[:1]) - ours)
