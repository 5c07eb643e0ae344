"""The experiments: wrong parameters are refused by name, findings say what the results show, the notebooks work."""

from __future__ import annotations

import ast
import itertools
import json
import pkgutil
import re
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import explored
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
import yaml
from synthetic_lab import SyntheticLab, step_seconds

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.plotting import figures
from benchlib.runner.roofline import Ceiling
from benchlib.runner.timer_check import SyncCheck
from benchlib.stats import frame as tidy
from benchlib.suite import experiments, plan
from benchlib.suite.experiments import (
    batch_size,
    equivalence,
    instrument,
    metric,
)
from benchlib.suite.experiments.result import Result
from benchlib.worker.steady import NOT_STEADY

ROOT = Path(__file__).parents[1]
MEASURING = list(experiments.OLD)
pytestmark = pytest.mark.usefixtures("one_kind_of_figure", "torch_2_9")
SHIPPED = ("quick", "frameworks", "full", "subset", "features", "release")  # profiles; a user's own are none of these
PYTORCH = {"framework": "pytorch", "mode": "eager", "lane": "tuned"}
MINDSPORE = {"framework": "mindspore", "mode": "graph", "lane": "tuned"}


def quick(notebook: str) -> dict[str, Any]:
    """The quick parameters of a notebook, as plain values."""
    return experiments.values(notebook, ROOT / "parameters" / "quick" / f"{notebook}.yaml")


AFTER = f"after {quick('batch_size')['epochs']} epochs"
"""As the findings of batch sizes say it."""


