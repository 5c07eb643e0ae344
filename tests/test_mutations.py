"""The differences that benchmarks/mutations.py plants: each can be planted today, and the gate sees a handful."""

from __future__ import annotations

import ast
import importlib
import subprocess
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from benchlib import environments, workloads
from benchlib.analysis.certificates import Certificate, Check
from benchlib.condition import Condition

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def planting(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("planting")


@pytest.fixture
def mutations(planting: ModuleType) -> ModuleType:
    return importlib.import_module("mutations")


def test_every_mutant_can_be_planted_into_the_files_of_today(planting):
    for mutant in planting.declared():
        places = [framework for framework in planting.FRAMEWORKS if mutant.text(framework)]
        assert places, f"{mutant.what}: no framework's file is changed"
        assert set(mutant.graph) | set(mutant.refused) <= set(places), mutant.what
        for framework in places:
            text = planting.planted(mutant, framework)
            assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(_file(planting, mutant, framework))), mutant.what


def _file(planting, mutant, framework):
    return (planting.plugins.OWN / mutant.place(framework)).read_text(encoding="utf-8")


def test_mutants_are_of_every_workload_that_can_be_compared_and_both_frameworks(planting):
    trials = list(planting.trials())
    several = {name for name in workloads.names() if len(workloads.load(name).frameworks()) > 1}
    comparable = several - {"copy"}  # a measure of the machine, whose given gradient is not of its output's shape
    for framework in planting.FRAMEWORKS:
        assert {one.workload for one in trials if one.framework == framework} == comparable
        assert {one.mode for one in trials if one.framework == framework} == {"eager", "graph"}
    assert {one.mutant.changes for one in trials} == {"trained", "speed", "nothing"}
    assert len(trials) >= 200


@pytest.mark.parametrize("old", ["there is no such text", "import"], ids=["absent", "more than once"])
def test_what_is_not_there_once_is_not_planted(planting, old):
    mutant = planting.Mutant(
        what="another model",
        kind="layers",
        file="workloads/cnn/{framework}.py",
        workloads=["cnn"],
        pytorch={"old": old, "new": ""},
    )
    with pytest.raises(SystemExit, match=r"cnn/pytorch.py: what 'another model' replaces is there \d+ times"):
        planting.planted(mutant, "pytorch")


def test_a_bed_has_the_packages_of_this_environment_and_one_file_of_its_own(planting, mutations, tmp_path):
    with mutations._elsewhere(tmp_path / "environments"):
        bed = planting.Bed(tmp_path / "bed", "planted-0")
        for text in ("PLANTED = 1", "PLANTED = 2"):
            bed.plant("workloads/cnn/pytorch.py", text)
            code = (
                "import numpy; from benchlib.workloads.cnn import pytorch, workload; print(pytorch.__dict__['PLANTED'])"
            )
            python = environments.find("planted-0").python
            done = subprocess.run([python, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.stdout.strip() == text[-1], done.stderr
    with pytest.raises(environments.BenchlibError, match="planted-0"):
        environments.find("planted-0")


def certificate(*checks: Check) -> Certificate:
    condition = Condition(workload="linear")
    return Certificate(condition=condition, reference=condition, checks=list(checks))


def check(name: str, difference: float, tolerance: float) -> Check:
    return Check(name=name, difference=difference, worst=difference, at=f"0/{name}", tolerance=tolerance)


def test_a_row_names_the_check_that_is_farthest_beyond_its_tolerance_or_nearest_to_it(mutations):
    passing = mutations._of(certificate(check("outputs", 0.0, 1.0), check("losses", 0.5, 1.0)))
    assert (passing["verdict"], passing["seen_by"], passing["times_allowed"]) == ("same", "losses", 0.5)
    failing = mutations._of(
        certificate(check("outputs", 1.0, 1.0), check("losses", 3.0, 2.0), check("state", 4.0, 2.0))
    )
    assert (failing["verdict"], failing["seen_by"], failing["times_allowed"]) == ("different", "state", 2.0)


def rows(**counts: int) -> pd.DataFrame:
    """So many rows of each verdict."""
    row = {"workload": "cnn", "framework": "pytorch", "mode": "eager", "kind": "loss", "what": "a sum"}
    row |= {
        "seen_by": "outputs",
        "at": "0/outputs:0",
        "times_allowed": 2.0,
        "reason": "",
        "refused": False,
        "unseen": "why",
    }
    verdicts = [verdict.replace("_", " ") for verdict, count in counts.items() for _ in range(count)]
    return pd.DataFrame([{**row, "verdict": verdict, "changes": "trained"} for verdict in verdicts])


def test_it_is_good_if_97_of_100_are_caught_and_nothing_else_is_wrong(mutations):
    good = rows(different=97, same=3)
    assert mutations.is_good(good)
    assert not mutations.is_good(rows(different=96, same=4))
    assert not mutations.is_good(pd.concat([good, rows(different=1).assign(changes="nothing")], ignore_index=True))
    assert not mutations.is_good(pd.concat([good, rows(not_checked=1)], ignore_index=True))
    assert mutations.is_good(pd.concat([good, rows(not_checked=1).assign(refused=True)], ignore_index=True))


def test_the_summary_names_each_that_passed(mutations):
    told = mutations.summary(pd.concat([rows(different=2, same=1), rows(same=1).assign(changes="nothing")]))
    assert "3 differences planted that change something, 2 caught (66.7 %), 1 passed; 1 that change nothing." in told
    assert "| loss | 3 | 2 | 2, 2 | 1 |" in told
    assert "| a sum | cnn pytorch eager | outputs 0/outputs:0 | 2 | why |" in told


@pytest.mark.slow
def test_a_handful_is_caught_and_what_changes_nothing_is_not(planting, mutations, tmp_path):
    wanted = {
        ("conv2d", "pytorch", "eager", "the kernel is turned round"),
        ("conv2d", "pytorch", "eager", "the bias is added behind the convolution"),
        ("batchnorm2d", "mindspore", "eager", "another epsilon"),
        ("gcn", "mindspore", "eager", "the penalty on both layers"),
        ("gcn", "pytorch", "eager", "edges lead the other way"),
    }
    chosen = [t for t in planting.trials() if (t.workload, t.framework, t.mode, t.mutant.what) in wanted]
    assert len(chosen) == len(wanted)
    outcomes = mutations.outcomes(chosen, tmp_path)
    assert {(row["what"], row["verdict"]) for row in outcomes} == {
        ("the kernel is turned round", "different"),
        ("the bias is added behind the convolution", "same"),
        ("another epsilon", "different"),
        ("the penalty on both layers", "different"),
        ("edges lead the other way", "same"),
    }
