"""The indicators of one condition's processes: throughput, CPU, memory, the accelerator, how they began."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchlib.cache import Measurement, Sample, final_takes, identity, seconds_by_round
from benchlib.condition import Condition
from benchlib.stats.intervals import Interval, geometric_interval, mean_interval
from benchlib.stats.validity import MOST
from benchlib.worker.warmup import STEADY


def row(
    condition: Condition, good: Sequence[Measurement], slows_down: bool, failed: int, files: Sequence[str]
) -> dict[str, Any]:
    """The row of a condition's successful processes, one of each repetition: see ``Comparison.throughput``."""
    disturbed = _disturbed_share(good)
    timed = [] if slows_down or disturbed > MOST else good  # processes without a throughput are not averaged
    by_round = [list(seconds_by_round(m).values()) for m in timed]
    seconds = geometric_interval([float(np.mean(np.log(values))) for values in by_round if values])
    samples, step_ms = seconds.map(lambda one: 1 / one), 1000 * condition.batch_size
    return {
        **identity(condition),
        **{"samples_per_second": samples.estimate, "low": samples.low, "high": samples.high},
        **_interval_columns("step_ms", seconds.map(lambda one: step_ms * one)),
        "cores_used": _mean(good, lambda m: _cores(m, "cpu_s")),
        **_mean_of("cpu_percent", [100 * _cores(m, "cpu_s") / m.machine["cores"] for m in good]),
        **_mean_of("memory_mib", [m.memory["peak"] for m in good]),
        "memory_steady_mib": _mean(good, lambda m: m.memory["steady"]),
        "memory_private_mib": _mean(good, lambda m: m.memory["private"]),
        "memory_import_mib": _mean(good, lambda m: m.memory["after_import"]),
        "memory_children_mib": _mean(good, lambda m: m.memory["children"]),
        **{name: _trace_mean(good, name) for name in Sample.model_fields if name.startswith("accelerator")},
        **_mean_of("accelerator_percent", list(map(np.mean, _readings(good, "accelerator_percent"))), greatest=100),
        **_mean_of("accelerator_memory_mib", list(map(np.mean, _readings(good, "accelerator_memory_mib")))),
        "joules_per_sample": _trace_mean(good, "accelerator_power_w") * seconds.estimate,
        "device_peak_mib": _mean(good, lambda m: m.memory.get("device_peak", math.nan)),
        "first_step_s": _mean([m for m in good if not m.first_step_disturbed_by], lambda m: m.first_step_s),
        "warm_up_s": _mean([m for m in good if not m.warm_up_disturbed_by], lambda m: m.warm_up_s),
        "steady": _mean(good, lambda m: float(m.steady == STEADY)),
        "slows_down": slows_down,
        "disturbed": disturbed,
        "idle_cores": max((_cores(m, "idle_cpu_s") for m in good), default=math.nan),
        "parent_cores": _mean(good, lambda m: _cores(m, "parent_cpu_s")),
        "processes": len(good),
        "failed": failed,
        "measurements": " ".join(files),
        **_interval_columns("steps_per_second", samples.map(lambda one: one / condition.batch_size)),
    }


def _cores(m: Measurement, name: str) -> float:
    """CPU seconds (a field of a block) per second."""
    blocks = final_takes(m.blocks)
    return sum(getattr(block, name) for block in blocks) / sum(block.wall_s for block in blocks)


def _disturbed_share(measurements: Sequence[Measurement]) -> float:
    """The share of rounds whose block counts although it was disturbed: every take of it was."""
    flags = [block.disturbed for m in measurements for block in final_takes(m.blocks)]
    return sum(flags) / len(flags) if flags else math.nan


def _mean(measurements: Sequence[Measurement], of: Callable[[Measurement], float | None]) -> float:
    return float(np.mean([of(m) for m in measurements])) if measurements else math.nan


def _mean_of(name: str, values: list[float], greatest: float = math.inf) -> dict[str, float | None]:
    """The mean of a value a process, none of them negative, and the ends of its interval."""
    return _interval_columns(name, mean_interval(values, 0, greatest))


def _interval_columns(name: str, interval: Interval) -> dict[str, float | None]:
    return {name: interval.estimate, f"{name}_low": interval.low, f"{name}_high": interval.high}


def _readings(measurements: Sequence[Measurement], name: str) -> list[list[float]]:
    """The sampler's readings, of each process that has any."""
    every = [[getattr(one, name) for one in m.trace if getattr(one, name) is not None] for m in measurements]
    return [of_process for of_process in every if of_process]


def _trace_mean(measurements: Sequence[Measurement], name: str) -> float:
    """Over all readings, whichever process they are of."""
    readings = _readings(measurements, name)
    return float(np.mean(np.concatenate(readings))) if readings else math.nan