class Plain(yaml.SafeDumper):
    """Writes out what is there twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def load(notebook: str, values: object, folder: Path) -> Any:
    """What the loader makes of these values in a file."""
    path = folder / f"{notebook}.yaml"
    path.write_text(values if isinstance(values, str) else yaml.dump(values, Dumper=Plain), encoding="utf-8")
    return experiments.load(notebook, path)


def changed(notebook: str, place: str, value: object) -> dict[str, Any]:
    """The quick parameters with one value changed; ``place`` goes down with dots."""
    values = quick(notebook)
    *parents, last = [int(part) if part.isdigit() else part for part in place.split(".")]
    inner = values
    for part in parents:
        inner = inner[part]
    inner[last] = value
    return values


EMBEDDED = {"digits", "random", "digits_sequence", "digits_graph", "number_names", "pydoc"}  # need no download


@pytest.mark.parametrize(
    "path",
    [
        path
        for profile in SHIPPED
        for path in sorted((ROOT / "parameters" / profile).glob("*.yaml"))
        if path.name != experiments.DEFAULTS
    ],
    ids=lambda path: f"{path.parent.name}-{path.stem}",
)
def test_shipped_parameters_are_valid(path: Path) -> None:
    parameters = experiments.load(path.stem, path)
    made = experiments.conditions(path.stem, parameters)
    assert (len(made) >= 2) == (path.stem in MEASURING)
    if not made:
        return
    compared = {"pytorch", "mindspore"}
    if path.parent.name in {"quick", "frameworks"}:  # of the second, what the default environment has
        assert {condition.data for condition in made} <= EMBEDDED
        # Some may take a minute each; PyTorch is what equivalence checks against.
        few = {"devices": {"pytorch"}, "instrument": {"pytorch"}, "equivalence": {"mindspore"}}
        compared = few.get(path.stem, compared)
    if path.stem == "versions":
        assert {condition.environment for condition in made} == {"default", "torch-2.9"}
        compared = {"pytorch"}
    assert {condition.framework for condition in made} == compared


def test_every_profile_has_parameters_for_every_notebook() -> None:
    for profile in ("quick", "full"):
        assert {path.stem for path in (ROOT / "parameters" / profile).glob("*.yaml")} == {*MEASURING, "defaults"}


MARGINS = [
    (0, "greater than 0"),
    (1, "less than 1"),
    (-0.05, "greater than 0"),
    (float("nan"), "less than 1"),
    ("x", "number"),
]

WRONG = [
    ("batch_size", "workload", "cnnn", ["workload: 'cnnn'", "did you mean 'cnn'"]),
    (
        "batch_size",
        "subjects.1.framework",
        "mindspoer",
        ["subjects.1.framework: 'mindspoer'", "did you mean 'mindspore'"],
    ),
    ("batch_size", "subjects.0.mode", "eagre", ["subjects.0.mode: 'eagre'", "did you mean 'eager'"]),
    ("batch_size", "subjects.0.lane", "tunned", ["subjects.0.lane: 'tunned'", "did you mean 'tuned'"]),
    ("batch_size", "device", "cdua", ["device: 'cdua'", "did you mean 'cuda'"]),
    ("batch_size", "data", "digit", ["data: 'digit'", "did you mean 'digits'"]),
    ("batch_size", "batch_sizes", [8, 0], ["batch_sizes.1: 0", "greater than or equal to 1"]),
    ("batch_size", "batch_sizes", [-4], ["batch_sizes.0: -4", "greater than or equal to 1"]),
    ("batch_size", "batch_sizes", [2.5], ["batch_sizes.0: 2.5", "integer"]),
    ("batch_size", "batch_sizes", ["many"], ["batch_sizes.0: 'many'", "integer"]),
    ("batch_size", "batch_sizes", 64, ["batch_sizes: 64", "list"]),
    ("batch_size", "batch_sizes", [], ["batch_sizes: []", "at least one value"]),
    ("batch_size", "batch_sizes", [8, 8], ["batch_sizes: [8, 8]", "twice"]),
    ("batch_size", "batch_sizes", [2048], ["batch_sizes: 2048", "1437 training samples"]),
    (
        "batch_size",
        "train_samples",
        100,
        ["train_samples: 100", "is larger than the 100 training samples"],
    ),
    ("batch_size", "subjects", [], ["subjects: []", "at least one value"]),
    ("batch_size", "seeds", [], ["seeds: []", "at least one value"]),
    ("batch_size", "seeds", [-1], ["seeds.0: -1"]),
    ("batch_size", "epochs", 0, ["epochs: 0"]),
    ("batch_size", "precision", 3, ["precision: 3", "less than 1"]),
    ("batch_size", "budget_s", -1, ["budget_s: -1", "greater than 0"]),
    ("instrument", "subjects.0.lane", "default", ["subjects.0.lane: 'default'", "the tuned lane"]),
    ("batch_size", "block_s", float("inf"), ["block_s: inf"]),
    (
        "batch_size",
        "hyperparameters",
        {"image_sise": 8},
        ["hyperparameters", "'image_sise'", "did you mean 'image_size'"],
    ),
    ("batch_size", "hyperparameters", {"image_size": 7}, ["hyperparameters", "7", "16, 32, 8"]),
    ("batch_size", "batch_sise", [8], ["unknown key 'batch_sise'", "did you mean 'batch_sizes'"]),
    ("batch_size", "workload", "linear", ["workload: 'linear'", "no metric", "choose bert or cnn"]),
    ("batch_size", "hyperparameters", {"conv_dropout": 1.5}, ["conv_dropout: 1.5 is too large"]),
    ("batch_size", "seeds", [0, 2**63], ["seeds.1: 9223372036854775808", "the most is 4,294,967,295", "generators"]),
    ("batch_size", "precision", 1e-12, ["precision: 1e-12", "below 0.1 % cannot be resolved"]),
    ("batch_size", "epochs", 10**30, ["epochs: 10000", "the most is 100,000"]),
    ("batch_size", "budget_s", 1e300, ["budget_s: 1e+300", "that is a year"]),
    ("batch_size", "block_s", 1e5, ["block_s: 100000.0", "the most is 300", "hung"]),
    ("batch_size", "pilot", 10**30, ["pilot: 1000000", "the most is 1,000"]),
    ("equivalence", "models.7.hyperparameters", {"layers": 10**9}, ["models.7.hyperparameters", "the most is 1,000"]),
    (
        "inference",
        "hyperparameters",
        {"image_size": 10**9},
        ["hyperparameters: {'image_size': 1000000000}", "larger than"],
    ),
    ("inference", "batch_sizes", [1, 10**30], ["batch_sizes: 1000000000000000000000000000000: ", "larger than"]),
    ("inference", "batch_sizes", list(range(1, 1200)), ["subjects, batch_sizes: 2,398 conditions", "2,000"]),
    ("batch_size", "self", 1, ["unknown key 'self'"]),
    *(("batch_size", "margin", value, [f"margin: {value!r}", told]) for value, told in MARGINS),
]


@pytest.mark.parametrize(("notebook", "place", "value", "told"), WRONG, ids=[f"{w[0]}-{w[1]}-{w[2]}" for w in WRONG])
def test_wrong_value_is_refused_with_file_key_and_value(
    notebook: str, place: str, value: object, told: list[str], tmp_path: Path
) -> None:
    with pytest.raises(BenchlibError) as refused:
        load(notebook, changed(notebook, place, value), tmp_path)
    lines = str(refused.value).splitlines()
    assert all(line.startswith(f"{tmp_path / notebook}.yaml: ") for line in lines)
    assert any(all(part in line for part in told) for line in lines), str(refused.value)


@pytest.mark.parametrize(
    ("notebook", "place"),
    [
        ("equivalence", "models.0.hyperparameters"),
    ],
)
def test_what_was_left_out_gets_no_silent_default(notebook: str, place: str, tmp_path: Path) -> None:
    values = changed(notebook, place, None)
    items, number, key = place.split(".")
    del values[items][int(number)][key]
    with pytest.raises(BenchlibError, match=rf"{notebook}\.yaml: {place}: missing; give it a value"):
        load(notebook, values, tmp_path)


@pytest.mark.parametrize("notebook", experiments.NOTEBOOKS)
def test_no_parameter_has_a_default(notebook: str) -> None:
    schema = experiments.module(notebook).Parameters.model_json_schema()
    for part in (schema, *schema.get("$defs", {}).values()):
        optional = {"environment", "if_there", "budget_s"}  # of a subject; of a notebook that is run by itself
        needed = set(part.get("properties", ())) - optional
        assert set(part.get("required", ())) == needed, part["title"]


@pytest.mark.parametrize("long", ["n" * 300_000, "1" * 300_000 + "x", ["n" * 300_000], {"n" * 300_000: 1}, 10**300])
def test_a_refusal_does_not_repeat_a_long_value(long: object) -> None:
    """As a notebook's parameters cell may have it: a file's is refused for its size."""
    places = [
        "workload",
        "data",
        "device",
        "batch_sizes",
        "hyperparameters",
        "subjects",
        "seeds",
        "precision",
        "epochs",
    ]
    started = time.process_time()
    for place in places:
        for value in (long, [long]):
            with pytest.raises(BenchlibError) as refused:
                batch_size.Parameters(**{**quick("batch_size"), place: value})
            assert place in str(refused.value)
            assert max(map(len, str(refused.value).splitlines())) < 700
    for wrong in ({"framework": long}, {"hyperparameters": {"image_size": long}}, {"hyperparameters": long}):
        with pytest.raises(BenchlibError) as refused:
            Condition(workload="cnn", **wrong)
        assert len(str(refused.value)) < 700
    assert time.process_time() - started < 10


def test_a_refusal_has_so_many_lines_and_no_more(tmp_path: Path) -> None:
    with pytest.raises(BenchlibError) as refused:
        load("batch_size", changed("batch_size", "seeds", [-1] * 1000), tmp_path)
    lines = str(refused.value).splitlines()
    assert len(lines) == 21
    assert lines[-1] == f"{tmp_path / 'batch_size.yaml'}: and 980 more values are wrong"


@pytest.mark.parametrize("notebook", ["operators", "batch_size"])
def test_checking_is_quick(notebook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the calls that took the time: folders were listed, and conditions made, for every choice of every one."""
    values = experiments.values(notebook, ROOT / "parameters" / "full" / f"{notebook}.yaml")
    if notebook == "batch_size":
        values["batch_sizes"] = list(range(1, 300))
    path = tmp_path / f"{notebook}.yaml"
    path.write_text(yaml.safe_dump(values), encoding="utf-8")
    plan.planned(notebook, path)  # the imports, and what is asked of the machine once

    calls: Counter[str] = Counter()

    def counted(what: str, function: Any) -> Any:
        def call(*given: Any, **named: Any) -> Any:
            calls[what] += 1
            return function(*given, **named)

        return call

    monkeypatch.setattr(pkgutil, "iter_modules", counted("folders", pkgutil.iter_modules))
    monkeypatch.setattr(Path, "glob", counted("folders", Path.glob))
    monkeypatch.setattr(ast, "parse", counted("files", ast.parse))
    monkeypatch.setattr(Condition, "__init__", counted("conditions", Condition.__init__))
    started = time.process_time()
    made = plan.planned(notebook, path).conditions
    assert time.process_time() - started < 4, "0.3 s or less, where nobody else is at work"
    assert calls["folders"] + calls["files"] <= 5
    assert len(made) <= calls["conditions"] <= 5 * len(made)


