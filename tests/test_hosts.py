"""Hosts: each number has one, no interval has two, and two machines of one name do not measure into one folder."""

import multiprocessing
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_lab import SyntheticLab

from benchlib.cluster import hosts
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.provenance import machine
from benchlib.runner import recording
from benchlib.runner.jobs import key, prepare_job
from benchlib.stats import frame as tidy

ONE = Condition(workload="linear", framework="pytorch")
ASKED = {"precision": 0.1, "budget_s": 60.0, "block_s": 0.1}


@pytest.fixture(autouse=True)
def described_again():
    machine.describe.cache_clear()
    yield
    machine.describe.cache_clear()


def named(monkeypatch: pytest.MonkeyPatch, name: str) -> str:
    monkeypatch.setenv(machine.HOST, name)
    machine.describe.cache_clear()
    return machine.describe()["host"]


def test_rows_and_keys_have_the_host(tmp_path, monkeypatch):
    job, keys = prepare_job(ONE, 0, tmp_path), []
    for name in ("n1", "n2", "n1"):
        assert named(monkeypatch, name) == name
        place = {"kind": "comparison", "group": "g", "file": "f", "repetition": 0, "role": "baseline", "seed": 0}
        assert recording.begin("rounds", job, **place).machine["host"] == name
        keys.append(key(**job.depends_on("rounds")))
    assert keys[0] == keys[2] != keys[1]
    for wrong in ("a b", "../x", "x" * 65):
        with pytest.raises(BenchlibError, match=r"BENCHLIB_HOST: .*letters, digits"):
            named(monkeypatch, wrong)


def test_without_a_name_a_host_is_machine_id_hostname_and_hardware_and_its_quota(monkeypatch, control_groups):
    monkeypatch.delenv(machine.HOST, raising=False)
    read, told = machine.read, []
    for ids, node, cores in (("a", "x", 2), ("b", "x", 2), ("a", "y", 2), ("a", "x", 4), ("a", "x", 2)):
        monkeypatch.setattr(machine, "read", lambda file, ids=ids: ids if file.name == "machine-id" else read(file))
        monkeypatch.setattr(machine.platform, "node", lambda node=node: node)
        monkeypatch.setattr(machine.os, "cpu_count", lambda cores=cores: cores)
        machine.describe.cache_clear()
        told.append(machine.describe()["host"])
    assert len(set(told)) == 4
    assert told[0] == told[-1]
    control_groups("0::/\n", {"cpu.max": "150000 100000\n"})
    assert named(monkeypatch, "n1") == "n1, 1.5 cores at most"


def hold(folder: Path, held: multiprocessing.Event, over: multiprocessing.Event) -> None:
    with hosts.hold_name(folder):
        held.set()
        over.wait(30)


def test_two_live_machines_of_one_name_are_refused(tmp_path, monkeypatch):
    held, over = multiprocessing.Event(), multiprocessing.Event()
    other = multiprocessing.Process(target=hold, args=(tmp_path, held, over))
    other.start()
    try:
        assert held.wait(30)
        with hosts.hold_name(tmp_path):
            pass  # another process of this machine
        monkeypatch.setattr(hosts, "BOOT", Path("/proc/sys/kernel/random/uuid"))  # as of another machine
        with pytest.raises(BenchlibError, match="BENCHLIB_HOST"), hosts.hold_name(tmp_path):
            pass
        with monkeypatch.context() as patch:
            named(patch, "n2")
            with hosts.hold_name(tmp_path):
                pass  # under a name of its own
        machine.describe.cache_clear()
    finally:
        over.set()
        other.join()
    with hosts.hold_name(tmp_path):
        pass  # the other has ended


def test_no_interval_is_made_of_two_hosts(tmp_path):
    made = SyntheticLab(tmp_path).compare([ONE, ONE.but(mode="graph")], **ASKED)
    for m in made.measurements:
        m.machine["host"] = "n1"
    assert set(tidy.of_comparison(made)["host"]) == {"n1"}
    made.measurements[-1].machine["host"] = "n2"
    with pytest.raises(BenchlibError, match="measured on n1 and n2"):
        tidy.of_comparison(replace(made))
