"""The sampler's GPU readings, with a driver made up here: no GPU has been at hand."""

from __future__ import annotations

import os
import sys
import types

import psutil
import pytest

from benchlib.condition import Condition
from benchlib.measure import machine
from benchlib.measure.disturbance import Watch
from benchlib.measure.sampler import Sampler

MIB = 2**20


class NVMLError(Exception):
    pass


@pytest.fixture
def driver(monkeypatch):
    """A driver with two GPUs; the first is 10 % busy, the second 80 %. This process holds 300 MiB of the second."""
    busy = {"GPU-a": 10, "GPU-b": 80}
    held = {"GPU-a": [], "GPU-b": [(4_000_000, 5000 * MIB), (os.getpid(), 300 * MIB)]}

    def by_index(index):
        if index > 1:
            raise NVMLError("no such GPU")
        return list(busy)[index]

    def by_uuid(uuid):
        if uuid not in busy:
            raise NVMLError("no such GPU")
        return uuid

    fake = types.SimpleNamespace(
        NVMLError=NVMLError,
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: 2,
        nvmlDeviceGetHandleByIndex=by_index,
        nvmlDeviceGetHandleByUUID=by_uuid,
        nvmlDeviceGetUUID=lambda handle: handle,
        nvmlDeviceGetName=lambda handle: f"name of {handle}",
        nvmlDeviceGetMemoryInfo=lambda handle: types.SimpleNamespace(total=8192 * MIB, used=6000 * MIB),
        nvmlSystemGetDriverVersion=lambda: "1.2",
        nvmlDeviceGetUtilizationRates=lambda handle: types.SimpleNamespace(gpu=busy[handle]),
        nvmlDeviceGetComputeRunningProcesses=lambda handle: [
            types.SimpleNamespace(pid=pid, usedGpuMemory=size) for pid, size in held[handle]
        ],
    )
    monkeypatch.setitem(sys.modules, "pynvml", fake)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    machine._gpu_handles.cache_clear()
    machine.gpus.cache_clear()
    yield fake
    machine._gpu_handles.cache_clear()
    machine.gpus.cache_clear()


def traced():
    """A sample of a worker that is this process."""
    me = types.SimpleNamespace(pid=os.getpid())
    condition = Condition(workload="cnn", device="cuda")
    sampler = Sampler(types.SimpleNamespace(cpu=psutil.Process(), process=me, condition=condition))
    sampler.start()
    while not sampler.trace:  # the kernel's clock of CPU time ticks a hundred times a second
        sampler.tick()
    return sampler.trace[0]


@pytest.mark.parametrize(
    ("visible", "busy", "memory"), [("1", 80, 300), ("GPU-b", 80, 300), ("1,0", 80, 300), (None, 10, None)]
)
def test_the_gpu_that_is_watched_is_the_one_that_workers_see(driver, monkeypatch, visible, busy, memory):
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    sample = traced()
    assert (sample.gpu_percent, sample.gpu_memory_mib) == (busy, memory), "memory is that of the worker's process"


@pytest.mark.parametrize("visible", ["", "-1", "7", "GPU-z"])
def test_a_gpu_that_is_hidden_is_not_there(driver, monkeypatch, visible):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert machine.gpus() == ()
    assert traced().gpu_percent is None


def test_what_the_driver_does_not_tell_is_a_gap_and_no_end(driver):
    def refuse(handle):
        raise NVMLError("not supported")

    driver.nvmlDeviceGetUtilizationRates = driver.nvmlDeviceGetComputeRunningProcesses = refuse
    sample = traced()
    assert (sample.gpu_percent, sample.gpu_memory_mib) == (None, None)
    assert sample.rss_mib > 10


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
    def refuse():
        raise NVMLError("no driver")

    driver.nvmlInit = refuse
    assert machine.gpus() == ()
    assert machine.gpu_handle() is None
