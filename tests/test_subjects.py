"""Subjects that a parameter file asks for if they are there: measured, or left out with the reason, or refused."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from studies import ROOT, measured, planned
from synthetic_lab import SyntheticLab

from benchlib import environments
from benchlib.errors import BenchlibError
from benchlib.parameter_types import defaults
from benchlib.runner import availability
from benchlib.suite import clock, profile

PYTORCH = {"framework": "pytorch", "mode": "eager", "lane": "tuned"}
MINDSPORE = {"framework": "mindspore", "mode": "graph", "lane": "tuned"}
JAX = {**MINDSPORE, "framework": "jax", "environment": "jax"}
MXNET = {**MINDSPORE, "framework": "mxnet", "environment": "mxnet"}
OPTIONAL = {"if_there": True}
MAKES_IT = "environment 'jax' is not there: benchlib environment create jax makes it"
FIVE = {"pytorch", "mindspore", "jax", "tensorflow", "mxnet"}


@pytest.fixture(autouse=True)
def no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the project's folder there is no environment yet."""
    shutil.copytree(ROOT / "environments", tmp_path / "environments")
    monkeypatch.setattr(environments, "root", lambda: tmp_path)
    monkeypatch.chdir(ROOT)


@pytest.fixture
def all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environments and the frameworks in them; no device but the CPU."""
    there = lambda framework, device, environment: None if device == "cpu" else "no such device"  # noqa: E731
    monkeypatch.setattr(availability, "why_absent", there)


def with_more(*more: dict[str, Any]) -> dict[str, Any]:
    return {"subjects": [PYTORCH, MINDSPORE, *more]}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ([JAX], rf"batch_size\.yaml: subjects\.2\.environment: .*{MAKES_IT}"),
        ([{**JAX, **OPTIONAL, "mode": "grahp"}], r"subjects\.2\.mode: 'grahp'"),
        ([{**JAX, **OPTIONAL}] * 2, r"jax.* is there twice"),
        ([{**PYTORCH, **OPTIONAL}], "the same condition twice: cnn pytorch"),
    ],
)
def test_a_file_is_wrong_whatever_is_there(more: list[dict[str, Any]], told: str) -> None:
    with pytest.raises(BenchlibError, match=told):
        planned("batch_size", **with_more(*more))


@pytest.mark.parametrize("key", ["subjects", "accuracy_subjects"])
def test_one_that_is_not_there_is_left_out_and_the_notebook_says_how_to_make_it(key: str, tmp_path: Path) -> None:
    made = measured("batch_size", SyntheticLab(tmp_path), **{key: [PYTORCH, {**JAX, **OPTIONAL}]})
    assert made.every == planned("batch_size", **{key: [PYTORCH]}).every
    (note,) = (note for note in made.notes if "in JAX" in note)
    assert note.startswith(f"Not measured in JAX: {MAKES_IT}")
    assert made.summary()["failures"] == 0


@pytest.mark.usefixtures("all_there")
def test_one_that_is_there_is_measured_where_its_framework_has_a_file_of_the_workload(tmp_path: Path) -> None:
    made = measured("frameworks", SyntheticLab(tmp_path), **with_more({**MXNET, **OPTIONAL}))
    by_workload = {group[0].workload: [one.framework for one in group] for group in made.groups}
    assert by_workload == {"gcn": ["pytorch", "mindspore"], "cnn": ["pytorch", "mindspore", "mxnet"]}
    assert [one for one in made.notes if "Not meas" in one] == ["Not measured in MXNet: gcn, of which it has no file."]
    with pytest.raises(BenchlibError, match="framework of workload 'gcn'"):
        planned("frameworks", **with_more({**MXNET, "environment": "default"}))


@pytest.mark.usefixtures("all_there")
def test_the_profile_frameworks_takes_all_five_and_its_pilots_fit_into_its_time() -> None:
    every = {one.name: one.study for one in profile.plan("frameworks") if one.study}
    minutes = defaults(ROOT / "parameters" / "frameworks").minutes
    for one in every.values():
        assert {condition.framework for condition in [*one.every, *one._timed]} | {"pytorch"} == FIVE
    assert minutes <= 20, "with set-up and report the first run is to end within 25"
    clock.require(minutes, list(every.values()), len(every))


def test_the_profile_frameworks_without_any_of_their_environments_is_of_those_that_are_there() -> None:
    for one in profile.plan("frameworks"):
        assert {condition.framework for condition in one.conditions} <= {"pytorch", "mindspore"}
