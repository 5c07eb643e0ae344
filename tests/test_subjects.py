"""Subjects that a parameter file asks for if they are there: measured, or left out with the reason, or refused."""

from __future__ import annotations

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
from benchlib.suite import clock, plan

JAX = {"framework": "jax", "environment": "jax", "mode": "graph", "lane": "tuned"}
MXNET = {"framework": "mxnet", "environment": "mxnet", "mode": "graph", "lane": "tuned"}
PYTORCH = {"framework": "pytorch", "mode": "eager", "lane": "tuned"}
MINDSPORE = {"framework": "mindspore", "mode": "graph", "lane": "tuned"}
NOT_THERE = "Not measured in JAX: environment 'jax' is not there: benchlib environment create jax makes it"
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

    def available(framework: str, device: str, environment: str) -> str | None:
        return None if device == "cpu" else f"no {device} for {framework}"

    monkeypatch.setattr(availability, "available", available)


def with_more(*more: dict[str, Any], **also: Any) -> dict[str, Any]:
    return {"subjects": [PYTORCH, MINDSPORE, *({**one, **also} for one in more)]}


def test_one_that_has_to_be_there_is_refused_where_it_is_not() -> None:
    with pytest.raises(BenchlibError, match=r"subjects\.2\.environment: .* benchlib environment create jax makes it"):
        planned("batch_size", **with_more(JAX))


@pytest.mark.parametrize("key", ["subjects", "accuracy_subjects"])
def test_one_that_is_not_there_is_left_out_and_the_notebook_says_how_to_make_it(key: str, tmp_path: Path) -> None:
    with_jax = {key: [PYTORCH, {**JAX, "if_there": True}]}
    assert planned("batch_size", **with_jax).every == planned("batch_size", **{key: [PYTORCH]}).every
    made = measured("batch_size", SyntheticLab(tmp_path), **with_jax)
    assert [note.split(" makes it")[0] + " makes it" for note in made.notes if "in JAX" in note] == [NOT_THERE]
    assert made.rows("samples_per_second")["estimate"].notna().all()
    assert made.summary()["failures"] == 0


@pytest.mark.usefixtures("all_there")
def test_one_that_is_there_is_measured_as_if_it_had_to_be(tmp_path: Path) -> None:
    asked = with_more(JAX, if_there=True)
    assert [one.framework for one in planned("batch_size", **asked).groups[0]] == ["pytorch", "mindspore", "jax"]
    assert not any("Not measured" in note for note in measured("batch_size", SyntheticLab(tmp_path), **asked).notes)


@pytest.mark.usefixtures("all_there")
def test_of_a_workload_that_its_framework_has_no_file_of_it_is_left_out(tmp_path: Path) -> None:
    asked = with_more(MXNET, if_there=True)
    by_workload = {
        group[0].workload: [one.framework for one in group] for group in planned("frameworks", **asked).groups
    }
    assert by_workload == {"gcn": ["pytorch", "mindspore"], "cnn": ["pytorch", "mindspore", "mxnet"]}
    notes = measured("frameworks", SyntheticLab(tmp_path), **asked).notes
    assert "Not measured in MXNet: gcn, of which it has no file." in notes
    with pytest.raises(BenchlibError, match="framework of workload 'gcn'"):
        planned("frameworks", **with_more(MXNET, environment="default"))


@pytest.mark.usefixtures("all_there")
def test_the_profile_frameworks_takes_all_five_and_its_pilots_fit_into_its_time() -> None:
    every = {one.name: one.study for one in plan.plan("frameworks") if one.study}
    minutes = defaults(ROOT / "parameters" / "frameworks").minutes
    for one in every.values():
        assert {condition.framework for condition in [*one.every, *one._timed]} | {"pytorch"} == FIVE
    assert minutes <= 20, "with set-up and report the first run is to end within 25"
    clock.require(minutes, list(every.values()), len(every))


def test_the_profile_frameworks_without_any_of_their_environments_is_of_those_that_are_there() -> None:
    for one in plan.plan("frameworks"):
        assert {condition.framework for condition in one.conditions} <= {"pytorch", "mindspore"}


def test_a_file_is_right_or_wrong_whatever_is_there() -> None:
    with pytest.raises(BenchlibError, match=r"subjects\.2\.mode: 'grahp'"):
        planned("batch_size", **with_more(JAX, if_there=True, mode="grahp"))
    with pytest.raises(BenchlibError, match=r"jax.* is there twice"):
        planned("batch_size", **with_more(JAX, JAX, if_there=True))
    with pytest.raises(BenchlibError, match="the same condition twice: cnn pytorch"):
        planned("batch_size", **with_more(PYTORCH, if_there=True))