def test_everything_wrong_is_told_at_once(tmp_path: Path) -> None:
    values = {**quick("batch_size"), "device": "gpu", "epochs": 0, "colour": "red"}
    del values["seeds"]
    with pytest.raises(BenchlibError) as refused:
        load("batch_size", values, tmp_path)
    lines = str(refused.value).splitlines()
    assert len(lines) == 4
    for told in ("device: 'gpu'", "epochs: 0", "unknown key 'colour'", "seeds: missing"):
        assert any(told in line for line in lines)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("epochs: [1, 2", "is not YAML"),
        ("- 1\n- 2\n", "expected parameters"),
        ("", "expected parameters"),
        ("1: 2\n", "expected parameters"),
    ],
)
def test_file_that_holds_no_parameters_is_refused(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(BenchlibError, match=told) as refused:
        load("batch_size", text, tmp_path)
    assert str(refused.value).startswith(str(tmp_path / "batch_size.yaml"))


def test_file_that_is_not_there_and_unknown_notebook(tmp_path: Path) -> None:
    with pytest.raises(BenchlibError, match=r"none\.yaml: cannot be read"):
        experiments.load("batch_size", tmp_path / "none.yaml")
    with pytest.raises(BenchlibError, match="did you mean 'batch_size'"):
        experiments.load("batchsize", tmp_path / "none.yaml")


DEFAULTS = {"precision": 0.03, "pilot": 3, "block_s": 0.1, "margin": 0.05, "minutes": 14}


def test_the_defaults_reach_what_compares_and_a_notebooks_own_value_wins(tmp_path: Path) -> None:
    (tmp_path / "defaults.yaml").write_text(yaml.safe_dump(DEFAULTS | {"pilot": 7}), encoding="utf-8")
    own = {name: value for name, value in quick("inference").items() if name not in DEFAULTS}
    assert {**DEFAULTS, "pilot": 7}.items() >= load("inference", own, tmp_path).settings.items() - {("budget_s", 60.0)}
    assert load("inference", own | {"pilot": 4}, tmp_path).pilot == 4
    assert load("equivalence", quick("equivalence"), tmp_path), "it compares nothing, and takes none"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("precision", 1e-9, "precision: 1e-09: a half-width below"),
        ("pilot", "many", "pilot: 'many'"),
        ("minutes", 0, "minutes: 0"),
        ("marge", 0.05, "unknown key 'marge'; did you mean 'margin'?"),
    ],
)
def test_wrong_defaults_are_refused_by_file_key_and_value(tmp_path: Path, name: str, value: object, told: str) -> None:
    path = tmp_path / "defaults.yaml"
    path.write_text(yaml.safe_dump(DEFAULTS | {name: value}), encoding="utf-8")
    with pytest.raises(BenchlibError) as refused:
        load("inference", quick("inference"), tmp_path)
    assert str(refused.value).startswith(f"{path}: {told}")


