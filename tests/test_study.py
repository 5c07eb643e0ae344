"""Studies: a notebook and a parameter file are an experiment; what is wrong in them is refused by file, key and value;
what is found says what the measurements show.
"""

import itertools
import re
import shutil
from pathlib import Path
from typing import Any

import nbformat
import pytest
import yaml
from studies import ROOT, measured, planned, shown
from synthetic_lab import SyntheticLab
from test_suite import make_project, record_of, run_and_read, write_parameters

from benchlib import manifest, notebooks, parameter_types
from benchlib.errors import BenchlibError
from benchlib.parameter_types import DEFAULTS
from benchlib.runner.roofline import Ceiling
from benchlib.study import Study
from benchlib.suite import profile
from benchlib.worker.warmup import NOT_STEADY

QUICK = ROOT / "parameters" / "quick"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
MEASURING = [path.stem for path in NOTEBOOKS if notebooks.has_design(path)]
SHIPPED = [path for path in sorted((ROOT / "parameters").glob("*/*.yaml")) if path.stem in MEASURING]
EMBEDDED = {"digits", "random", "digits_sequence", "digits_graph", "number_names", "pydoc"}  # need no download
MOST_LINES = 60  # of a notebook's code, so that it is read

MINE = """
from benchlib.parameter_types import *

burns: Rates = [1.0]  # ms of a step
settings: Settings = {}
outputs: Folder = None
"""
DESIGN = """
from benchlib.study import Study

study = Study("mine", title="Mine", question="Which burns less?", settings=settings, outputs=outputs)
toys = [study.conditions([{"framework": "toy"}], workload="toy", hyperparameters={"burn_ms": one}) for one in burns]
study.compare([one for some in toys for one in some])
"""
SHOWN = """
from benchlib.plotting import Bars, Picture
from benchlib.tables import RATIO, Table

bars = Bars(quantity="throughput_ratio", xlabel="relative", labels="label")
study.figure("ratios", Picture(caption="Less is burnt.", panels=[bars]))
"""
TABLE = 'study.table("ratios", Table("Less is burnt.", "throughput_ratio", ("label", *RATIO)), report=True)'
TAGGED = [(MINE, "parameters"), (DESIGN, "design")]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, toy_framework: None) -> None:
    make_project(tmp_path / "project", monkeypatch, [])
    write_parameters("defaults", precision=0.9, pilot=3, block_s=0.004, margin=0.05, minutes=0.3)


def write_mine(*cells: tuple[str, str], burns: Any = (1.0, 3.0)) -> tuple[Path, Path]:
    """Write the notebook and the parameter file of an experiment of one's own; cells are sources with their tags."""
    made = [nbformat.v4.new_code_cell(source, metadata={"tags": [tag] if tag else []}) for source, tag in cells]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(nbformat.v4.new_notebook(cells=made, metadata={"kernelspec": kernel}), "notebooks/mine.ipynb")
    write_parameters("mine", burns=list(burns))
    return Path("notebooks/mine.ipynb"), Path("parameters/quick/mine.yaml")


def test_a_notebook_and_a_parameter_file_are_an_experiment(project: None, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "notebooks" / "report.ipynb", "notebooks")
    monkeypatch.setenv("BENCHLIB_PLUGINS", str(ROOT / "tests" / "doubles"))  # what it is of: no part of the project
    write_mine(*TAGGED, *((source, "") for source in ("study.measure()", SHOWN, TABLE, "study.finish()")))
    code, said = run_and_read()
    assert code == 0, said
    record = record_of("mine")
    assert record["parameters"]["burns"] == [1.0, 3.0]
    assert record["parameters"]["settings"]["pilot"] == 3, "of the profile's defaults"
    assert len([file for file in record["files"] if file.startswith("measurements/")]) >= 3
    page = Path("outputs/quick/report.html").read_text(encoding="utf-8")
    assert all(text in page for text in (">Mine</h3>", "Which burns less?", "<figcaption>", "burn_ms=3"))
    assert not list(manifest.wrong_files(record, Path("outputs/quick")))


def test_the_suite_executes_the_two_tagged_cells_only(project: None) -> None:
    made = notebooks.design(*write_mine(("1 / 0", ""), *TAGGED, ("1 / 0", "")))
    assert [[one.hyperparameters["burn_ms"] for one in group] for group in made.groups] == [[1.0, 3.0]]
    assert [item.name for item in profile.plan("quick")] == ["mine", "report"]


