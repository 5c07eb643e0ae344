"""The experiments: wrong parameters are refused by name, findings say what the results show, the notebooks work."""

from __future__ import annotations

import ast
import pkgutil
import re
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import nbformat
import pytest
import yaml
from studies import measured
from synthetic_lab import SyntheticLab

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.parameter_types import defaults, read
from benchlib.runner.roofline import Ceiling
from benchlib.runner.timer_check import SyncCheck
from benchlib.stats import frame as tidy
from benchlib.study import design
from benchlib.suite import experiments, plan
from benchlib.suite.experiments import (
    instrument,
)
from benchlib.worker.steady import NOT_STEADY

ROOT = Path(__file__).parents[1]
MEASURING = list(experiments.OLD)
pytestmark = pytest.mark.usefixtures("one_kind_of_figure", "torch_2_9")
SHIPPED = ("quick", "frameworks", "full", "subset", "features", "release")  # profiles; a user's own are none of these
PYTORCH = {"framework": "pytorch", "mode": "eager", "lane": "tuned"}
MINDSPORE = {"framework": "mindspore", "mode": "graph", "lane": "tuned"}


def quick(notebook: str) -> dict[str, Any]:
    """The quick parameters of a notebook, as plain values."""
    path = ROOT / "parameters" / "quick" / f"{notebook}.yaml"
    if notebook in experiments.OLD:
        return experiments.values(notebook, path)
    return read(path) | {"settings": defaults(path.parent).model_dump(exclude={"minutes"})}


class Plain(yaml.SafeDumper):
    """Writes out what is there twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def load(notebook: str, values: object, folder: Path) -> Any:
    """What the suite makes of these values in a file."""
    path = folder / f"{notebook}.yaml"
    path.write_text(values if isinstance(values, str) else yaml.dump(values, Dumper=Plain), encoding="utf-8")
    if notebook in experiments.OLD:
        return experiments.load(notebook, path)
    return design(ROOT / "notebooks" / f"{notebook}.ipynb", path)


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
    notebook = ROOT / "notebooks" / f"{path.stem}.ipynb"
    made = experiments.Old(path.stem, path).every if path.stem in MEASURING else design(notebook, path).every
    assert len(made) >= 2
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
        ["batch_sizes: 512", "100 training samples"],
    ),
    ("batch_size", "subjects", [], ["subjects: []", "at least one value"]),
    ("batch_size", "seeds", [], ["seeds: []", "at least one value"]),
    ("batch_size", "seeds", [-1], ["seeds.0: -1"]),
    ("batch_size", "epochs", 0, ["epochs: 0"]),
    ("batch_size", "settings.precision", 3, ["precision: 3", "less than 1"]),
    ("batch_size", "settings.budget_s", -1, ["budget_s: -1", "greater than 0"]),
    ("instrument", "subjects.0.lane", "default", ["subjects.0.lane: 'default'", "the tuned lane"]),
    ("batch_size", "settings.block_s", float("inf"), ["block_s: inf"]),
    (
        "batch_size",
        "hyperparameters",
        {"image_sise": 8},
        ["hyperparameters", "'image_sise'", "did you mean 'image_size'"],
    ),
    ("batch_size", "hyperparameters", {"image_size": 7}, ["hyperparameters", "7", "16, 32, 8"]),
    ("batch_size", "batch_sise", [8], ["unknown key 'batch_sise'", "did you mean 'batch_sizes'"]),
    ("batch_size", "hyperparameters", {"conv_dropout": 1.5}, ["conv_dropout: 1.5 is too large"]),
    ("batch_size", "seeds", [0, 2**63], ["seeds.1: 9223372036854775808", "the most is 4,294,967,295", "generators"]),
    ("batch_size", "settings.precision", 1e-12, ["precision: 1e-12", "below 0.1 % cannot be resolved"]),
    ("batch_size", "epochs", 10**30, ["epochs: 10000", "the most is 100,000"]),
    ("batch_size", "settings.budget_s", 1e300, ["budget_s: 1e+300", "that is a year"]),
    ("batch_size", "settings.block_s", 1e5, ["block_s: 100000.0", "the most is 300", "hung"]),
    ("batch_size", "settings.pilot", 10**30, ["pilot: 1000000", "the most is 1,000"]),
    (
        "inference",
        "hyperparameters",
        {"image_size": 10**9},
        ["hyperparameters: {'image_size': 1000000000}", "larger than"],
    ),
    ("inference", "batch_sizes", [1, 10**30], ["batch_sizes: 1000000000000000000000000000000: ", "larger than"]),
    ("inference", "batch_sizes", list(range(1, 1200)), ["more than 2,000 conditions"]),
    ("batch_size", "self", 1, ["unknown key 'self'"]),
    *(("batch_size", "settings.margin", value, [f"margin: {value!r}", told]) for value, told in MARGINS),
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


def test_a_refusal_has_so_many_lines_and_no_more(tmp_path: Path) -> None:
    with pytest.raises(BenchlibError) as refused:
        load("batch_size", changed("batch_size", "seeds", [-1] * 1000), tmp_path)
    lines = str(refused.value).splitlines()
    assert len(lines) == 21
    assert lines[-1] == f"{tmp_path / 'batch_size.yaml'}: and 980 more values are wrong"


@pytest.mark.parametrize("notebook", ["operators", "batch_size"])
def test_checking_is_quick(notebook: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the calls that took the time: folders were listed, and conditions made, for every choice of every one."""
    values = read(ROOT / "parameters" / "full" / f"{notebook}.yaml")
    if notebook == "batch_size":
        values["batch_sizes"] = list(range(1, 300))
    path = tmp_path / f"{notebook}.yaml"
    path.write_text(yaml.safe_dump(values | {"settings": quick(notebook)["settings"]}), encoding="utf-8")
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


