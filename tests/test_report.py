"""The report from results that are damaged, in part or of no use: named, left out, and nothing invented."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import explored
import pandas as pd
import pyarrow.parquet as pq
import pytest
from synthetic_lab import SyntheticLab

from benchlib import manifest
from benchlib.condition import Condition
from benchlib.equivalence.certificate import TRUST, Certificate, Check
from benchlib.lab import Lab
from benchlib.report import first_page, reliability, sections, setting
from benchlib.report.load import Results


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    explored.results(folder)
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return shutil.copytree(whole, tmp_path / "results")


def results(folder: Path) -> Results:
    return Results(Lab(outputs=folder))


def shown(of: Results) -> str:
    """All parts of the page."""
    every = [first_page.show(of), sections.questions(of, of.summaries), sections.rest(of, (), ()), sections.notes(of)]
    every += [sections.missing(of), reliability.resolution(of), reliability.certificates(of)]
    every += [part(of) for part in (setting.machine, setting.settings, setting.keys)]
    return "".join(one.data for one in every)


def cut(path: Path) -> None:
    """As after a disk that was full."""
    path.write_bytes(path.read_bytes()[:200])


@pytest.mark.parametrize(("damage", "told"), [(Path.unlink, "is gone"), (cut, "differs from the one that modes made")])
def test_a_measurement_that_is_damaged_is_named_and_the_rest_used(folder: Path, damage: Callable, told: str) -> None:
    keys = explored.summary_of(folder, "modes")["measurements"]
    damage(folder / "measurements" / f"{keys[0]}.parquet")
    page = shown(results(folder))
    assert f"measurements/{keys[0]}.parquet {told}; run again." in page
    assert "Missing: " in page
    assert "damaged files" in page
    assert set(pd.read_csv(folder / "tables" / "measurements.csv")["file"]) == set(keys[1:])


def test_a_file_whose_record_is_of_the_damaged_bytes_is_named(folder: Path) -> None:
    key = explored.summary_of(folder, "modes")["measurements"][0]
    cut(folder / "measurements" / f"{key}.parquet")
    explored.save(folder, "modes", explored.summary_of(folder, "modes"))
    assert "not a whole parquet file" in sections.missing(results(folder)).data


@pytest.mark.parametrize("path", ["tables/modes_ratios.csv", "figures/modes_ratios.svg"])
def test_a_table_or_figure_that_was_edited_is_named_and_not_shown(folder: Path, path: str) -> None:
    with (folder / path).open("a") as file:
        file.write("\n")
    of = results(folder)
    assert f"{path} differs from the one that modes made; run again." in sections.missing(of).data
    page = sections.questions(of, ["modes"]).data + sections.rest(of, ["modes"], ()).data
    assert page.count(f"{path} differs from the one that modes made: run again.") == 1


@pytest.mark.parametrize(
    ("damage", "told"),
    [(lambda path: pq.write_table(pq.read_table(path).drop(["margin"]), path), "its columns are others"), (cut, "")],
)
def test_a_frame_of_another_schema_is_named_and_the_page_is_made(folder: Path, damage: Callable, told: str) -> None:
    damage(folder / "tables" / "modes_frame.parquet")
    explored.save(folder, "modes", explored.summary_of(folder, "modes"))
    of = results(folder)
    (wrong,) = of.wrong
    assert wrong.startswith("tables/modes_frame.parquet cannot be used, so its ratios are missing: ")
    assert told in wrong
    page = shown(of)
    assert wrong.partition(":")[0] in page
    assert "No ratio of throughput has been measured yet." in page


def test_a_stale_result_is_shown_and_marked(folder: Path) -> None:
    record = manifest.read(folder, "modes") | {"stale": "these have changed: benchlib"}
    manifest.path_of(folder, "modes").write_text(json.dumps(record))
    of = results(folder)
    assert "modes: this result is stale (these have changed: benchlib)" in sections.missing(of).data
    assert "Modes (stale)</h3>" in sections.questions(of, ["modes"]).data
    assert "Stale: modes." in first_page.show(of).data


@pytest.mark.parametrize(
    "changes", [{"in_report": ["tables/modes_ratios.csv"]}, {"conditions": [{"x": 1}]}, {"certificates": ["{}"]}]
)
def test_a_summary_of_another_benchlib_is_named(folder: Path, changes: dict) -> None:
    explored.save(folder, "modes", explored.summary_of(folder, "modes") | changes)
    assert "its summary is that of another benchlib" in results(folder).missing["modes"]
    summary = explored.summary_of(folder, "modes")
    del summary["question"]
    explored.save(folder, "modes", summary)
    assert "another benchlib" in results(folder).missing["modes"]


def test_what_failed_or_has_not_run_is_named(folder: Path) -> None:
    failed = {"status": "failed", "error": {"cell": "In [3]", "text": "ValueError: no"}, "files": {}}
    for name, record in (("mine", failed), ("killed", {"status": "running", "files": {}})):
        manifest.path_of(folder, name).write_text(json.dumps(record))
    explored.save(folder, "cut", explored.summary_of(folder, "modes"))
    (folder / "notebooks" / "cut.ipynb").write_text("{")
    told = sections.missing(results(folder)).data
    for text in ("mine: failed in In [3]: ValueError: no", "killed: did not come to its end.", "cut.ipynb cannot be"):
        assert text in told
    assert "scaling: has not run." in told, "one of the project's notebooks"


def test_an_empty_folder_is_told(tmp_path: Path) -> None:
    told = ["has not run.", "There are no measurements.", "No model was checked.", "There is no result yet."]
    told += ["No ratio of throughput has been measured yet.", "No claim has been judged yet."]
    assert [text for text in told if text not in shown(results(tmp_path))] == []


def test_a_notebook_that_glued_nothing_is_named(folder: Path) -> None:
    notebook = folder / "notebooks" / "modes.ipynb"
    content = json.loads(notebook.read_text())
    content["cells"][0]["outputs"] = []
    notebook.write_text(json.dumps(content))
    assert "glued no summary" in results(folder).missing["modes"]


def test_a_question_is_followed_by_its_figure_its_answer_and_its_numbers(folder: Path) -> None:
    (section,) = re.findall("<section>.*?</section>", sections.questions(results(folder), ["modes"]).data, re.DOTALL)
    parts = ['<p class="question">', "<figure", "<ul>", "<li>", "<details>", "<table"]
    assert sorted(parts, key=section.index) == parts


def test_what_failed_in_a_process_is_told(tmp_path: Path) -> None:
    explored.results(tmp_path, fails=lambda condition: condition.framework == "mindspore")
    page = shown(results(tmp_path))
    assert re.search(r"modes: \d+ measurements failed", page)
    assert "without a ratio in 3 of 3 ratios" in page


def test_a_model_that_one_notebook_has_trained_longer_counts_once(folder: Path) -> None:
    condition = Condition(workload="cnn", framework="mindspore")
    check = Check(name="outputs", difference=0.0, worst=0.0, at="0/outputs", tolerance=1e-5)
    shorter = Certificate(condition=condition, reference=Condition(workload="cnn"), checks=[check])
    longer = shorter.model_copy(update={"training": 50})
    wrong = shorter.model_copy(update={"checks": [check.model_copy(update={"difference": 1.0})]})
    summary = explored.summary_of(folder, "modes")
    for texts, counted in (([shorter, longer], longer), ([longer, shorter], longer), ([longer, wrong], wrong)):
        explored.save(folder, "modes", summary | {"certificates": [one.model_dump_json() for one in texts]})
        of = results(folder)
        assert of.certificates == [counted]
    told = reliability.certificates(of).data
    assert ">different: cnn MindSpore" in told
    assert "0/outputs differs by 1.0e+00" in told
    assert TRUST in told


def test_each_a_a_is_judged_by_the_margin_of_its_notebook() -> None:
    ends = {"low": [0.98, 0.9, 1.01], "high": [1.02, 1.1, 1.03]}
    facts = reliability.summarise(pd.DataFrame({"estimate": 1.0, **ends, "margin": [0.05, 0.05, 0.2]}))
    assert (facts["A/A interval includes 1"], facts["within the margin of 1"]) == ("2 of 3", "2 of 3")
    assert (facts["half_width_median"], facts["half_width_largest"]) == pytest.approx((2.0, 10.0))


def test_the_board_has_each_claim_below_its_verdict_with_what_came_out(tmp_path: Path) -> None:
    verdicts = {
        "C1": ("no difference shown", True, "1 case"),
        "C2": ("no difference shown", False, "2 cases"),
        "C3": ("reproduced", False, "3 cases"),
        "C4": ("not measured here", False, "in full: 4 cases"),
        "C5": ("not measured here", False, ""),
    }
    explored.claims(tmp_path, verdicts)
    page = first_page.show(results(tmp_path)).data
    heads, items = (re.findall(pattern, page) for pattern in ("</span>([^<]*?)</h3>", "<li>(.*?)</li>"))
    assert heads == [
        *("1 reproduced", "1 no difference shown", f"1 {first_page.UNDECIDED}"),
        *("1 not measured in full", "1 not measured here"),
    ]
    assert [re.sub("<.*?>", "", one) for one in items] == [
        *("C3 so V100. Here: 3 cases. Then: Reproduced", "C2 so V100. Here: 2 cases", "C1 so V100. Here: 1 case"),
        "C4 so V100. Here not in full: 4 cases",
    ]
    assert "<p>C5</p>" in page


def test_the_machine_and_the_settings_are_told(folder: Path) -> None:
    of = results(folder)
    machine = setting.machine(of).data
    assert ">gpus</td>" in machine, "that there is none is told"
    assert ">cann</td>" not in machine, "no row is empty"
    assert "threads 2" in setting.settings(of).data, "read back"


def test_results_of_two_machines_are_named(folder: Path) -> None:
    assert "machines" not in sections.missing(results(folder)).data
    store = SyntheticLab(folder).store
    copied = store.load(explored.summary_of(folder, "modes")["measurements"][0])
    store.save([m.model_copy(update={"machine": {**m.machine, "cpu": "another"}}) for m in copied])
    explored.save(folder, "modes", explored.summary_of(folder, "modes"))
    told = sections.missing(results(folder)).data
    assert "results of 2 machines" in told
    assert "2 cores of another" in told
