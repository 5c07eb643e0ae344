"""The report from results that are damaged, in part or of no use: named, left out, and nothing invented."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import frames
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from benchlib.suite.experiments.report import Report
from synthetic_lab import SyntheticLab
from test_experiments import quick, read_summary, save_as_the_suite_does

from benchlib import records
from benchlib.condition import Condition
from benchlib.equivalence.certificate import Certificate, Check
from benchlib.lab import Lab
from benchlib.literature.verdicts import NO_DIFFERENCE, NOT_MEASURED, REPRODUCED, VERDICTS
from benchlib.report import certainty, glance, page_one, results
from benchlib.stats.frame import IMPOSSIBLE
from benchlib.store import Store
from benchlib.suite import experiments
from benchlib.suite.experiments.claims import Claims


def measured(folder: Path, name: str) -> None:
    """The results of a notebook with quick's parameters, from made-up measurements, as after a run."""
    module = experiments.module(name)
    save_as_the_suite_does(
        folder, name, module.measure(module.Parameters(**quick(name)), SyntheticLab(folder)).summary()
    )


def judged(folder: Path) -> None:
    """The results of the notebook claims, as ``benchlib report`` makes them first."""
    save_as_the_suite_does(folder, "claims", Claims(Lab(outputs=folder)).summary())


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of results that claims are judged by."""
    folder = tmp_path_factory.mktemp("whole")
    measured(folder, "learning_rate")
    judged(folder)
    assert read_summary(folder, "claims")["measurements"], "claims rest on measurements"
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    """A copy to damage."""
    return shutil.copytree(whole, tmp_path / "results")


def cut(path: Path) -> None:
    """As after a disk that was full."""
    path.write_bytes(path.read_bytes()[:200])


def edited(path: Path) -> None:
    """A time made shorter by hand: the file can be read."""
    table = pq.read_table(path)
    text = [one.replace('"first_step_s": 1.0', '"first_step_s": 0.1') for one in table["measurement"].to_pylist()]
    assert text != table["measurement"].to_pylist()
    at = table.schema.get_field_index("measurement")
    pq.write_table(table.set_column(at, "measurement", pa.array(text)), path)


def replaced(path: Path) -> None:
    """By another whole measurement of this key, as JupyterLab or another machine makes it."""
    store = Store(path.parent)
    store.save([m.model_copy(update={"first_step_s": 0.1}) for m in store.load(path.stem)])


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (Path.unlink, "is gone"),
        (cut, "not a whole parquet file"),
        (edited, "its content does not match its hash"),
        (replaced, "is not what learning_rate made: it was put there from elsewhere"),
    ],
)
def test_a_measurement_that_is_damaged_is_named_and_the_rest_used(
    folder: Path, damage: Callable[[Path], None], told: str
) -> None:
    key, *others = read_summary(folder, "claims")["measurements"]
    damage(folder / "measurements" / f"{key}.parquet")
    judged(folder)  # which takes what it finds, and records that
    report = Report(Lab(outputs=folder))
    missing = report.show_missing().data
    assert missing.count(f"{key}.parquet") == 1
    assert told in missing
    report.show_again()
    listed = set(pd.read_csv(folder / "tables" / "measurements.csv")["file"])
    assert key not in listed
    assert listed == set(read_summary(folder, "learning_rate")["measurements"]) - {key}
    assert set(others) <= listed
    assert "damaged files" in report.show_glance().data
    shown = ("questions", "believed", "others", "notes", "findings", "verdicts", "resolution", "certificates")
    for part in (*shown, "first_page", "machine", "settings", "compared"):
        assert getattr(report, f"show_{part}")().data


def test_a_file_that_no_record_names_and_that_cannot_be_read_is_named(folder: Path) -> None:
    key = read_summary(folder, "learning_rate")["measurements"][0]
    cut(folder / "measurements" / f"{key}.parquet")
    for name in ("learning_rate", "claims"):  # records of the damaged bytes
        save_as_the_suite_does(folder, name, read_summary(folder, name))
    assert "not a whole parquet file" in Report(Lab(outputs=folder)).show_missing().data


@pytest.mark.parametrize("path", ["tables/learning_rate_metric.csv", "figures/learning_rate_curves.svg"])
def test_a_table_or_figure_that_was_edited_is_named_and_not_shown(folder: Path, path: str) -> None:
    assert path in {*read_summary(folder, "learning_rate")["figures"], *read_summary(folder, "learning_rate")["tables"]}
    with (folder / path).open("a") as file:
        file.write("\n")
    report = Report(Lab(outputs=folder))
    assert f"{path} is not what learning_rate made; run again." in report.show_missing().data
    shown = report.show_questions().data + report.show_others().data
    assert shown.count(f"{path} is not what learning_rate made: run again.") == 1
    assert "damaged files" in report.show_glance().data


def test_a_question_is_followed_by_its_figure_its_answer_and_its_numbers(folder: Path) -> None:
    (section,) = re.findall("<section>.*?</section>", Report(Lab(outputs=folder)).show_questions().data, re.DOTALL)
    parts = ['<p class="question">', "<figure", "<ul>", "<li>", "<details>", "<table"]
    assert sorted(parts, key=section.index) == parts


def test_a_notebook_of_before_is_shown_and_marked_as_stale(folder: Path) -> None:
    record = records.read(folder, "learning_rate")
    why = "these have changed: benchlib"
    records.path_of(folder, "learning_rate").write_text(json.dumps({**record, "stale": why}))
    report = Report(Lab(outputs=folder))
    missing = report.show_missing().data
    assert f"learning_rate: a result of before, which is stale ({why}): nothing was measured for another" in missing
    assert " (stale)</h4>" in report.show_findings().data
    assert report.show_questions().data.count(" (stale)</h3>") == 1
    assert "stale, of before: learning_rate" in report.show_first_page().data
    assert "Stale, of before: learning_rate (see below)." in report.show_glance().data


def gathered(folder: Path, **rows: list[dict]) -> Report:
    """A report of frames, by notebook, that are there without their notebooks."""
    report = Report(Lab(outputs=folder))
    for notebook, own in rows.items():
        frames.save(folder, notebook, own)
        summary = {"tables": [f"tables/{notebook}_frame.parquet"], "figures": [], "certificates": []}
        report.summaries[notebook] = {**summary, "failures": 0, "measurements": []}
    return report


def test_a_model_that_one_notebook_has_trained_longer_counts_once(tmp_path: Path) -> None:
    report = gathered(tmp_path, modes=[ratio(0.5, 0.6)], equivalence=[ratio(0.5, 0.6)])
    condition = Condition(workload="cnn", framework="mindspore")
    check = Check(name="outputs", difference=0.0, worst=0.0, at="0/outputs", tolerance=1e-5)
    shorter = Certificate(condition=condition, reference=Condition(workload="cnn"), checks=[check])
    longer = shorter.model_copy(update={"training": 50})
    wrong = shorter.model_copy(update={"checks": [check.model_copy(update={"difference": 1.0})]})
    for texts, counted in (([shorter, longer], longer), ([longer, shorter], longer), ([longer, wrong], wrong)):
        for summary, one in zip(report.summaries.values(), texts, strict=True):
            summary["certificates"] = [one.model_dump_json()]
        report.__dict__.pop("certificates", None)  # which it keeps
        assert report.certificates == [counted]


def control(*ends: float, **columns: object) -> dict:
    """A row of an A/A."""
    return frames.row("control_ratio", ends or frames.UNKNOWN, frames.PYTORCH, **columns)


def test_no_row_of_the_machine_is_empty(folder: Path) -> None:
    shown = Report(Lab(outputs=folder)).show_machine().data
    assert ">gpus</td>" in shown, "that there is none is told"
    assert ">cann</td>" not in shown


def test_only_what_has_an_a_a_counts_as_one_and_each_once(tmp_path: Path) -> None:
    ratio = frames.row("throughput_ratio", (0.98, 1.02), control=(0.98, 1.02))
    alone = control(1.05, 1.15)
    modes = [control(0.98, 1.02), ratio, ratio, control(), alone, control() | {"estimate": 1.0}]
    instrument = [control(0.99, 1.01), frames.row("throughput_ratio", (1, 2), control=(1.05, 1.15)), alone]
    report = gathered(tmp_path, modes=modes, instrument=instrument, scaling=[control()], devices=[ratio])
    assert {name: len(frame) for name, frame in certainty.controls(report).items()} == {"modes": 2, "instrument": 2}
    (first, *_) = glance.certainty(report)
    assert "2 of 3 intervals include 1, 2 of 3 are the same within 5 %; half-widths of 2 % in the median" in first
    assert ">1 of 2<" in report.show_resolution().data
    assert (
        "nothing is known of the resolution"
        in gathered(tmp_path, scaling=[control()], devices=[ratio]).show_resolution().data
    )


def test_each_a_a_is_judged_by_the_margin_of_its_notebook(tmp_path: Path) -> None:
    margins = {"modes": 0.01, "devices": 0.2}
    ends = ((0.98, 1.02), (0.9, 1.1))
    rows = {name: [control(*each, margin=margin) for each in ends] for name, margin in margins.items()}
    report = gathered(tmp_path, **rows)
    assert "2 of 4 are the same within their notebooks' margins" in glance.certainty(report)[0]
    cells = re.findall(r"<td[^>]*>(.*?)</td>", report.show_resolution().data)
    assert [cell for cell in cells if " of " in cell] == ["2 of 2", "0 of 2", "2 of 2", "2 of 2"]


def ratio(*ends: float, verdict: str | None = "slower", **columns: object) -> dict:
    """A row of a ratio of throughput, with its verdict."""
    usual = {"control": (0.98, 1.02), "without": ""}
    return frames.row("throughput_ratio", ends or frames.UNKNOWN, verdict=verdict, **usual | columns)


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([ratio(0.2, 0.4)], "mindspore graph tuned slower (0.20 to 0.40)"),
        (
            [ratio(0.9, 1.04, verdict="no difference shown")],
            "mindspore graph tuned no difference shown (0.90 to 1.04)",
        ),
        (
            [ratio(0.2, 0.4), ratio(1.1, 1.3, verdict="faster"), ratio(0.3, 0.5)],
            "mindspore graph tuned slower in 2 of 3, faster in 1 of 3 (0.20 to 1.30)",
        ),
        (
            [ratio(0.8, 0.9, control=(1.05, 1.15)), ratio(0.8, 0.9)],
            "mindspore graph tuned slower in 2 of 2 (0.80 to 0.90), but in 1 A/A excludes 1 or is not known: a "
            "difference may show nothing",
        ),
        (
            [ratio(0.8, 0.9, control=None)],
            "mindspore graph tuned slower (0.80 to 0.90), but in 1 A/A excludes 1 or is not known: a difference "
            "may show nothing",
        ),
        (
            [
                ratio(verdict=None, why="not possible here"),
                ratio(2, 3, subject="pytorch graph tuned", verdict="faster"),
            ],
            "mindspore graph tuned not possible here, pytorch graph tuned faster (2.00 to 3.00)",
        ),
        (
            [ratio(0.5, 0.6, subject=frames.PYTORCH, threads=1)],
            "pytorch eager tuned on cpu, threads 1 slower (0.50 to 0.60)",
        ),
        (
            [ratio(0.5, 0.6), ratio(0.1, 0.2, baseline="jax graph tuned"), ratio(0.5, 0.6)],
            "mindspore graph tuned slower in 2 of 2 (0.50 to 0.60); relative to jax graph tuned: mindspore graph tuned "
            "slower (0.10 to 0.20)",
        ),
        (
            [ratio(0.5, 0.6), frames.row("efficiency_percent", (60, 70)), frames.row("efficiency_percent", (50, 65))],
            "mindspore graph tuned, efficiency 50.0 to 70.0 %",
        ),
        (
            [frames.row("efficiency_percent") | {"estimate": 62.5}],
            "mindspore graph tuned, efficiency 62.5 to 62.5 %",
        ),
        (
            [frames.row("final_metric", (ends, ends), unit="%") for ends in (90.0, 96.5)]
            + [frames.row("final_metric")],
            "mindspore graph tuned, metric at best 96.5 %",
        ),
        ([frames.row("final_loss", (1, 1))], "nothing was measured"),
    ],
)
def test_the_first_page_says_in_a_line_what_a_notebooks_frame_shows(
    tmp_path: Path, rows: list[dict], line: str
) -> None:
    report = gathered(tmp_path, modes=rows)
    report.summaries["modes"] |= {"title": "Modes", "conditions": []}
    assert glance.headlines(report) == [f"Modes: {line}."]


def test_the_first_page_begins_with_the_claims(folder: Path) -> None:
    report = Report(Lab(outputs=folder))
    judged = Claims(Lab(outputs=folder)).judged
    count = Counter(one.verdict for one in judged)
    counted = ", ".join(f"{count[verdict]} {verdict}" for verdict in VERDICTS if count[verdict])
    claims, learning_rate = glance.headlines(report)
    assert claims == f"Claims: of {count.total()} published, {counted}."
    assert learning_rate.startswith("Learning rate (")
    assert "%" in learning_rate


def test_the_first_page_says_of_how_many_claims_no_difference_is_too_much_said(tmp_path: Path) -> None:
    report = gathered(tmp_path)
    frame = pd.DataFrame({"verdict": [NO_DIFFERENCE, NO_DIFFERENCE, REPRODUCED], "undecided": [True, False, False]})
    claims = {"title": "Claims", "tables": [], "certificates": [], "conditions": [], "verdicts": frame.to_dict("split")}
    report.summaries["claims"] = claims
    assert glance.headlines(report) == [
        "Claims: of 3 published, 1 reproduced, 2 no difference shown (1 of them undecided)."
    ]


def test_the_board_has_undecided_claims_by_themselves_and_says_what_each_rests_on(tmp_path: Path) -> None:
    report = gathered(tmp_path)
    verdicts = {"verdict": [NO_DIFFERENCE, NO_DIFFERENCE, REPRODUCED], "undecided": [True, False, False]}
    told = {"claim": ["C1", "C2", "C3"], "says": "so", "published_on": "V100", "here": ["1 case", "2 cases", "3 cases"]}
    claims = {"verdicts": pd.DataFrame({**told, **verdicts}).to_dict("split")}
    report.summaries["claims"] = claims
    heads, items = (re.findall(pattern, page_one.board(report)) for pattern in ("</svg>(.*?)</h3>", "<li>(.*?)</li>"))
    assert heads == ["1 reproduced", "1 no difference shown", f"1 {page_one.UNDECIDED}"]
    assert [re.sub("<.*?>", "", one) for one in items] == [
        "C3 so V100. Here: 3 cases",
        "C2 so V100. Here: 2 cases",
        "C1 so V100. Here: 1 case",
    ]


def test_the_board_says_what_was_measured_of_a_claim_that_was_not_in_full(tmp_path: Path) -> None:
    report = gathered(tmp_path)
    told = {"claim": ["C1", "C2", "C3"], "says": "so", "published_on": "V100", "here": ["", "in full: 4 cases", ""]}
    frame = pd.DataFrame({**told, "verdict": NOT_MEASURED, "undecided": False})
    report.summaries["claims"] = {"verdicts": frame.to_dict("split")}
    shown = page_one.board(report)
    (item,) = re.findall("<li>(.*?)</li>", shown)
    assert re.sub("<.*?>", "", item) == "C2 so V100. Here not in full: 4 cases"
    assert '<p class="claims">C1, C3</p>' in shown
    assert "1 not measured in full" in shown
    assert "2 not measured here" in shown


def test_what_cannot_be_measured_here_is_told_beside_what_is_missing(tmp_path: Path) -> None:
    cannot = frames.row("throughput_ratio", subject="mindspore graph bf16 tuned", why=IMPOSSIBLE, reason="no kernel")
    report = gathered(tmp_path, modes=[ratio(0.5, 0.6), cannot])
    nothing = {"conditions": [], "certificates": [], "failures": 0, "measurements": [], "tables": [], "figures": []}
    report.summaries["modes"] |= {"title": "Modes", "question": "Which?", "conditions": [{}]}
    report.summaries["versions"] = {**nothing, "title": "Versions", "question": "Which?", "findings": ["None there."]}
    shown = results.missing(report).data
    assert "Modes: not possible here: mindspore graph bf16 tuned on gcn (the notebook" in shown
    assert "Versions: None there." in shown


def test_results_of_another_benchlib_are_missing_and_say_so(folder: Path) -> None:
    summary = read_summary(folder, "learning_rate")
    save_as_the_suite_does(
        folder, "learning_rate", {**summary, "in_report": [path for path, _ in summary["in_report"]]}
    )
    missing = Report(Lab(outputs=folder)).missing["learning_rate"]
    assert "its summary is that of another benchlib; run again: what was measured is kept" in missing
    verdicts = pd.DataFrame({"verdict": [REPRODUCED], "undecided": [False]}).to_dict("split")
    save_as_the_suite_does(folder, "claims", {**summary, "verdicts": verdicts})
    assert "its summary is that of another benchlib" in Report(Lab(outputs=folder)).missing["claims"]


def test_a_table_is_shown_as_its_notebook_showed_it(folder: Path) -> None:
    module = experiments.module("learning_rate")
    result = module.measure(module.Parameters(**quick("learning_rate")), SyntheticLab(folder))
    report = Report(Lab(outputs=folder))
    shown = report.show_questions().data + report.show_others().data
    for name in result.declared.in_report:
        assert result.show_table(name).data in shown


@pytest.mark.parametrize(
    ("conditions", "told"),
    [
        ([{"workload": "cnn", "hyperparameters": {"image_size": 8}, "batch_size": 4}], "cnn, images of 8 x 8, batch 4"),
        (
            [
                {"workload": "cnn", "hyperparameters": {"image_size": 8}, "batch_size": 4},
                {"workload": "cnn", "hyperparameters": {"image_size": 16}, "batch_size": 64},
            ],
            "cnn",
        ),
        ([{"workload": "gcn", "batch_size": 1}], "gcn, batch 1"),
    ],
)
def test_the_first_page_says_what_a_notebook_is_of(tmp_path: Path, conditions: list[dict], told: str) -> None:
    report = Report(Lab(outputs=tmp_path))
    of = [Condition(**one).model_dump(mode="json") for one in conditions]
    report.summaries = {"modes": {"title": "Modes", "conditions": of, "tables": [], "certificates": []}}
    assert glance.headlines(report) == [f"Modes ({told}): nothing was measured."]


@pytest.mark.parametrize(
    ("workloads", "told"),
    [
        (["cnn", "conv2d"], "2 workloads timed: cnn, conv2d\ndata: digits, and random numbers"),
        (["cnn"], "1 workload timed: cnn\ndata: digits"),
        (["conv2d"], "1 workload timed: conv2d\ndata: random numbers"),
        (["conv2d", "linear"], "1 workload timed: conv2d; 1 checked only: linear\ndata: random numbers"),
        (["linear"], "1 checked only: linear\ndata: random numbers"),
    ],
)
def test_the_first_page_names_workloads_and_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workloads: list[str], told: str
) -> None:
    report = Report(Lab(outputs=tmp_path))
    timed = [SimpleNamespace(condition=Condition(workload=name)) for name in workloads if name != "linear"]
    monkeypatch.setattr(Report, "measured", timed)
    made = [Condition(workload=name).model_dump(mode="json") for name in workloads]
    report.summaries = {"modes": {"conditions": made}}
    assert "\n".join(glance.compared(report)) == f"pytorch eager\n{told}"