def test_notebook_lists_match() -> None:
    assert {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")} >= set(experiments.NOTEBOOKS)


# -- what is measured


def test_batch_sizes_are_compared_within_one_batch_size(tmp_path: Path) -> None:
    lab = SyntheticLab(tmp_path)
    parameters = three_batch_sizes()
    batch_size.measure(parameters, lab)
    compared = [asked[1] for asked in lab.asked if asked[0] == "compare"]
    assert [[c.batch_size for c in group] for group in compared] == [[size] * 2 for size in parameters.batch_sizes]
    assert all([c.framework for c in group] == ["pytorch", "mindspore"] for group in compared)
    asked = [condition for asked in lab.asked for condition in asked[1]]
    assert asked == experiments.conditions("batch_size", parameters)


@pytest.mark.parametrize(
    ("workload", "batch", "values", "million", "parameters"),
    [
        (
            "conv2d",
            8,
            {"in_channels": 16, "out_channels": 32, "image_size": 10},
            8 * 32 * 16 * 28**2 / 1e6,  # 3 taps at each of 10 places, but for 2 that are padding, along each side
            16 * 9 * 32 + 32,
        ),
        ("linear", 4, {"in_features": 100, "out_features": 50}, 4 * 50 * 100 / 1e6, 100 * 50 + 50),
        ("batchnorm2d", 2, {"channels": 3, "image_size": 5}, 2 * 3 * 25 / 1e6, 6),
    ],
)
def test_size_of_an_operator(workload: str, batch: int, values: dict, million: float, parameters: int) -> None:
    size = tidy.size(Condition(workload=workload, batch_size=batch, hyperparameters=values))
    assert size["parameters"] == parameters
    assert size["million_multiply_adds"] == pytest.approx(million)
    work = workloads.load(workload).step_work({**workloads.load(workload).values(values), "passes": "forward"})
    assert size["million_multiply_adds"] == pytest.approx(batch * work.multiply_adds / 1e6), "as for the peak"


# -- what the findings say


def three_batch_sizes() -> batch_size.Parameters:
    return batch_size.Parameters(**changed("batch_size", "batch_sizes", [4, 32, 64]))


def batch_sizes(tmp_path: Path, **made_up: Any) -> Result:
    return batch_size.measure(three_batch_sizes(), SyntheticLab(tmp_path, **made_up))


def test_findings_give_ratio_interval_and_control(tmp_path: Path) -> None:
    ratios = batch_sizes(tmp_path).findings()[0]
    assert "mindspore graph tuned relative to pytorch eager tuned" in ratios
    at_32 = re.search(
        r"batch 32: ([\d.]+) \[([\d.]+), ([\d.]+)\], slower \(A/A ([\d.]+) \[([\d.]+), ([\d.]+)\]\)", ratios
    )
    ratio, low, high, control, control_low, control_high = map(float, at_32.groups())
    assert low < ratio < high
    assert ratio == pytest.approx(1 / 3, rel=0.05)
    assert control_low <= 1 <= control_high
    assert control == pytest.approx(1, rel=0.05)


def test_a_limit_or_a_timer_that_could_not_be_measured_counts_as_failed(tmp_path: Path) -> None:
    class Lab(SyntheticLab):
        def ceiling(self, device: str, within: list[str]) -> Ceiling:
            failed = {"failures": ["worker died in 'block'"], "crashed": True}
            return super().ceiling(device, within).model_copy(update=failed)

        def check_timers(self, conditions: Iterable[Condition]) -> list[SyncCheck]:
            failed = {"failure": "worker died in 'planted'", "crashed": True}
            return [check.model_copy(update=failed) for check in super().check_timers(conditions)]

    for name, number in (("inference", 1), ("instrument", 4)):
        module = experiments.module(name)
        result = module.measure(module.Parameters(**quick(name)), Lab(tmp_path))
        summary = result.summary()
        assert (summary["failures"], summary["crashed"]) == (number, number)
        assert "worker died in" in result.show_failures().data


def test_interval_that_includes_1_is_no_difference_shown(tmp_path: Path) -> None:
    noise = itertools.cycle([0.0100, 0.0106, 0.0094, 0.0101])  # over processes, whatever their condition
    ratios = batch_sizes(tmp_path, step=lambda condition: next(noise), spread=0.0).findings()[0]
    assert ratios.count("no difference shown") == 3
    assert "faster" not in ratios
    assert "slower" not in ratios


def test_interval_within_the_margin_is_the_same_in_findings_and_tables(tmp_path: Path) -> None:
    result = batch_sizes(tmp_path, step=lambda condition: 0.01, spread=0.002)
    same = "the same within 5 %"
    assert result.findings()[0].count(f", {same} (A/A ") == 3
    frame = result.tables()["ratios"][1]
    assert frame["verdict"].tolist() == [same] * 3
    assert set(result.frame["margin"]) == {0.05}


def test_margin_is_the_parameters(tmp_path: Path) -> None:
    given = batch_size.Parameters(**{**changed("batch_size", "batch_sizes", [4, 32, 64]), "margin": 0.001})
    result = batch_size.measure(given, SyntheticLab(tmp_path, step=lambda condition: 0.01, spread=0.002))
    assert "the same within" not in result.findings()[0]
    assert "the same within 0.1 %" in result.figures["ratios"][0]


def test_a_a_of_the_instrument_are_counted_within_the_margin(tmp_path: Path) -> None:
    given = instrument.Parameters(**quick("instrument"))
    narrow = instrument.measure(given, SyntheticLab(tmp_path, spread=0.002)).findings()[0]
    wide = instrument.measure(given, SyntheticLab(tmp_path, spread=0.3)).findings()[0]
    count = len(instrument.comparisons(given))
    assert f"of {count} intervals include 1, {count} are the same within 5 %" in narrow
    assert f"of {count} intervals include 1, 0 are the same within 5 %" in wide


def test_control_that_excludes_1_is_told(tmp_path: Path) -> None:
    lab = SyntheticLab(tmp_path, spread=0.0)
    roles = iter(range(10**6))
    lab.step = lambda condition: step_seconds(condition) * (1.2 if next(roles) % 3 == 1 else 1)  # the control is slower
    ratios = batch_size.measure(three_batch_sizes(), lab).findings()[0]
    assert ratios.count("which excludes 1: the baseline differs from itself") == 3


def test_models_that_differ_and_failures_get_no_ratio(tmp_path: Path) -> None:
    result = batch_sizes(
        tmp_path,
        differs=lambda condition: condition.framework == "mindspore" and condition.batch_size == 4,
        fails=lambda condition: condition.framework == "mindspore" and condition.batch_size == 64,
    )
    ratios = result.findings()[0]
    assert "batch 4: no ratio: the models differ" in ratios
    assert "batch 64: no ratio: not measured" in ratios
    assert re.search(r"batch 32: 0\.3\d", ratios)
    assert len(result.failures()) == 1, "five processes of one condition"
    assert "the worker died" in result.show_failures().data


@pytest.mark.parametrize(
    ("best", "told"), [(64, "inside the grid: lower at both ends"), (16, "no inner maximum is shown")]
)
def test_where_the_accuracy_is_best(best: int, told: str, tmp_path: Path) -> None:
    result = batch_sizes(tmp_path, metric=lambda c, seed, epoch: 0.9 if c.batch_size == best else 0.5 + 0.01 * seed)
    found = next(finding for finding in result.findings() if AFTER in finding)
    assert f"highest at batch size {best}, 90.0 %" in found
    assert told in found
    assert found.startswith(f"pytorch eager tuned, {AFTER}: digits test accuracy")


def test_seeds_that_overlap_are_told(tmp_path: Path) -> None:
    result = batch_sizes(
        tmp_path, metric=lambda c, seed, epoch: {16: 0.5, 64: 0.7, 512: 0.69}[c.batch_size] + 0.05 * seed
    )
    found = next(finding for finding in result.findings() if AFTER in finding)
    assert "the seeds' ranges overlap with those at 512." in found


@pytest.mark.parametrize("differs", [False, True])
def test_every_check_of_a_certificate_is_drawn(tmp_path: Path, differs: bool) -> None:
    lab = SyntheticLab(tmp_path, differs=lambda condition: differs)
    result = equivalence.measure(equivalence.Parameters(**quick("equivalence")), lab)
    (axes,) = result.figures["differences"][1].axes
    points = [x for line in axes.lines if line.get_marker() == "|" for x in line.get_xdata()]
    models = len(quick("equivalence")["models"])
    assert len(points) == 2 * models
    assert np.isfinite(points).all()
    assert len(axes.texts) == models, "of each the farthest is named"
    assert result.tables()["certificates"][1]["trials"].tolist() == [2] * len(points)


def test_metrics_are_called_what_they_are() -> None:
    labels = {name: metric.label(workloads.load(name)) for name in {task["workload"] for task in full_tasks()}}
    assert labels["bert"] == "accuracy of masked test words (%)"
    assert labels["seq2seq"] == "BLEU (13a, lower case)"
    assert labels["gru"] == "test accuracy (%)"


def full_tasks() -> list[dict[str, Any]]:
    """The tasks of the full profile."""
    return yaml.safe_load((ROOT / "parameters" / "full" / "frameworks.yaml").read_text(encoding="utf-8"))["tasks"]


def test_what_was_settled_is_told_of_each_workload_once(tmp_path: Path) -> None:
    values = quick("equivalence")
    values["subjects"] = [{**MINDSPORE, "mode": mode} for mode in ("eager", "graph")]
    result = equivalence.measure(equivalence.Parameters(**values), SyntheticLab(tmp_path))
    caption, table = result.tables()["settled"]
    assert "stays so when speed is measured" in caption
    assert table.columns.tolist() == ["workload", "what", "how"]
    expected = [
        (model["workload"], what, how)
        for model in values["models"]
        for what, how in workloads.load(model["workload"]).settled.items()
    ]
    assert list(table.itertuples(index=False, name=None)) == expected
    assert {workload for workload, _, _ in expected} == {model["workload"] for model in values["models"]}
    assert "tanh form unless told" in result.show_table("settled").data


# -- the notebooks


def notebook(name: str) -> nbformat.NotebookNode:
    return nbformat.read(ROOT / "notebooks" / f"{name}.ipynb", as_version=4)


def parameters_cell(name: str) -> str:
    (cell,) = [cell for cell in notebook(name).cells if "parameters" in cell.metadata.get("tags", [])]
    return cell.source


@pytest.mark.parametrize("name", experiments.NOTEBOOKS)
def test_notebook_is_committed_without_outputs(name: str) -> None:
    read = notebook(name)
    nbformat.validate(read)
    code = [cell for cell in read.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert [cell.id for cell in read.cells] == [f"{name.replace('_', '-')}-{i:02d}" for i in range(len(read.cells))]
    assert read.metadata.kernelspec == {"display_name": "Python 3", "language": "python", "name": "python3"}
    assert read.cells[0].cell_type == "markdown"
    assert read.cells[0].source.startswith("# ")


@pytest.mark.parametrize("name", MEASURING)
def test_notebook_says_question_method_reading_and_limits_first(name: str) -> None:
    prose = notebook(name).cells[0].source
    for part in (
        "The question.",
        "What was published.",
        "How it is measured.",
        "How to read the result.",
        "What it does not show.",
    ):
        assert f"**{part}**" in prose


@pytest.mark.parametrize("name", MEASURING)
def test_parameters_cell_holds_the_quick_parameters(name: str) -> None:
    variables: dict[str, Any] = {}
    exec(parameters_cell(name), variables)
    del variables["__builtins__"]
    assert variables == {**quick(name), "outputs": None}
    assert set(variables) - {"outputs"} == set(experiments.module(name).Parameters.model_fields)


@pytest.mark.parametrize("name", MEASURING)
def test_notebook_hands_over_the_names_of_its_parameters_cell(name: str) -> None:
    code = "\n".join(cell.source for cell in notebook(name).cells if cell.cell_type == "code")
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    (call,) = (call for call in calls if ast.unparse(call.func) == "experiments.measure")
    assert [ast.unparse(argument) for argument in call.args] == [repr(name), "Lab(outputs=outputs)"]
    handed = {keyword.arg: ast.unparse(keyword.value) for keyword in call.keywords}
    variables: dict[str, Any] = {}
    exec(parameters_cell(name), variables)
    given = set(variables) - {"__builtins__", "outputs"}
    assert not given - set(handed), "these are in the parameters cell, and are not handed over"
    assert handed == {one: one for one in given}


def test_what_is_not_handed_over_is_named(tmp_path: Path) -> None:
    given = {key: value for key, value in quick("inference").items() if key != "batch_sizes"}
    with pytest.raises(BenchlibError, match="Parameters: batch_sizes: missing; give it a value"):
        experiments.measure("inference", SyntheticLab(tmp_path), **given)
    with pytest.raises(BenchlibError, match="unknown key 'batches'"):
        experiments.measure("inference", SyntheticLab(tmp_path), **quick("inference"), batches=[1])


@pytest.mark.parametrize("disturbed", [False, True])
@pytest.mark.parametrize("name", [name for name in MEASURING if name != "equivalence"])
def test_notebook_shows_and_draws_rows_of_its_frame(tmp_path: Path, name: str, disturbed: bool) -> None:
    cells = [cell.source for cell in notebook(name).cells]
    shows = next(at for at, source in enumerate(cells) if "result.frame[" in source)
    assert "`result.frame` has all that this notebook measured" in cells[shows - 1]
    lab = SyntheticLab(tmp_path, disturbed=lambda condition: disturbed)
    variables: dict[str, Any] = {"result": experiments.measure(name, lab, **quick(name))}
    *before, last = cells[shows].splitlines()
    exec("\n".join(before), variables)
    shown = eval(last, variables)
    assert len(shown)
    assert len(shown.columns) <= 9
    plt.close("all")
    exec(cells[shows + 1], variables)
    axes = variables["axes"]
    axes.figure.canvas.draw()  # though there may be no number
    *points, intervals = axes.collections
    assert len(intervals.get_segments()) == len(shown)
    assert [len(one.get_offsets()) for one in points] in ([len(shown)], [])
    assert disturbed or points


@pytest.fixture
def run_notebook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a notebook's cells in this process; returns the HTML of what it shows, and what it glues."""

    def run(name: str, lab: object) -> tuple[list[str], dict[str, Any]]:
        shown, glued = [], {}
        monkeypatch.setattr("benchlib.lab.Lab", lambda outputs: lab)
        monkeypatch.setattr("scrapbook.glue", glued.__setitem__)
        variables: dict[str, Any] = {}
        for cell in notebook(name).cells:
            if cell.cell_type != "code":
                continue
            *before, last = cell.source.splitlines()
            if last.startswith("result."):
                exec("\n".join(before), variables)
                shown.append(eval(last, variables).data)
            else:
                exec(cell.source, variables)
        plt.close("all")
        return shown, glued

    return run


def test_notebooks_run_and_the_report_gathers_them(
    run_notebook: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "KINDS", ("png", "svg", "pdf"))
    for name in MEASURING[:-1]:
        differs = name == "batch_size" and (lambda c: c.framework == "mindspore")
        lab = SyntheticLab(tmp_path, fails=lambda c: c.learning_rate == 0.05, differs=differs or (lambda c: False))
        shown, glued = run_notebook(name, lab)
        summary = glued["summary"]
        assert summary == json.loads(json.dumps(summary)), "a summary holds plain types only"
        assert summary["title"]
        assert summary["findings"]
        assert summary["failures"] == (2 if name == "learning_rate" else 0)
        assert summary["measurements"] or name == "equivalence", "which has certificates only"
        assert all((tmp_path / path).is_file() for path in [*summary["figures"], *summary["tables"]])
        images = [html for html in shown if "<img" in html]
        assert len(images) == len(summary["figures"]) / 3, "each figure is shown, and saved as png, svg and pdf"
        assert all("<figcaption>" in html for html in images)
        explored.save(tmp_path, name, summary)
    page = explored.report(tmp_path).read_text()
    for name in [*MEASURING[:-1], "claims"]:
        for finding in explored.summary_of(tmp_path, name)["findings"]:
            assert finding.split(" [")[0].replace("&", "&amp;") in page


def test_processes_that_were_not_steady_or_not_alone_are_told(tmp_path: Path) -> None:
    lab = SyntheticLab(tmp_path)
    result = batch_size.measure(three_batch_sizes(), lab)
    assert result.warnings() == []
    first = result.comparisons[0].measurements[0]
    first.steady = NOT_STEADY
    first.blocks[0].idle_cpu_s = first.blocks[0].wall_s
    del result.frame  # computed once
    told = result.warnings()
    assert len(told) == 2
    assert "80% of its processes were steady" in told[0]
    assert "used more than 0.1 cores in a process; most, 0.20, beside cnn pytorch" in told[1]
    assert result.summary()["warnings"] == told


def test_the_instrument_tells_what_knobs_do_and_whether_timers_see_all(tmp_path: Path) -> None:
    mindspore = {"framework": "mindspore", "mode": "graph", "lane": "tuned"}
    subjects = [*quick("instrument")["subjects"], mindspore]
    values = {**quick("instrument"), "subjects": subjects, "single_knobs": True}
    values["alone"] = [{**PYTORCH, "lane": "default", "batch_size": 8}]
    slower = {"default": 1.25, "tuned": 1.0}
    lab = SyntheticLab(tmp_path, step=lambda c: 0.01 * slower[c.lane] * (1.1 if c.without else 1.0), spread=0.001)
    result = instrument.measure(instrument.Parameters(**values), lab)
    findings = "\n".join(result.findings())
    assert re.search(r"pytorch eager, lane default: throughput ratio 0\.8\d* \[.*slower", findings)
    assert re.search(r"mindspore graph, without ONEDNN_MAX_CPU_ISA: throughput ratio 0\.9", findings)
    assert "pytorch eager tuned on cpu: the timer sees the work, 100% of planted 0.20 s and 100% of a few" in findings
    assert "mindspore graph tuned on cpu: THE TIMER DOES NOT SEE ALL THE WORK" in findings
    told = next(answer for answer in result.answers() if "timers" in answer)
    assert told.startswith("1 of 3 timers see the work that was planted to test them (100% of it, or more). ")
    assert "mindspore graph tuned on cpu: THE TIMER DOES NOT SEE ALL THE WORK" in told
    table = result.tables()["knobs"][1]
    assert len(table) == 2 + 4 + 4, "the default lane of each, and each knob of each"
    assert result.draw()["knobs"]
    assert re.search(r"\(A/A\): \d of 3 intervals include 1", findings), "the two subjects, and one alone"
    assert "used 0.50 % of one core at most" in findings
    effects = {(one["framework"], one["knob"]): one["effect"] for one in result.summary()["effects"]}
    assert len(effects) == 2 + 4 + 4
    assert effects["pytorch", None].startswith("1.2"), "the tuned lane is the faster one, by a quarter"
    assert effects["mindspore", "ONEDNN_MAX_CPU_ISA"].startswith("1.10")


def test_a_comparison_that_the_budget_ended_says_what_it_would_have_taken(tmp_path: Path) -> None:
    result = batch_size.measure(three_batch_sizes(), SyntheticLab(tmp_path, spread=0.2))
    (told,) = (warning for warning in result.warnings() if "budget" in warning)
    assert told.startswith("3 of 3 comparisons did not reach the 3 % that was asked for in their budget of 60 s")
    assert re.search(r"it would have taken about [\d,]+ to [\d,]+ more processes of each condition, .* to .*\.", told)
    assert told.endswith("The pilot alone, which is always finished, took longer than that in 3 of them.")


def test_a_driver_that_tells_half_is_drawn_all_the_same(tmp_path: Path) -> None:
    values = {**quick("batch_size"), "subjects": quick("batch_size")["subjects"][:1], "device": "cuda"}
    result = batch_size.measure(batch_size.Parameters(**values), SyntheticLab(tmp_path))
    for m in [m for one in result.comparisons for m in one.measurements]:
        m.trace = [sample.model_copy(update={"accelerator_memory_mib": None}) for sample in m.trace]
    axes = result.draw()["indicators"][1].axes
    assert "accelerator (%)" in [one.get_ylabel() for one in axes]
    assert len(axes) == 6, "its memory is not told"
