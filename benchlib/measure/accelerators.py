"""What the drivers say of an accelerator while a worker uses it: utilisation, memory, power, temperature, clocks and
whether they were throttled. What a driver does not tell is None.

NVIDIA's is asked through NVML, Ascend's through npu-smi (``benchlib.measure.npu_smi``; never run on Ascend).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchlib.errors import BenchlibError
from benchlib.measure import nvml
from benchlib.measure.npu_smi import Npu, Watched, npus
from benchlib.progress import say


@dataclass(frozen=True)
class Reading:
    """One look at the accelerators of a worker. All but ``memory_mib`` are of the whole devices."""

    percent: float | None = None
    memory_mib: float | None = None  # NVIDIA: that the worker's processes hold; Ascend: that is in use
    power_w: float | None = None
    temperature_c: float | None = None
    clock_mhz: float | None = None
    throttled: bool | None = None  # clocks held down by heat or by power


def reader(device: str, pids: Callable[[], Sequence[int]], devices: int = 1) -> Callable[[], Reading] | None:
    """What reads the accelerator that a worker uses, or the first ``devices`` of them, which the processes of a group
    use together: power and memory are summed, utilisation is the mean, the hottest and the slowest count.

    ``pids`` gives the numbers of the worker's processes. None where nobody tells.
    """
    if device == "cuda":
        each = [_nvidia(handle, pids) for handle in nvml.handles()[:devices]]
    elif device == "npu":
        each = [_ascend(chip) for chip in npus()[:devices]]
    else:
        return None
    if not each:
        return None
    return lambda: together([read() for read in each])


def together(readings: Sequence[Reading]) -> Reading:
    """One reading of several devices; what one of them does not tell is not told."""

    def put(name: str, combined: Callable[[list[Any]], Any]) -> Any:
        values = [getattr(reading, name) for reading in readings]
        return None if None in values else combined(values)

    return Reading(
        percent=put("percent", lambda values: sum(values) / len(values)),
        memory_mib=put("memory_mib", sum),
        power_w=put("power_w", sum),
        temperature_c=put("temperature_c", max),
        clock_mhz=put("clock_mhz", min),
        throttled=put("throttled", any),
    )


def _nvidia(handle: Any, pids: Callable[[], Sequence[int]]) -> Callable[[], Reading]:
    import pynvml

    def memory() -> float | None:
        ours = set(pids())
        held = [p.usedGpuMemory for p in nvml.computing(handle) if p.pid in ours]
        return held[0] / 2**20 if held and held[0] is not None else None

    def throttled() -> bool:
        """Idle clocks, and clocks that somebody has set, are no throttling."""
        bits = (
            pynvml.nvmlClocksEventReasonSwPowerCap
            | pynvml.nvmlClocksThrottleReasonHwSlowdown
            | pynvml.nvmlClocksEventReasonSwThermalSlowdown
            | pynvml.nvmlClocksThrottleReasonHwThermalSlowdown
            | pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown
        )
        return bool(pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle) & bits)

    return lambda: Reading(
        percent=nvml.ask(lambda: float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)),
        memory_mib=memory(),
        power_w=nvml.ask(lambda: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000),
        temperature_c=nvml.ask(lambda: float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))),
        clock_mhz=nvml.ask(lambda: float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))),
        throttled=nvml.ask(throttled),
    )


def _ascend(chip: Npu) -> Callable[[], Reading]:
    watched = _watched(chip.npu, chip.chip)

    def read() -> Reading:
        try:
            usage = watched.read()
        except BenchlibError as error:  # told once: what is measured is worth more than what is watched
            _tell_once(str(error))
            return Reading()
        if usage is None:
            return Reading()
        known = usage.memory_percent is not None and chip.memory_total_mib is not None
        return Reading(
            percent=usage.percent,
            memory_mib=usage.memory_percent / 100 * chip.memory_total_mib if known else None,
            power_w=usage.power_w,
            temperature_c=usage.temperature_c,
        )

    return read


@functools.cache
def _tell_once(text: str) -> None:
    say(text)


@functools.cache
def _watched(npu: int, chip: int) -> Watched:
    """One for all workers of this process: starting npu-smi takes seconds."""
    return Watched(npu, chip)
