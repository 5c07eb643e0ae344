"""The ratios of the report's picture: rows of the frames, relative to every choice of baseline."""

import itertools
from pathlib import Path
from typing import Any

import explored
import frames
import pandas as pd
import pytest

from benchlib import tables
from benchlib.lab import Lab
from benchlib.paper import trace
from benchlib.report import first_page, picture, ratios
from benchlib.report.load import Results
from benchlib.stats import frame as tidy


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explored")
    explored.results(folder)
    return folder


@pytest.fixture(scope="module")
def every(folder: Path) -> pd.DataFrame:
    return of(folder)


def of(folder: Path) -> pd.DataFrame:
    return ratios.dedupe(ratios.rows(Results(Lab(outputs=folder))))


def by_hand(folder: Path, *rows: dict[str, Any]) -> pd.DataFrame:
    """Ratios of frames that were made by hand."""
    results = Results(Lab(outputs=folder))
    usual = {"without": "", "label": "a", "baseline_label": "b", "part": 0}
    frames.save(folder, "modes", [usual | row for row in rows])
    results.summaries = {"modes": {"title": "Modes"}}
    results.frames = {"modes": tidy.load(folder / "tables" / "modes_frame.parquet")}
    return ratios.dedupe(ratios.rows(results))


def ratio(*ends: float, verdict: str | None = "slower", **columns: Any) -> dict[str, Any]:
    usual = {"control": (0.98, 1.02), "batch_size": 4, "baseline_batch_size": 4}
    return frames.row("throughput_ratio", ends or frames.UNKNOWN, verdict=verdict, **usual | columns)


def test_each_is_a_row_of_the_frame_relative_to_every_condition(folder: Path, every: pd.DataFrame) -> None:
    frame = tidy.load(folder / "tables" / "modes_frame.parquet")
    rows = frame[frame["quantity"].isin(["throughput_ratio", "pair_ratio"])]
    columns = ["part", "label", "baseline_label", "estimate", "low", "high", "processes", "verdict", "files"]
    pd.testing.assert_frame_equal(every[columns].reset_index(drop=True), rows[columns].reset_index(drop=True))
    assert every["key"].is_unique
    measured = ratios.relative_to(every)
    expected = [(one, group[0]) for group in explored.COMPARED for one in group[1:]]
    assert [*zip(measured["label"], measured["baseline_label"], strict=True)] == [
        (str(one), str(baseline)) for one, baseline in expected
    ]
    other = ratios.relative_to(every, explored.MINDSPORE.subject)
    assert set(other["baseline_label"]) == {str(group[-1]) for group in explored.COMPARED}
    assert len(other) == 4


def test_what_conditions_share_is_said_once_and_what_tells_them_apart_in_each_row(tmp_path: Path) -> None:
    base = explored.TORCH
    explored.results(tmp_path, [[base, base.but(threads=1), base.but(learning_rate=0.5)]])
    rows = ratios.relative_to(of(tmp_path))
    assert set(rows["setting"]) == {f"batch {base.batch_size}"}
    assert list(rows["apart"]) == ["1 thread", "lr 0.5"] or list(rows["apart"]) == ["lr 0.01, 1 thread", "lr 0.5"]
    explored.results(tmp_path, [[base, explored.MINDSPORE.but(batch_size=32)]])
    (row,) = ratios.relative_to(of(tmp_path)).to_dict("records")
    assert (row["apart"], row["baseline_apart"]) == ("batch 32", f"batch {base.batch_size}")


def test_an_environment_called_like_its_framework_goes_without_saying(tmp_path: Path) -> None:
    jax = explored.GRAPH.but(framework="jax", environment="jax")
    explored.results(tmp_path, [[explored.TORCH, jax]])
    (row,) = ratios.relative_to(of(tmp_path)).to_dict("records")
    assert (row["subject"], row["home"]) == ("jax graph tuned", "jax"), "by which it is looked for"


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (ratio(1.9, 2.1, verdict="faster"), "faster"),
        (ratio(0.4, 0.6), "slower"),
        (ratio(0.9, 1.2, verdict="no difference shown"), "open"),
        (ratio(0.99, 1.01, verdict="the same within 5 %"), "same"),
        (ratio(verdict=None, why="models differ"), "none"),
    ],
)
def test_a_row_of_the_picture_has_the_kind_of_its_ratio(tmp_path: Path, row: dict[str, Any], kind: str) -> None:
    every = by_hand(tmp_path, row)
    assert list(every["kind"]) == [kind]
    shown = picture.View(every, frames.PYTORCH).html()
    assert f'<tr class="{kind}"' in shown
    assert ('class="point"' in shown) is (kind != "none"), "no mark without a ratio"
    assert row.get("why") or row["verdict"] in shown


