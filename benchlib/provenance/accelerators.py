"""Readings of an accelerator while a worker uses it: NVIDIA's through NVML, Ascend's through npu-smi."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from benchlib.provenance import npu_smi, nvml


@dataclass(frozen=True)
class Reading:
    """One look at the accelerators of a worker. All but ``memory_mib`` are of the whole devices. None: not known."""

    percent: float | None = None
    memory_mib: float | None = None  # NVIDIA: that the worker's processes hold; Ascend: that is in use
    power_w: float | None = None
    temperature_c: float | None = None
    clock_mhz: float | None = None
    throttled: bool | None = None  # clocks held down by heat or by power


OF_SEVERAL: dict[str, Callable[[list[Any]], Any]] = {
    "percent": statistics.fmean,
    "memory_mib": sum,
    "power_w": sum,
    "temperature_c": max,
    "clock_mhz": min,
    "throttled": any,
}
"""The functions that put the values of several devices together."""


def reader(device: str, pids: Callable[[], Sequence[int]], devices: int = 1) -> Callable[[], Reading] | None:
    """A reader of the first ``devices`` accelerators, which ``pids`` use; None where no driver can be asked."""
    if device == "cuda" and nvml.handles():
        return lambda: _together([_nvidia(handle, pids()) for handle in nvml.handles()[:devices]])
    if device == "npu" and npu_smi.npus():
        return lambda: _together([_ascend(chip) for chip in _npus().read()[:devices]])
    return None


def _together(readings: Sequence[Reading]) -> Reading:
    """One reading of several devices; a value that one of them does not give is left out."""
    values = {name: [getattr(reading, name) for reading in readings] for name in OF_SEVERAL}
    known = {name: several for name, several in values.items() if several and None not in several}
    return Reading(**{name: OF_SEVERAL[name](several) for name, several in known.items()})


def _nvidia(handle: Any, pids: Sequence[int]) -> Reading:
    driver = nvml.pynvml
    held = [one.usedGpuMemory for one in nvml.compute_processes(handle) if one.pid in pids]
    slowed = (  # by heat or power; idle clocks, and clocks set by hand, are not
        driver.nvmlClocksEventReasonSwPowerCap
        | driver.nvmlClocksThrottleReasonHwSlowdown
        | driver.nvmlClocksEventReasonSwThermalSlowdown
        | driver.nvmlClocksThrottleReasonHwThermalSlowdown
        | driver.nvmlClocksThrottleReasonHwPowerBrakeSlowdown
    )
    return Reading(
        percent=nvml.ask(lambda: float(driver.nvmlDeviceGetUtilizationRates(handle).gpu)),
        memory_mib=held[0] / 2**20 if held and held[0] is not None else None,
        power_w=nvml.ask(lambda: driver.nvmlDeviceGetPowerUsage(handle) / 1000),
        temperature_c=nvml.ask(lambda: float(driver.nvmlDeviceGetTemperature(handle, driver.NVML_TEMPERATURE_GPU))),
        clock_mhz=nvml.ask(lambda: float(driver.nvmlDeviceGetClockInfo(handle, driver.NVML_CLOCK_SM))),
        throttled=nvml.ask(lambda: bool(driver.nvmlDeviceGetCurrentClocksEventReasons(handle) & slowed)),
    )


def _ascend(chip: dict[str, Any]) -> Reading:
    return Reading(**{name: chip[name] for name in ("percent", "memory_mib", "power_w", "temperature_c")})


_npus = functools.cache(npu_smi.Chips)  # one for all workers of this process
