"""What is read of ``npu-smi``, from output that others recorded. Never run on Ascend."""

from __future__ import annotations

import os
import sys
import time
import types
from pathlib import Path

import psutil
import pytest

from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.measure import accelerators, availability, machine, npu_smi
from benchlib.measure.npu_smi import Usage
from benchlib.measure.sampler import Sampler

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
HEAD = "NpuID(Idx)  ChipId(Idx) Pwr(W)      Temp(C)     AI Core(%)  AI Cpu(%)   Ctrl Cpu(%) Memory(%)   Memory BW(%)"
ROW = "2           0           90.1        34          12          0           2           5           0"


def test_the_table_of_one_chip_and_of_two():
    (chip,) = npu_smi.parse_table(ONE_CHIP)
    assert (chip.npu, chip.chip, chip.name, chip.health) == (0, 0, "910B4", "OK")
    assert (chip.power_w, chip.temperature_c, chip.percent) == (88.2, 30.0, 7.0)
    assert (chip.memory_mib, chip.memory_total_mib) == (26838.0, 32768.0), "of the HBM, there is no DDR"
    first, second = npu_smi.parse_table(TWO_CHIPS)
    assert (first.npu, first.chip, second.npu, second.chip) == (0, 0, 0, 1)
    assert (first.power_w, second.power_w) == (162.6, None), "what the driver does not tell is no 0"


def test_the_last_row_that_was_watched():
    later = ROW.replace("90.1", "-   ").replace(" 12 ", " 99 ")
    assert npu_smi.parse_watch([HEAD, ROW]) == Usage(percent=12.0, memory_percent=5.0, power_w=90.1, temperature_c=34.0)
    assert npu_smi.parse_watch([HEAD, ROW, HEAD, later]) == Usage(
        percent=99.0, memory_percent=5.0, power_w=None, temperature_c=34.0
    )
    assert npu_smi.parse_watch([HEAD]) is None


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (npu_smi.parse_table, "no such command"),
        (npu_smi.parse_table, ONE_CHIP.replace("AICore(%) ", "          ")),
        (npu_smi.parse_table, ONE_CHIP.replace("88.2", "warm")),
        (lambda text: npu_smi.parse_watch([HEAD, text]), "2  0  90.1"),
        (lambda text: npu_smi.parse_watch([text, "1 2"]), "NpuID(Idx)  Fans"),
    ],
)
def test_what_cannot_be_read_is_said(parse, text):
    with pytest.raises(BenchlibError, match=r"npu-smi .*has a form that is not known"):
        parse(text)


@pytest.fixture
def npu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An npu-smi on the path that prints what was recorded; ``watch`` goes on for as long as it is read."""
    (tmp_path / "table").write_text(ONE_CHIP)
    script = tmp_path / "npu-smi"
    script.write_text(
        f"#!{sys.executable}\nimport sys, time\n"
        f"if sys.argv[2:] == []: print(open({str(tmp_path / 'table')!r}).read())\n"
        f"else:\n    print({HEAD!r}, flush=True)\n    while True: print({ROW!r}, flush=True); time.sleep(0.05)\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    caches = (npu_smi.chips, machine.describe, accelerators._watched)
    for cached in caches:
        cached.cache_clear()
    yield
    for cached in caches:
        cached.cache_clear()


def test_the_sampler_watches_an_npu(npu):
    condition = Condition(workload="cnn", device="npu")
    sampler = Sampler(types.SimpleNamespace(cpu=psutil.Process(), pids=lambda: [os.getpid()], condition=condition))
    sampler.start()
    until = time.monotonic() + 20
    while not (sampler.trace and sampler.trace[-1].accelerator_percent) and time.monotonic() < until:
        time.sleep(0.02)
        sampler.tick()
    last = sampler.trace[-1]
    assert (last.accelerator_percent, last.accelerator_power_w, last.accelerator_temperature_c) == (12.0, 90.1, 34.0)
    assert last.accelerator_memory_mib == pytest.approx(0.05 * 32768)
    assert machine.describe()["npus"] == ["Ascend 910B4, 32768 MiB"]


def test_without_npu_smi_there_is_nothing_to_watch(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    npu_smi.chips.cache_clear()
    assert npu_smi.npus() == ()
    assert accelerators.reader("npu", list) is None
    npu_smi.chips.cache_clear()


def test_a_table_that_cannot_be_read_is_told_and_stops_nothing(npu, tmp_path):
    (tmp_path / "table").write_text(ONE_CHIP.replace("| 0     910B4 ", "|             "))
    assert npu_smi.npus() == ()
    assert "has a form that is not known" in npu_smi.chips().trouble
    assert machine.describe()["npus"] == []
    assert any("npu-smi" in line for line in availability.troubles())


def test_the_chips_that_are_hidden_from_workers_are_not_there(npu, monkeypatch, tmp_path):
    (tmp_path / "table").write_text(TWO_CHIPS)
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "1")
    assert [chip.chip for chip in npu_smi.npus()] == [1]