DEFAULTS = {"precision": 0.03, "pilot": 3, "block_s": 0.1, "margin": 0.05, "minutes": 14}


def test_the_defaults_reach_what_compares_and_a_notebooks_own_value_wins(tmp_path: Path) -> None:
    (tmp_path / "defaults.yaml").write_text(yaml.safe_dump(DEFAULTS | {"pilot": 7}), encoding="utf-8")
    own = {name: value for name, value in quick("inference").items() if name != "settings"}
    assert {**DEFAULTS, "pilot": 7}.items() >= load("inference", own, tmp_path).settings.items() - {("budget_s", 60.0)}
    assert load("inference", own | {"settings": {"pilot": 4}}, tmp_path).settings["pilot"] == 4


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


# -- what is measured


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


def test_a_limit_or_a_timer_that_could_not_be_measured_counts_as_failed(tmp_path: Path) -> None:
    class Lab(SyntheticLab):
        def ceiling(self, device: str, within: list[str]) -> Ceiling:
            failed = {"failures": ["worker died in 'block'"], "crashed": True}
            return super().ceiling(device, within).model_copy(update=failed)

        def check_timers(self, conditions: Iterable[Condition]) -> list[SyncCheck]:
            failed = {"failure": "worker died in 'planted'", "crashed": True}
            return [check.model_copy(update=failed) for check in super().check_timers(conditions)]

    for name, number in (("instrument", 4),):
        module = experiments.module(name)
        result = module.measure(module.Parameters(**quick(name)), Lab(tmp_path))
        summary = result.summary()
        assert (summary["failures"], summary["crashed"]) == (number, number)
        assert "worker died in" in result.show_failures().data


def test_a_a_of_the_instrument_are_counted_within_the_margin(tmp_path: Path) -> None:
    given = instrument.Parameters(**quick("instrument"))
    narrow = instrument.measure(given, SyntheticLab(tmp_path, spread=0.002)).findings()[0]
    wide = instrument.measure(given, SyntheticLab(tmp_path, spread=0.3)).findings()[0]
    count = len(instrument.comparisons(given))
    assert f"of {count} intervals include 1, {count} are the same within 5 %" in narrow
    assert f"of {count} intervals include 1, 0 are the same within 5 %" in wide


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


def test_processes_that_were_not_steady_or_not_alone_are_told(tmp_path: Path) -> None:
    lab = SyntheticLab(tmp_path)
    result = measured("batch_size", batch_sizes=[4, 32, 64], lab=lab)
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
    result = measured("batch_size", batch_sizes=[4, 32, 64], lab=SyntheticLab(tmp_path, spread=0.2))
    (told,) = (warning for warning in result.warnings() if "budget" in warning)
    assert told.startswith("3 of 3 comparisons did not reach the 3 % that was asked for in their budget of 60 s")
    assert re.search(r"it would have taken about [\d,]+ to [\d,]+ more processes of each condition, .* to .*\.", told)
    assert told.endswith("The pilot alone, which is always finished, took longer than that in 3 of them.")
