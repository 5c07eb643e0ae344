"""The script for a visit to a GPU machine: whatever hangs, it ends in time, and its file can be read."""

import importlib.util
import sys
import time
from pathlib import Path

import psutil
import pytest
from synthetic_lab import SyntheticLab

from benchlib import doctor
from benchlib.cache import save
from benchlib.equivalence import gate

_SPEC = importlib.util.spec_from_file_location("gpu", Path(__file__).parents[1] / "benchmarks" / "gpu.py")
gpu = importlib.util.module_from_spec(_SPEC)
sys.modules["gpu"] = gpu  # dataclasses look for it there
_SPEC.loader.exec_module(gpu)

HANGS = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print("child", child.pid, flush=True)
time.sleep(600)
"""


def part(name: str, code: str, limit_s: float = 60.0):
    return gpu.Part(name, [sys.executable, "-c", code], limit_s)


@pytest.fixture
def file(tmp_path):
    return tmp_path / gpu.FILE


def ended(file: Path) -> dict[str, dict]:
    return {line["name"]: line for line in gpu.read(file) if line["kind"] == "part"}


def test_a_part_that_hangs_is_killed_with_what_it_has_started_and_the_next_one_runs(file):
    fails = part("fails", "raise ValueError('what was wrong')")
    gpu.run([gpu.Stage([part("hangs", HANGS, 1.5), part("good", "pass"), fails], 60)], file, time.monotonic() + 60)
    parts = ended(file)
    assert {name: one["code"] for name, one in parts.items()} == {"hangs": -9, "good": 0, "fails": 1}
    assert "what was wrong" in parts["fails"]["said"]
    child = int(parts["hangs"]["said"].split()[1])
    assert not psutil.pid_exists(child) or psutil.Process(child).status() == psutil.STATUS_ZOMBIE


def test_the_whole_ends_in_time_and_says_what_was_not_started(file):
    began = time.monotonic()
    side_by_side = gpu.Stage([part("one", HANGS), part("two", HANGS), part("third", "pass")], 60, at_once=2)
    gpu.run([side_by_side, gpu.Stage([part("later", "pass")], 60)], file, began + 1.5)
    assert time.monotonic() - began < 10
    parts = ended(file)
    assert {name for name, one in parts.items() if one.get("code") == -9} == {"one", "two"}
    assert {name for name, one in parts.items() if "not started" in one["ended"]} == {"third", "later"}


def test_a_line_that_was_cut_off_does_not_spoil_the_next(file):
    gpu.append(file, kind="first", value=1.5)
    with open(file, "a") as cut:
        cut.write('{"kind": "cut", "val')
    gpu.append(file, kind="last", text="ä\n")
    assert [line["kind"] for line in gpu.read(file)] == ["first", "last"]
    assert gpu.read(file)[-1]["text"] == "ä\n"


def test_a_promise_is_written_before_the_next_is_tried(file, tmp_path, monkeypatch, toy_framework):
    def killed(*asked):
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "_waits", killed)
    with pytest.raises(KeyboardInterrupt):
        gpu.check(gpu.Visit(file, tmp_path / "lab", cpu=True), "toy", "eager")
    assert [(line["kind"], line["passed"]) for line in gpu.read(file)] == [("check", True)] * 3


def test_ratios_are_computed_anew_from_what_a_visit_has_written(file, tmp_path, monkeypatch):
    visit, lab = gpu.Visit(file, tmp_path / "lab", cpu=True), SyntheticLab(tmp_path / "lab")
    monkeypatch.setattr(gpu.Visit, "lab", lambda self: lab)
    name = "recurrent: gru"
    conditions = gpu.comparisons(visit)[name]
    for key, one in lab.certify([*gate.largest_batches(conditions)]).items():
        save(tmp_path / "lab" / "certificates" / f"{key}.json", one.model_copy(update={"file": key}))
    gpu.compare(visit, name)
    gpu.timer(visit, "pytorch", "eager")
    visit.collect()  # once more: nothing is written twice
    kinds = [line["kind"] for line in gpu.read(file)]
    assert kinds.count("certificate") == 3, "one in double precision, too"
    assert kinds.count("measurement") == 15
    gpu.report(file, tmp_path / "docs")
    page = (tmp_path / "docs" / "gpu.md").read_text(encoding="utf-8")
    again = SyntheticLab(tmp_path / "again")  # which draws the same
    expected = again.compare(conditions, precision=0.05, budget_s=1, block_s=0.1).ratios()
    assert page.count("| A/A |") == 1
    assert f"| {expected.label[1]} | {expected.ratio[1]:.3g} |" in page
