"""The sampler's GPU readings, with a driver made up here."""

import os
import types

import numpy as np
import psutil
import pytest
from synthetic_lab import SyntheticLab

from benchlib.condition import Condition
from benchlib.provenance import machine, nvml
from benchlib.runner.interference import Watch
from benchlib.runner.worker_sessions import Sampler

MIB = 2**20


class NVMLError(Exception):
    pass


@pytest.fixture
def driver(monkeypatch):
    """A driver with two GPUs; the first is 10 % busy, the second 80 %. This process holds 300 MiB of the second."""
    busy = {"GPU-a": 10, "GPU-b": 80}
    slowed = {"GPU-a": 0x1, "GPU-b": 0x4}  # idle; at its limit of power
    held = {"GPU-a": [], "GPU-b": [(4_000_000, 5000 * MIB), (os.getpid(), 300 * MIB)]}

    def known(gpu):
        if gpu not in busy:
            raise NVMLError("no such GPU")
        return gpu

    fake = types.SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=lambda index: known(dict(enumerate(busy)).get(index)),
        nvmlDeviceGetHandleByUUID=known,
        nvmlDeviceGetUUID=lambda handle: handle,
        nvmlDeviceGetName=lambda handle: f"name of {handle}",
        nvmlDeviceGetMemoryInfo=lambda handle: types.SimpleNamespace(total=8192 * MIB, used=6000 * MIB),
        nvmlSystemGetDriverVersion=lambda: "1.2",
        nvmlDeviceGetUtilizationRates=lambda handle: types.SimpleNamespace(gpu=busy[handle]),
        nvmlDeviceGetPowerUsage=lambda handle: 70_000,  # mW
        nvmlDeviceGetTemperature=lambda handle, sensor: 55,
        nvmlDeviceGetClockInfo=lambda handle, clock: 1410,
        nvmlDeviceGetCurrentClocksEventReasons=slowed.get,
        NVML_TEMPERATURE_GPU=0,
        NVML_CLOCK_SM=1,
        nvmlClocksEventReasonSwPowerCap=0x4,
        nvmlClocksThrottleReasonHwSlowdown=0x8,
        nvmlClocksEventReasonSwThermalSlowdown=0x20,
        nvmlClocksThrottleReasonHwThermalSlowdown=0x40,
        nvmlClocksThrottleReasonHwPowerBrakeSlowdown=0x80,
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [
            types.SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in held[handle]
        ],
    )
    monkeypatch.setattr(nvml, "pynvml", fake)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    nvml.handles.cache_clear()
    nvml.gpus.cache_clear()
    yield fake
    nvml.handles.cache_clear()
    nvml.gpus.cache_clear()


def traced(pids=None, **choices):
    """A sample of a worker that is this process, unless it is told of others."""
    pids = pids or [os.getpid()]
    condition = Condition(workload="cnn", device="cuda", **choices)
    sampler = Sampler(types.SimpleNamespace(cpu=psutil.Process(), pids=lambda: pids, condition=condition))
    sampler.start()
    while not sampler.trace:  # the kernel's clock of CPU time ticks a hundred times a second
        sampler.tick()
    return sampler.trace[0]


@pytest.mark.parametrize(
    ("visible", "busy", "memory", "throttled"),  # memory is that of the worker's process; idle is not throttled
    [("1", 80, 300, True), ("GPU-b", 80, 300, True), ("1,0", 80, 300, True), (None, 10, None, False)],
)
def test_the_gpu_that_is_watched_is_the_one_that_workers_see(driver, monkeypatch, visible, busy, memory, throttled):
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    sample = traced()
    assert (sample.accelerator_percent, sample.accelerator_memory_mib) == (busy, memory)
    assert (sample.accelerator_power_w, sample.accelerator_temperature_c) == (70.0, 55.0)
    assert (sample.accelerator_clock_mhz, sample.accelerator_throttled) == (1410.0, throttled)


@pytest.mark.parametrize("visible", ["", "-1", "7", "GPU-z"])
def test_a_gpu_that_is_hidden_is_not_there(driver, monkeypatch, visible):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert nvml.gpus() == ()
    assert traced().accelerator_percent is None


def test_of_a_group_all_its_gpus_are_watched(driver):
    driver.nvmlDeviceGetComputeRunningProcesses = lambda handle: [
        types.SimpleNamespace(pid={"GPU-a": 11, "GPU-b": 12}[handle], usedGpuMemory=100 * MIB),
        types.SimpleNamespace(pid=13, usedGpuMemory=5000 * MIB),
    ]
    sample = traced(pids=(11, 12), world_size=2)
    assert (sample.accelerator_percent, sample.accelerator_power_w) == (45.0, 140.0), "the mean, and the sum"
    assert (sample.accelerator_memory_mib, sample.accelerator_throttled) == (200, True), "of its own processes; of one"


def test_a_gpu_that_does_not_tell_its_memory_is_there_all_the_same(driver):
    driver.nvmlDeviceGetMemoryInfo = lambda handle: driver.nvmlDeviceGetHandleByUUID("none")
    assert [gpu["memory_mib"] for gpu in nvml.gpus()] == [None, None]
    machine.describe.cache_clear()
    assert machine.describe()["gpus"][0] == "name of GPU-a, memory unknown, driver 1.2"
    machine.describe.cache_clear()


def test_a_stranger_on_the_gpu_disturbs_a_block(driver, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")  # on which there are this process and another one

    def worker(device, ended=None):
        condition = Condition(workload="cnn", device=device)
        process = types.SimpleNamespace(pid=os.getpid(), poll=lambda: ended)
        counts = {"restless": False, "unasked_s": 0.0, "watched_s": 0.0}
        return types.SimpleNamespace(cpu=psutil.Process(), process=process, condition=condition, **counts)

    seen = Watch(worker("cuda"), []).end()
    assert (seen.others_gpu, seen.disturbed) == (1, True)
    assert Watch(worker("cuda"), [worker("cuda")]).end().others_gpu == 0, "two workers of the comparison"
    for no_user in (worker("cpu"), worker("cuda", ended=1)):
        assert Watch(worker("cuda"), [no_user]).end().others_gpu == 1


def test_without_a_driver_there_is_no_gpu(driver):
    driver.nvmlInit = lambda: driver.nvmlDeviceGetHandleByUUID("none")
    assert (nvml.gpus(), nvml.handles()) == ((), [])


def test_energy_is_power_by_time(tmp_path):
    on_gpu = Condition(workload="cnn", device="cuda", batch_size=50)
    lab = SyntheticLab(tmp_path, step=lambda condition: 0.1)
    comparison = lab.compare([on_gpu.but(device="cpu"), on_gpu], precision=0.03, budget_s=60, block_s=0.1)
    frame = comparison.throughput().set_index("device")
    assert frame.loc["cuda", "joules_per_sample"] == pytest.approx(70 * 0.1 / 50, rel=0.02)
    assert frame.loc["cuda", "accelerator_temperature_c"] == 60
    assert np.isnan(frame.loc["cpu", "joules_per_sample"])
    assert np.isnan(frame.loc["cuda", "accelerator_throttled"]), "this driver does not tell"
