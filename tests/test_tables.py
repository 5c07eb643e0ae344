"""The tables: rounded to what is known, nothing hidden that differs, and every digit in the CSV."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd
import pytest

from benchlib import tables


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.31234, "0.312"), (1234567.8, "1,234,568"), (-2.5, "-2.50"), (1.2e-7, "1.2e-07"), (math.inf, "inf")],
)
def test_number(value: float, text: str) -> None:
    assert tables.number(value) == text


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((0.3123, 0.2911, 0.3342), "0.31 [0.29, 0.33]"),
        ((0.3123, 0.3013, 0.3232), "0.312 [0.301, 0.323]"),
        ((1234.5, 1100.0, 1369.0), "1,234 [1,100, 1,369]"),
        ((0.5, math.nan, math.nan), "0.500 (no interval)"),
        ((math.nan, math.nan, math.nan), "–"),
        ((1.0, 1e-6, 1e6), "1.0 [1e-06, 1,000,000]"),
        ((-0.2, -4.2, 3.4), "0 [-4, 3]"),
    ],
)
def test_interval(ends: tuple[float, float, float], text: str) -> None:
    assert tables.interval(*ends) == text


@pytest.mark.parametrize(
    ("ends", "text"),
    [
        ((1.04, 1.003, 1.078), "1.040 [1.003, 1.078]"),  # not [1.00, ...], which would read as if it included 1
        ((0.97, 0.94, 0.9999), "0.9700 [0.9400, 0.9999]"),
        ((1.0, 0.5, 2.0), "1.00 [0.50, 2.00]"),
        ((1.0, 1.0, 1.0), "1.000 [1.000, 1.000]"),
    ],
)
def test_ratio_never_rounds_an_end_to_1(ends: tuple[float, float, float], text: str) -> None:
    assert tables.ratio(*ends) == text


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "subject": ["pytorch eager tuned", "pytorch eager tuned"],
            "framework": "pytorch",
            "mode": "eager",
            "lane": "tuned",
            "workload": "cnn",
            "threads": [None, 1],
            "channels": [16, None],
            "image_size": 8,
            "accelerator_percent": [math.nan, math.nan],
            "processes": 5,
            "ratio": [0.5, math.nan],
            "ratio_low": [0.49, math.nan],
            "ratio_high": [0.51, math.nan],
        }
    )


def test_display_leaves_out_only_what_is_the_same_in_all_rows() -> None:
    text, same = tables.display(frame())
    assert same == "In all rows: framework, mode, lane pytorch eager tuned; workload cnn; image size 8."
    assert text["threads"].tolist() == ["all", "1"]
    assert text["channels"].tolist() == ["16", "–"], "what only one row has is not the same in all"
    assert text["throughput ratio"].tolist() == ["0.500 [0.490, 0.510]", "–"]
    assert text["processes"].tolist() == ["5", "5"], "results are shown even where they are the same"
    assert list(text) == ["threads", "channels", "processes", "throughput ratio"]


def test_why_some_rows_have_no_number_is_said_above_the_table_and_fills_no_column() -> None:
    subjects = {"subject": ["pytorch eager", "mindspore graph", "mindspore eager"], "ratio": [0.5, math.nan, math.nan]}
    shown = pd.DataFrame({**subjects, "why": [None, "no kernel", "no kernel"], "measurements": "ab12"})
    text, same = tables.display(shown)
    assert list(text) == ["framework, mode, lane", "throughput ratio"]
    assert same == "mindspore graph, mindspore eager: no kernel."
    assert tables.display(shown.assign(why=None))[1] == ""
    of_tasks = tables.display(shown.assign(task=["gcn", "gcn", "cnn"]))[1]
    assert of_tasks == "mindspore graph on gcn, mindspore eager on cnn: no kernel."


def test_display_is_the_same_after_a_csv(tmp_path: Path) -> None:
    path, _ = tables.save(frame(), tmp_path, "ratios", "Ratios.")
    assert path.read_text(encoding="utf-8").count("0.49") == 1
    read, read_same = tables.display(pd.read_csv(path))
    text, same = tables.display(frame())
    assert (read == text).all(axis=None)
    assert read_same == same


def test_html_escapes_and_keeps_lines() -> None:
    shown = tables.html(pd.DataFrame({"failure": ["<b>died</b>\nTraceback"]}), "What <failed>").data
    assert "&lt;b&gt;died&lt;/b&gt;<br>Traceback" in shown
    assert "<caption>What &lt;failed&gt;</caption>" in shown
    assert "&lt;i&gt;" in tables.bullets(["<i>"]).data


def test_markdown_is_the_table_as_it_is_shown_and_names_no_file(tmp_path: Path) -> None:
    made = frame().assign(measurements=["ab12 cd34", "ef56"], why="a|b")
    _, path = tables.save(made, tmp_path, "ratios", "Ratios.")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("Ratios. In all rows: framework, mode, lane pytorch eager tuned;")
    assert lines[2] == "| threads | channels | processes | throughput ratio |"
    assert lines[4] == "| all | 16 | 5 | 0.500 [0.490, 0.510] |"
    assert len({line.count("|") for line in lines[2:]}) == 1
    assert "ab12" not in path.read_text(encoding="utf-8"), "nobody wants to read keys"
    assert "ab12 cd34" in (tmp_path / "ratios.csv").read_text(encoding="utf-8"), "but the CSV has them, for trace"
    assert "a&#124;b" in tables.markdown(pd.DataFrame({"why": ["a|b", "c"]}), "")


def test_files_of_rows_that_are_made_into_one_are_each_named_once() -> None:
    assert tables.together(["ab cd", "cd ef", ""]) == "ab cd ef"


@pytest.mark.parametrize("frame", [pd.DataFrame(), pd.DataFrame(columns=["claim", "ratio", "ratio_low", "ratio_high"])])
def test_a_table_without_rows_says_that_there_is_nothing(frame: pd.DataFrame, tmp_path: Path) -> None:
    assert tables.html(frame, "The cases.").data == f"<ul><li>The cases. {tables.NOTHING}</li></ul>"
    csv, markdown = tables.save(frame, tmp_path, "x", "The cases.")
    assert not len(pd.read_csv(csv))
    assert markdown.read_text(encoding="utf-8") == f"The cases. {tables.NOTHING}\n"