@pytest.mark.parametrize(
    ("cells", "burns", "told"),
    [
        (TAGGED, [1.0, -1.0], "parameters/quick/mine.yaml: burns.1: -1.0: Input should be greater than 0"),
        ([(MINE, ""), TAGGED[1]], [1.0], "has to have the tag parameters"),
        ([TAGGED[0], (DESIGN, "")], [1.0], "no cell has the tag design"),
        ([TAGGED[0], ("1 / 0", "design")], [1.0], "the cell tagged design: ZeroDivisionError"),
        ([TAGGED[0], (DESIGN.replace('"mine"', '"yours"'), "design")], [1.0], "has to make Study('mine', ...)"),
    ],
)
def test_what_is_wrong_in_ones_own_is_refused_by_name(project: None, cells: list, burns: list, told: str) -> None:
    write_mine(*cells, burns=burns)
    code, said = run_and_read()
    assert (code, told in said, "/mine." in said) == (2, True, True), said
    assert not Path("outputs").exists()


def test_all_that_is_wrong_is_told_at_once_in_few_lines() -> None:
    with pytest.raises(BenchlibError) as refused:
        planned("batch_size", device="gpu", epochs=0, colour="red", data="n" * 300_000)
    lines = str(refused.value).splitlines()
    for told in ("device: 'gpu'", "epochs: 0", "unknown key 'colour'"):
        assert any(told in line for line in lines)
    assert max(map(len, lines)) < 700
    with pytest.raises(BenchlibError, match="and 980 more values are wrong"):
        planned("batch_size", seeds=[-1] * 1000)


def test_the_defaults_of_a_profile_reach_its_notebooks_whose_own_settings_win(tmp_path: Path) -> None:
    assert planned("inference", settings={"pilot": 7}).settings == {**planned("inference").settings, "pilot": 7}
    defaults = {**parameter_types.read(QUICK / DEFAULTS), "marge": 1}
    (tmp_path / DEFAULTS).write_text(yaml.dump(defaults), encoding="utf-8")
    with pytest.raises(BenchlibError, match=rf"^{tmp_path / DEFAULTS}: unknown key 'marge': did you mean 'margin'"):
        parameter_types.defaults(tmp_path)


