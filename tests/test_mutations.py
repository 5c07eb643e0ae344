"""The differences that benchmarks/mutations.py plants: each can be planted today, and the gate sees a handful."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import venv
from collections import Counter
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from benchlib import environments, workloads
from benchlib.condition import Condition
from benchlib.equivalence.certificate import Certificate, Check

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def planting(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("planting")


@pytest.fixture
def mutations(planting: ModuleType) -> ModuleType:
    return importlib.import_module("mutations")


@pytest.mark.slow
def test_every_mutant_can_be_planted_into_the_files_of_today(planting):
    for mutant in planting.declared():
        places = [framework for framework in planting.FRAMEWORKS if mutant.text(framework)]
        assert places, f"{mutant.what}: no framework's file is changed"
        assert set(mutant.other) | set(mutant.refused) <= set(places), mutant.what
        for framework in places:
            text = planting.planted(mutant, framework)
            assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(_file(planting, mutant, framework))), mutant.what


def _file(planting, mutant, framework):
    return (planting.plugins.OWN / mutant.place(framework)).read_text(encoding="utf-8")


def test_mutants_are_many_of_many_kinds_in_every_model_framework_and_mode(planting):
    trials = list(planting.trials())
    assert len(trials) >= 200
    several = {name for name in workloads.names() if len(workloads.load(name).frameworks()) > 1}
    comparable = several - {"copy"}  # a measure of the machine, whose given gradient is not of its output's shape
    for framework in planting.FRAMEWORKS:
        own = [one for one in trials if one.framework == framework]
        assert all(framework in workloads.load(one.workload).frameworks() for one in own)
        assert framework not in ("pytorch", "mindspore") or {one.workload for one in own} == comparable
        assert len({one.mutant.what for one in own}) >= 25
        assert len({one.mutant.kind for one in own}) >= 20
        assert {one.mutant.changes for one in own} == {"trained", "predicted", "speed", "nothing"}
        assert {one.mode for one in own} == {"eager", "graph"}
    counts = Counter((one.workload, one.framework) for one in trials)
    in_graph = {(one.workload, one.framework) for one in trials if one.mode == "graph"}
    for name in workloads.names():
        trains = workloads.load(name).kind == "training"
        planted = planting.FRAMEWORKS if trains or name == "resnet50_inference" else ()  # none for Chainer, Paddle yet
        for framework in set(workloads.load(name).frameworks()) & set(planted):
            assert counts[name, framework] >= 4
            assert (name, framework) in in_graph or not trains or framework not in ("pytorch", "mindspore")


def test_each_region_has_differences_in_every_framework_and_mode(planting):
    trials = [one for one in planting.trials() if one.mutant.region != "ordinary"]
    assert {one.mutant.region for one in trials} == set(planting.REGIONS) - {"ordinary"}
    for region in {one.mutant.region for one in trials}:
        own = [one for one in trials if one.mutant.region == region]
        assert len({one.mutant.what for one in own}) >= 12
        assert {one.framework for one in own} == set(planting.FRAMEWORKS)
        assert {one.mode for one in own} == {"eager", "graph"}
        assert all(f"region {region}" in str(one) for one in own)


def test_another_loss_is_planted_before_the_optimizer_and_calls_the_own_one(planting):
    text = planting.Text(loss="value = right(model, batch)\nreturn value / 2")
    made = {}
    exec(f"def loss(model, batch):\n    return 6\n\n\n{text.planted}model):\n    pass\n", made)
    assert (made["loss"](None, None), text.replaced) == (3, planting.ANCHOR)


@pytest.mark.parametrize(
    ("framework", "usual", "other"), [("mindspore", "eager", "graph"), ("jax", "graph", "eager")], ids=str
)
def test_a_mutant_is_planted_in_the_usual_mode_of_its_framework(planting, framework, usual, other):
    mutant = planting.Mutant(what="a sum", kind="loss")
    assert mutant.modes(framework) == [usual]
    too = mutant.model_copy(update={"other": (framework,)})
    assert too.modes(framework) == [usual, other]
    assert too.model_copy(update={"usual": False}).modes(framework) == [other]


def test_a_framework_whose_environment_is_not_there_is_named_and_left_out(
    planting, mutations, monkeypatch, tmp_path, capsys
):
    chosen = []

    def outcomes(trials, *_):
        chosen.extend(trials)
        return rows(different=1).to_dict("records")

    monkeypatch.setattr(planting, "ENVIRONMENTS", {"pytorch": environments.DEFAULT, "mxnet": "no-such"})
    monkeypatch.setattr(mutations, "outcomes", outcomes)
    monkeypatch.setattr(mutations.machine_lock, "LOCK", tmp_path / "lock")
    monkeypatch.setattr("sys.argv", ["mutations.py", "--only", "gru", "the loss is a sum", "--to", str(tmp_path)])
    with pytest.raises(SystemExit):
        mutations.main()
    (left_out,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("left out")]
    assert left_out.startswith("left out: mxnet: ")
    assert "'no-such'" in left_out
    assert "mxnet" not in {one.framework for one in chosen}
    assert "pytorch" in {one.framework for one in chosen}


@pytest.mark.parametrize("old", ["there is no such text", "import"], ids=["absent", "more than once"])
def test_what_is_not_there_once_is_not_planted(planting, old):
    place = {"file": "workloads/cnn/{framework}.py", "workloads": ["cnn"], "pytorch": {"old": old, "new": ""}}
    mutant = planting.Mutant(what="another model", kind="layers", **place)
    with pytest.raises(SystemExit, match=r"cnn/pytorch.py: what 'another model' replaces is there \d+ times"):
        planting.planted(mutant, "pytorch")


def test_a_bed_has_the_packages_of_this_environment_and_one_file_of_its_own(planting, mutations, tmp_path):
    with mutations._elsewhere(tmp_path / "environments"):
        bed = planting.Bed(tmp_path / "bed", "planted-0", sys.executable)
        for text in ("PLANTED = 1", "PLANTED = 2"):
            bed.plant("workloads/cnn/pytorch.py", text)
            code = "import numpy; from benchlib.workloads.cnn import pytorch, workload; print(vars(pytorch)['PLANTED'])"
            assert printed("planted-0", code, tmp_path) == text[-1]
    with pytest.raises(environments.BenchlibError, match="planted-0"):
        environments.find("planted-0")


def test_a_bed_has_the_packages_of_another_interpreter_and_none_of_this_one(planting, mutations, tmp_path):
    venv.create(tmp_path / "other", symlinks=True)
    other = tmp_path / "other" / "bin" / "python"
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = subprocess.check_output([other, "-c", where], text=True)
    Path(packages.strip(), "only_there.py").write_text("PLACE = 'other'\n", encoding="utf-8")
    with mutations._elsewhere(tmp_path / "environments"):
        bed = planting.Bed(tmp_path / "bed", "planted-0", str(other))
        bed.plant("errors.py", "PLANTED = 1")
        code = (
            "import importlib.util, only_there; from benchlib import errors; "
            "print(only_there.PLACE, errors.PLANTED, importlib.util.find_spec('numpy'))"
        )
        assert printed("planted-0", code, tmp_path) == "other 1 None"


def printed(environment: str, code: str, folder: Path) -> str:
    """What the code prints in an environment."""
    python = environments.find(environment).python
    done = subprocess.run([python, "-c", code], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


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
    row |= {"seen_by": "outputs", "at": "0/outputs:0", "times_allowed": 2.0, "reason": "", "refused": False}
    row |= {"region": "ordinary", "remarks": ""}
    verdicts = [verdict.replace("_", " ") for verdict, count in counts.items() for _ in range(count)]
    return pd.DataFrame([{**row, "unseen": "why", "verdict": verdict, "changes": "trained"} for verdict in verdicts])


def test_it_is_good_if_97_of_100_are_caught_and_nothing_else_is_wrong(mutations):
    good = rows(different=97, same=3)
    assert mutations.is_good(good)
    assert not mutations.is_good(rows(different=96, same=4))
    assert not mutations.is_good(pd.concat([good, rows(different=1).assign(changes="nothing")], ignore_index=True))
    assert not mutations.is_good(pd.concat([good, rows(not_checked=1)], ignore_index=True))
    assert mutations.is_good(pd.concat([good, rows(not_checked=1).assign(refused=True)], ignore_index=True))


def test_each_region_has_a_share_of_its_own_and_a_remark_is_enough_for_other_work(mutations):
    good, work = (
        rows(different=97, same=3),
        rows(same=10).assign(region="work", remarks=[*8 * ["anomaly mode"], "", ""]),
    )
    assert mutations.is_good(pd.concat([good, work], ignore_index=True))
    assert not mutations.is_good(pd.concat([good, work.assign(remarks="")], ignore_index=True))
    assert not mutations.is_good(pd.concat([good, work.assign(region="far")], ignore_index=True))
    assert "| work | 10 | 10 | 8 | 80.0 % | 8 of 10 |" in mutations.summary(pd.concat([good, work]))


def test_the_summary_counts_what_was_caught_and_names_each_that_passed(mutations):
    told = mutations.summary(pd.concat([rows(different=2, same=1), rows(same=1).assign(changes="nothing")]))
    assert "3 differences planted that change something, 2 caught (66.7 %), 1 passed; 1 that change nothing." in told
    assert "| a sum | cnn pytorch eager | outputs 0/outputs:0 | 2 | why |" in told


@pytest.mark.slow
def test_a_handful_is_caught_and_what_changes_nothing_is_not(planting, mutations, tmp_path):
    wanted = {
        ("conv2d", "pytorch", "the kernel is turned round"): "different",
        ("conv2d", "pytorch", "the bias is added behind the convolution"): "same",
        ("conv2d", "mindspore", "all the padding at the right and below"): "different",
        ("batchnorm2d", "mindspore", "momentum counted as the other framework does"): "different",
        ("cnn", "mindspore", "gradients are not unscaled"): "different",
        ("cnn", "pytorch", "the loss is scaled twice"): "different",
        ("gcn", "mindspore", "the penalty on both layers"): "different",
        ("gcn", "pytorch", "edges lead the other way"): "same",
    }
    eager = (one for one in planting.trials() if one.mode == "eager")
    chosen = [one for one in eager if (one.workload, one.framework, one.mutant.what) in wanted]
    outcomes = mutations.outcomes(chosen, tmp_path)
    assert {(row["workload"], row["framework"], row["what"]): row["verdict"] for row in outcomes} == wanted


def test_what_is_as_it_should_be_is_asked_for_by_mode_precision_and_name(mutations, monkeypatch):
    monkeypatch.setattr(mutations, "_there", lambda workload: iter([("pytorch", "default"), ("mindspore", "default")]))
    chosen = mutations._as_they_are(["eager", "graph"], ["fp32", "bf16", "fp16"], ["gru", "eager"])
    named = {(one.workload, one.framework, one.mode, one.precision) for one in chosen}
    assert {("gru", "pytorch", "eager", precision) for precision in ("fp32", "bf16", "fp16")} < named
    assert {of[:3] for of in named} == {("gru", "pytorch", "eager"), ("gru", "mindspore", "eager")}
    assert ("gru", "mindspore", "eager", "bf16") not in named, "its precisions have names of their own"
    with pytest.raises(SystemExit, match="no workload, framework, mode and precision has all of these words"):
        mutations._as_they_are(["graph"], ["fp32"], ["gru", "eager"])
