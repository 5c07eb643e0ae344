"""Subjects that a parameter file asks for if they are there: measured, or left out with the reason, or refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from synthetic_lab import SyntheticLab

from benchlib import environments
from benchlib.errors import BenchlibError
from benchlib.runner import availability
from benchlib.suite import experiments

ROOT = Path(__file__).parents[1]
JAX = {"framework": "jax", "environment": "jax", "mode": "graph", "lane": "tuned"}
MXNET = {"framework": "mxnet", "environment": "mxnet", "mode": "graph", "lane": "tuned"}
TAKING = {  # notebooks, and what their subjects say beside what all say
    "devices": {},
    "batch_size": {},
    "learning_rate": {"learning_rates": [0.01]},
    "operators": {},
    "frameworks": {},
    "inference": {},
    "modes": {"precision": "fp32"},
    "scaling": {},
    "equivalence": {},
    "instrument": {},
}
NOT_THERE = "Not measured in jax: environment 'jax' is not there: benchlib environment create jax makes it"


@pytest.fixture(autouse=True)
def no_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the project's folder there is no environment yet."""
    shutil.copytree(ROOT / "environments", tmp_path / "environments")
    monkeypatch.setattr(environments, "root", lambda: tmp_path)


@pytest.fixture
def all_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environments and the frameworks in them; no device but the CPU."""

    def available(framework: str, device: str, environment: str) -> str | None:
        return None if device == "cpu" else f"no {device} for {framework}"

    monkeypatch.setattr(availability, "available", available)


OF_FRAMEWORKS = [
    path for path in (ROOT / "parameters" / "frameworks").glob("*.yaml") if path.name != experiments.DEFAULTS
]


def quick(notebook: str, *more: dict[str, Any], key: str = "subjects", **changes: Any) -> dict[str, Any]:
    """The quick parameters of a notebook, with more subjects."""
    values = experiments.values(notebook, ROOT / "parameters" / "quick" / f"{notebook}.yaml")
    return {**values, key: [*values[key], *({**one, **TAKING[notebook]} for one in more)], **changes}


def parameters(notebook: str, values: dict[str, Any]) -> Any:
    return experiments.module(notebook).Parameters(**values)


def measured(notebook: str, values: dict[str, Any], folder: Path) -> Any:
    return experiments.module(notebook).measure(parameters(notebook, values), SyntheticLab(folder))


def if_there(*subjects: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**one, "if_there": True} for one in subjects]


@pytest.mark.parametrize("notebook", TAKING)
def test_one_that_has_to_be_there_is_refused_where_it_is_not(notebook: str) -> None:
    with pytest.raises(BenchlibError, match=r"subjects\.\d\.environment: .* benchlib environment create jax makes it"):
        parameters(notebook, quick(notebook, JAX))


@pytest.mark.parametrize("notebook", TAKING)
def test_one_that_is_not_there_is_left_out_and_the_notebook_says_how_to_make_it(notebook: str, tmp_path: Path) -> None:
    with_jax = quick(notebook, *if_there(JAX))
    plain = experiments.conditions(notebook, parameters(notebook, quick(notebook)))
    assert experiments.conditions(notebook, parameters(notebook, with_jax)) == plain
    result = measured(notebook, with_jax, tmp_path)
    assert [note.split(" makes it")[0] + " makes it" for note in result.notes if "in jax" in note] == [NOT_THERE]
    assert not any("in jax" in note for note in measured(notebook, quick(notebook), tmp_path).notes)


@pytest.mark.parametrize("notebook", TAKING)
@pytest.mark.usefixtures("all_there")
def test_one_that_is_there_is_measured_as_if_it_had_to_be(notebook: str, tmp_path: Path) -> None:
    has_to = quick(notebook)
    for one in (plain := parameters(notebook, quick(notebook, *if_there(JAX)))).subjects:
        assert one.if_there == (one.framework == "jax")
    made = experiments.conditions(notebook, plain)
    others = experiments.conditions(notebook, parameters(notebook, has_to))
    assert [one for one in made if one.framework != "jax"] == others
    environment = set() if notebook == "scaling" else {"jax"}  # JAX has no path to several processes, which is shown
    assert {one.environment for one in made if one.framework == "jax"} == environment
    result = measured(notebook, quick(notebook, *if_there(JAX)), tmp_path)
    assert not any("Not measured" in note for note in result.notes)


@pytest.mark.parametrize(
    ("key", "place"), [("accuracy_subjects", "batch_size"), ("timers", "instrument"), ("alone", "instrument")]
)
def test_every_list_of_subjects_may_have_some_that_are_not_there(key: str, place: str, tmp_path: Path) -> None:
    own = {"batch_size": 8} if key == "alone" else {}
    values = quick(place, *if_there(JAX | own), key=key)
    plain = experiments.conditions(place, parameters(place, quick(place)))
    assert experiments.conditions(place, parameters(place, values)) == plain
    result = measured(place, values, tmp_path)
    assert any(note.startswith(NOT_THERE) for note in result.notes)
    assert not any("jax" in str(check.condition) for check in getattr(result, "timers", []))


@pytest.mark.usefixtures("all_there")
def test_of_a_workload_that_its_framework_has_no_file_of_it_is_left_out(tmp_path: Path) -> None:
    values = quick("frameworks", *if_there(MXNET))
    made = experiments.module("frameworks").comparisons(parameters("frameworks", values))
    by_workload = {group[0].workload: [one.framework for one in group] for group in made}
    assert by_workload == {"gcn": ["pytorch", "mindspore"], "cnn": ["pytorch", "mindspore", "mxnet"]}
    notes = measured("frameworks", values, tmp_path).notes
    assert "Not measured in mxnet: gcn, of which it has no file." in notes
    models = quick("equivalence", *if_there(MXNET))
    checked = experiments.conditions("equivalence", parameters("equivalence", models))
    lacking = {one.workload for one in checked} - {one.workload for one in checked if one.framework == "mxnet"}
    said = next(note for note in measured("equivalence", models, tmp_path).notes if "mxnet" in note)
    assert (
        said
        == "Not measured in mxnet: "
        + ", ".join(model["workload"] for model in models["models"] if model["workload"] in lacking)
        + ", of which it has no file."
    )
    assert {"gcn", "bert"} <= lacking < {one.workload for one in checked}
    with pytest.raises(BenchlibError, match="framework of workload 'gcn'"):
        parameters("frameworks", quick("frameworks", MXNET | {"environment": "default"}))


@pytest.mark.usefixtures("all_there")
def test_on_a_device_that_it_cannot_use_it_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def available(framework: str, device: str, environment: str) -> str | None:
        return "no plug-in for cuda" if (framework, device) == ("jax", "cuda") else None

    monkeypatch.setattr(availability, "available", available)
    values = quick("modes", *if_there(JAX), devices=["cpu", "cuda"])
    on_cpu, on_cuda = experiments.module("modes").comparisons(parameters("modes", values))
    assert "jax" in {one.framework for one in on_cpu}
    assert "jax" not in {one.framework for one in on_cuda}
    assert (
        "Not measured in jax: no plug-in for cuda; run again after that." in measured("modes", values, tmp_path).notes
    )


@pytest.mark.usefixtures("all_there")
def test_the_profile_frameworks_takes_all_five_and_its_pilots_fit_into_its_time() -> None:
    every = {path.stem: experiments.load(path.stem, path) for path in OF_FRAMEWORKS}
    minutes = experiments.defaults(ROOT / "parameters" / "frameworks").minutes
    assert set(every) == {"frameworks", "batch_size", "inference", "operators", "modes", "equivalence", "instrument"}
    measured = {name: {one.framework for one in experiments.conditions(name, each)} for name, each in every.items()}
    measured["instrument"] |= {subject.framework for subject in every["instrument"].timers}
    measured["equivalence"] |= {"pytorch"}  # what the others are checked against
    five = {"pytorch", "mindspore", "jax", "tensorflow", "mxnet"}
    assert measured == dict.fromkeys(every, five)
    assert minutes <= 20, "with set-up and report the first run is to end within 25"


def test_the_profile_frameworks_without_any_of_their_environments_is_of_those_that_are_there(tmp_path: Path) -> None:
    for path in OF_FRAMEWORKS:
        each = experiments.load(path.stem, path)
        assert {one.framework for one in experiments.conditions(path.stem, each)} <= {"pytorch", "mindspore"}
        notes = experiments.module(path.stem).measure(each, SyntheticLab(tmp_path / path.stem)).notes
        for name in ("jax", "tensorflow", "mxnet"):
            assert f"benchlib environment create {name} makes it" in " ".join(notes)


def test_where_all_others_are_left_out_the_first_is_measured_by_itself(tmp_path: Path) -> None:
    first = yaml.safe_load((ROOT / "parameters" / "quick" / "inference.yaml").read_text(encoding="utf-8"))["subjects"][
        0
    ]
    for notebook in ("batch_size", "frameworks", "inference", "operators"):
        values = quick(notebook) | {"subjects": [first, *if_there(JAX)]}
        result = measured(notebook, values, tmp_path / notebook)
        assert result.rows("samples_per_second")["estimate"].notna().all()
        assert not len(result.rows("throughput_ratio"))
        assert result.summary()["failures"] == 0


def test_the_first_has_to_be_there() -> None:
    values = quick("inference")
    with pytest.raises(BenchlibError, match=r"subjects: .*jax jax graph tuned is the first, which cannot be left out"):
        parameters("inference", values | {"subjects": [*if_there(JAX), *values["subjects"]]})


def test_a_file_is_right_or_wrong_whatever_is_there() -> None:
    with pytest.raises(BenchlibError, match=r"subjects\.2\.mode: 'grahp'"):
        parameters("inference", quick("inference", *if_there(JAX | {"mode": "grahp"})))
    subjects = [quick("modes")["subjects"][0], *if_there(JAX | {"precision": "fp16"})]
    with pytest.raises(BenchlibError, match=r"subjects\.1: 'fp16': unknown precision of jax"):
        parameters("modes", quick("modes") | {"subjects": subjects})
    with pytest.raises(BenchlibError, match="jax jax graph tuned is there twice"):
        parameters("inference", quick("inference", *if_there(JAX), *if_there(JAX)))
    pytorch = quick("inference")["subjects"][0]
    with pytest.raises(BenchlibError, match="pytorch eager tuned is there twice"):
        parameters("inference", quick("inference", *if_there(pytorch)))