@pytest.mark.parametrize("file", SHIPPED, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_shipped_parameters_are_valid(file: Path, torch_2_9: None) -> None:
    made = planned(file.stem, file.parent.name)
    assert len(made.every) >= 2
    if file.parent.name in {"quick", "frameworks"}:
        assert {one.data for one in made.every} <= EMBEDDED
    if file.stem == "versions":
        assert {one.environment for one in made.every} == {"default", "torch-2.9"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_short_and_committed_without_outputs(path: Path) -> None:
    read = nbformat.read(path, as_version=4)
    nbformat.validate(read)
    code = [cell for cell in read.cells if cell.cell_type == "code"]
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code)
    assert sum(len(cell.source.splitlines()) for cell in code) <= MOST_LINES


@pytest.mark.parametrize("name", MEASURING)
def test_by_itself_a_notebook_measures_what_quick_does_or_a_part_of_it(name: str) -> None:
    cell = next(one for one in notebooks.cells(ROOT / "notebooks" / f"{name}.ipynb") if "parameters" in one.tags)
    exec(cell.source, variables := {})
    folder = QUICK if (QUICK / f"{name}.yaml").exists() else QUICK.with_name(name)  # its own profile
    given, settings = parameter_types.read(folder / f"{name}.yaml"), parameter_types.read(folder / DEFAULTS)
    if "settings" in variables:
        usual = parameter_types.Settings(**variables["settings"]).model_dump(exclude={"budget_s"})
        given["settings"] = {key: settings[key] for key in usual} | given.get("settings", {})
        assert usual == given["settings"]
    for key, value in given.items():
        assert variables[key] == value or all(one in value for one in variables[key]), key
    assert set(given) | {"outputs"} == set(variables["__annotations__"])


def batch_sizes(folder: Path, lab: SyntheticLab | None = None, drawn: bool = False, **made_up: Any) -> Study:
    """The study of batch sizes, measured and shown."""
    made = measured("batch_size", lab or SyntheticLab(folder, **made_up), batch_sizes=[4, 32, 64])
    shown(made, drawn)
    return made


def test_sizes_are_compared_each_with_its_own_baseline_and_summed_up(tmp_path: Path) -> None:
    made = batch_sizes(tmp_path, lab := SyntheticLab(tmp_path), drawn=True)
    compared = [asked[1] for asked in lab.asked if asked[0] == "compare"]
    assert [[one.batch_size for one in group] for group in compared] == [[4, 4], [32, 32], [64, 64]]
    assert made.rows("throughput_ratio")["estimate"].tolist() == pytest.approx([1 / 3] * 3, rel=0.05)
    summary = made.summary()
    assert summary["answers"][0].startswith("Slower than PyTorch eager tuned: MindSpore graph tuned in 3 of 3 (down to")
    assert all((tmp_path / path).is_file() for path in [*summary["figures"], *summary["tables"]])
    assert summary["measurements"]
    assert (summary["failures"], summary["warnings"]) == (0, [])


def test_an_interval_that_includes_1_is_no_difference_shown_and_a_narrow_one_the_same(tmp_path: Path) -> None:
    noise = itertools.cycle([0.0100, 0.0106, 0.0094, 0.0101])  # over processes, whatever their condition
    wide = batch_sizes(tmp_path, step=lambda condition: next(noise), spread=0.0).summary()
    assert wide["answers"][0] == "No difference shown: MindSpore graph tuned in 3 of 3."
    narrow = batch_sizes(tmp_path, step=lambda condition: 0.01, spread=0.002).summary()
    assert narrow["answers"][0] == "The same within 5 %: MindSpore graph tuned in 3 of 3."


def test_models_that_differ_and_failures_have_no_ratio(tmp_path: Path) -> None:
    made = batch_sizes(
        tmp_path,
        differs=lambda one: one.framework == "mindspore" and one.batch_size == 4,
        fails=lambda one: one.framework == "mindspore" and one.batch_size == 64,
    )
    assert made.rows("throughput_ratio")["estimate"].isna().tolist() == [True, False, True]
    assert len(made.failures()) == 1, "five processes of one condition"
    assert "the worker died" in made.show_failures().data
    assert "Nothing that was measured answers this" in made.findings(lambda _: []).data


@pytest.mark.parametrize(("best", "told"), [(64, "lower at both ends"), (16, "no inner maximum is shown")])
def test_where_accuracy_is_highest_is_told_with_whether_it_is_an_end(best: int, told: str, tmp_path: Path) -> None:
    made = batch_sizes(tmp_path, metric=lambda c, seed, epoch: 0.9 if c.batch_size == best else 0.5 + 0.01 * seed)
    assert re.search(rf"highest at batch size {best}, 90\.0 %.*{told}", " ".join(made.summary()["findings"]))


def test_processes_that_were_not_steady_or_not_alone_are_warned_of(tmp_path: Path) -> None:
    made = batch_sizes(tmp_path)
    first = made.comparisons[0].measurements[0]
    first.steady = NOT_STEADY
    first.blocks[0].idle_cpu_s = first.blocks[0].wall_s
    del made.frame  # computed once
    not_steady, not_alone = made.summary()["warnings"]
    assert all(part in not_steady for part in ("not steady", "cnn PyTorch eager", "(20 %)"))
    assert "should sleep" in not_alone


def test_a_limit_of_the_machine_that_could_not_be_measured_counts_as_failed(tmp_path: Path) -> None:
    class Lab(SyntheticLab):
        def ceiling(self, device: str, within: list[str]) -> Ceiling:
            failed = {"failures": ["worker died in 'block'"], "crashed": True}
            return super().ceiling(device, within).model_copy(update=failed)

    summary = batch_sizes(tmp_path, Lab(tmp_path)).summary()
    assert (summary["failures"], summary["crashed"]) == (1, 1)


def test_data_are_named_for_what_they_are(tmp_path: Path) -> None:
    made = measured("batch_size", SyntheticLab(tmp_path), train_samples=600)
    assert "Trained on 600 of the training images only" in made.caveat
    assert any("nothing about CIFAR-10" in note for note in made.notes)