def test_the_axis_has_one_all_points_and_the_margins_and_lets_far_ends_run_out(tmp_path: Path) -> None:
    far = ratio(0.001, 40, label="c") | {"estimate": 2.0}
    view = picture.View(by_hand(tmp_path, far, ratio(0.45, 0.55)), frames.PYTORCH)
    assert 0 < view.percent(0.5) < view.percent(1) < view.percent(2) < 100
    assert view.percent(0.001) == 0
    assert len(view.ticks) >= 3
    places = sorted(map(view.percent, view.ticks))
    assert min(b - a for a, b in itertools.pairwise(places)) >= picture.APART, "that can be read"
    assert "◂" in view.html()
    assert "▸" in view.html()


def test_an_a_a_that_excludes_one_is_hatched_and_said(tmp_path: Path) -> None:
    shown = picture.View(by_hand(tmp_path, ratio(1.9, 2.1, control=(1.05, 1.15))), frames.PYTORCH).html()
    assert 'class="control restless"' in shown
    assert "A/A excludes 1" in shown
    assert "restless" not in picture.View(by_hand(tmp_path, ratio(1.9, 2.1)), frames.PYTORCH).html()


def test_text_of_measurements_cannot_become_a_part_of_the_page(tmp_path: Path) -> None:
    every = by_hand(tmp_path, ratio(1.9, 2.1) | {"label": "</td><script>", "reason": "<b>"})
    shown = picture.View(every, frames.PYTORCH).html()
    assert "<script>" not in shown
    assert "<b>" not in shown.partition("</p>")[2]


def test_a_key_and_the_figure_lead_to_the_measurements(folder: Path, every: pd.DataFrame) -> None:
    first_page.show(Results(Lab(outputs=folder)))
    row = every.iloc[-1]
    (number,), _ = trace.numbers(folder / "tables" / "report_ratios.csv", folder, row["key"])
    assert number.keys == tuple(row["files"].split())
    assert f"{row['estimate']:.6g}" in number.says
    (number,), _ = trace.numbers(folder / "figures" / "report_ratios.svg", folder)
    assert set(number.keys) == {key for files in every["files"] for key in files.split()}


def test_what_two_notebooks_have_is_shown_once_and_found_by_either_key(tmp_path: Path) -> None:
    explored.results(tmp_path, explored.COMPARED[:1], "frameworks")
    for path in (tmp_path / "measurements").glob("*"):
        path.chmod(0o400)
    summary = explored.summary_of(tmp_path, "frameworks")
    frame = tidy.load(tmp_path / "tables" / "frameworks_frame.parquet").assign(notebook="modes")
    tidy.save(frame, tmp_path / "tables" / "modes_frame.parquet")
    explored.save(tmp_path, "modes", summary | {"title": "Modes", "tables": ["tables/modes_frame.parquet"]})
    results = Results(Lab(outputs=tmp_path))
    of_notebooks = ratios.rows(results)
    shown = ratios.dedupe(of_notebooks)
    assert 2 * len(shown) == len(of_notebooks) == len(set(of_notebooks["key"]))
    assert all(heading.endswith("Frameworks; Modes") for heading in shown["heading"])
    first_page.show(results)
    listed = pd.read_csv(tmp_path / "tables" / "report_ratios.csv")
    assert set(listed["key"]) == set(of_notebooks["key"])
    assert len(ratios.dedupe(of_notebooks.assign(margin=of_notebooks["notebook"].map(len) / 100))) == len(of_notebooks)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (
            [ratio(0.2, 0.4)],
            "Compared with PyTorch, MindSpore is slower in 1 of 1 ratios (most on gcn: 3.5 times as long).",
        ),
        (
            [ratio(0.99, 1.01, verdict="the same within 5 %"), ratio(verdict=None, why="not measured", label="c")],
            "Compared with PyTorch, MindSpore is as fast in 1 of 2 ratios, without a ratio in 1.",
        ),
        (
            [ratio(1.5, 1.5, verdict="faster"), *(ratio(0.5, 0.5, label=name, on="cnn on digits") for name in "cd")],
            "Compared with PyTorch, MindSpore is slower in 2 of 3 ratios (most on cnn: 2.0 times as long), faster in 1 "
            "(most on gcn: 1.5 times as fast).",
        ),
        ([ratio(0.5, 0.6, subject=frames.PYTORCH)], "No ratio between frameworks has been measured yet."),
    ],
)
def test_the_lead_says_who_is_faster(tmp_path: Path, rows: list[dict[str, Any]], told: str) -> None:
    assert first_page.effects(by_hand(tmp_path, *rows)) == told


def test_the_figure_for_a_paper_has_a_row_for_each_ratio(every: pd.DataFrame) -> None:
    axes = picture.figure(every).axes[0]
    labels = [label.get_text() for label in axes.get_yticklabels()]
    of_subjects = [label for label in labels if label.startswith(("PyTorch", "MindSpore"))]
    assert of_subjects == ["PyTorch graph tuned", *["MindSpore graph tuned"] * 3]
    numbers = [text.get_text() for text in axes.texts]
    rows = ratios.relative_to(every)
    assert numbers == [tables.ratio(row.estimate, row.low, row.high) for row in rows.itertuples()]
