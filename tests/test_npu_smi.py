"""What is read of ``npu-smi``, from output that others recorded. Never run on Ascend."""

import os
import types
from pathlib import Path

import psutil
import pytest
from patience import until

from benchlib.condition import Condition
from benchlib.provenance import accelerators, machine, npu_smi
from benchlib.runner.worker_sessions import Sampler

# Of drivers 24.1 and 26.0, as users have shown it in public reports, shortened.
ONE_CHIP = """
+------------------------------------------------------------------------------------------------+
| npu-smi 24.1.1                   Version: 24.1.1                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B4               | OK            | 88.2        30                0    / 0             |
| 0                         | 0000:C1:00.0  | 7           0    / 0          26838/ 32768         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| 0       0                 | 2107          | python                   | 23900                   |
+===========================+===============+====================================================+
"""
TWO_CHIPS = """
+------------------------------------------------------------------------------------------------------------------+
| npu-smi 26.0.rc2                            Version: 26.0.rc2                                                    |
+---------------------------+---------------+----------------------------------------------------------------------+
| NPU   Name                | Health        | Power(W)             Temp(C)                 Hugepages-Usage(page)   |
| Chip  Phy-ID              | Bus-Id        | AICore(%)            Memory-Usage(MB)        HBM-Usage(MB)           |
+===========================+===============+======================================================================+
| 0     Ascend910           | OK            | 162.6                34                      0    / 0                |
| 0     0                   | 0000:9D:00.0  | 0                    0    / 0                3419 / 65536            |
+------------------------------------------------------------------------------------------------------------------+
| 0     Ascend910           | OK            | -                    34                      0    / 0                |
| 1     1                   | 0000:9F:00.0  | 0                    0    / 0                2874 / 65536            |
+===========================+===============+======================================================================+
"""


@pytest.fixture
def npu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An npu-smi on the path that prints what was recorded."""
    (tmp_path / "table").write_text(ONE_CHIP)
    (tmp_path / "npu-smi").write_text(f"#!/bin/sh\n/bin/cat {tmp_path / 'table'}\n")
    (tmp_path / "npu-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    caches = (npu_smi.npus, machine.describe, accelerators._npus)
    for cached in caches:
        cached.cache_clear()
    yield tmp_path / "table"
    for cached in caches:
        cached.cache_clear()


def test_the_sampler_watches_an_npu(npu):
    condition = Condition(workload="cnn", device="npu")
    sampler = Sampler(types.SimpleNamespace(cpu=psutil.Process(), pids=lambda: [os.getpid()], condition=condition))
    sampler.start()
    until(lambda: sampler.tick() or (sampler.trace and sampler.trace[-1].accelerator_percent), every_s=0.02)
    last = sampler.trace[-1]
    assert (last.accelerator_percent, last.accelerator_power_w, last.accelerator_temperature_c) == (7.0, 88.2, 30.0)
    assert last.accelerator_memory_mib == 26838, "of the HBM, there is no DDR"
    assert machine.describe()["npus"] == ["Ascend 910B4, 32768 MiB"]


def test_of_two_chips_those_that_workers_see(npu, monkeypatch):
    npu.write_text(TWO_CHIPS)
    first, second = npu_smi.npus()
    assert (first["power_w"], second["power_w"]) == (162.6, None), "what the driver does not say is no 0"
    assert (first["memory_mib"], second["memory_mib"]) == (3419, 2874)
    npu_smi.npus.cache_clear()
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "1,7")
    assert npu_smi.npus() == [second]


def test_what_cannot_be_read_is_said_and_stops_nothing(npu, monkeypatch, capfd):
    npu.write_text(ONE_CHIP.replace("| 0     910B4 ", "|             "))
    assert machine.describe()["npus"] == []
    assert "no chip can be read" in "".join(capfd.readouterr())
    assert accelerators.reader("npu", list) is None
    npu_smi.npus.cache_clear()
    (npu.parent / "npu-smi").unlink()
    assert npu_smi.npus() == []
