"""The tables: rounded to what is known, nothing hidden that differs, and every digit in the CSV."""

import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from frames import PYTORCH, row

from benchlib import tables
from benchlib.condition import Condition
from benchlib.plotting import naming
from benchlib.stats import frame as tidy
from benchlib.tables import HYPERPARAMETERS, Column, Table, disturbed_note, verdict, wide

MINDSPORE = "mindspore graph tuned"

NAN = math.nan


@pytest.mark.parametrize(
    ("shown", "values", "text"),
    [
        (tables.number, [0.0], "0"),
        (tables.number, [0.31234], "0.312"),
        (tables.number, [1234567.8], "1,234,568"),
        (tables.number, [-2.5], "-2.50"),
        (tables.number, [1.2e-7], "1.2e-07"),
        (tables.number, [math.inf], "inf"),
        (tables.interval, [0.3123, 0.2911, 0.3342], "0.31 [0.29, 0.33]"),
        (tables.interval, [0.3123, 0.3013, 0.3232], "0.312 [0.301, 0.323]"),
        (tables.interval, [1234.5, 1100.0, 1369.0], "1,234 [1,100, 1,369]"),
        (tables.interval, [0.5, NAN, NAN], "0.500 (no interval)"),
        (tables.interval, [NAN, NAN, NAN], "–"),
        (tables.interval, [1.0, 1e-6, 1e6], "1.0 [1e-06, 1,000,000]"),
        (tables.interval, [-0.2, -4.2, 3.4], "0 [-4, 3]"),
        (tables.ratio, [1.04, 1.003, 1.078], "1.040 [1.003, 1.078]"),  # 1.00 would read as if it included 1
        (tables.ratio, [0.97, 0.94, 0.9999], "0.9700 [0.9400, 0.9999]"),
        (tables.ratio, [1.0, 0.5, 2.0], "1.00 [0.50, 2.00]"),
        (tables.ratio, [1.0, 1.0, 1.0], "1.000 [1.000, 1.000]"),
    ],
)
def test_numbers_are_rounded_to_what_is_known(shown: Callable[..., str], values: list[float], text: str) -> None:
    assert shown(*values) == text


def frame() -> pd.DataFrame:
    said = {"subject": PYTORCH, "framework": "pytorch", "mode": "eager", "lane": "tuned", "workload": "cnn"}
    ends = {"ratio": [0.5, math.nan], "ratio_low": [0.49, math.nan], "ratio_high": [0.51, math.nan]}
    unlike = {"threads": [None, 1], "channels": [16, None], "image_size": 8, "accelerator_percent": math.nan}
    return pd.DataFrame({**said, **unlike, "processes": 5, **ends})


def test_display_leaves_out_only_what_is_the_same_in_all_rows() -> None:
    text, same = tables.display(frame())
    assert same == "In all rows: framework, mode, lane PyTorch eager tuned; workload cnn; image size 8."
    whole = {"threads": ["all", "1"], "channels": ["16", "–"], "processes": ["5", "5"]}
    assert text.to_dict("list") == {**whole, "throughput ratio": ["0.500 [0.490, 0.510]", "–"]}


def test_why_some_rows_have_no_number_is_said_above_the_table() -> None:
    subjects = {"subject": [PYTORCH, MINDSPORE, "jax graph"], "ratio": [0.5, math.nan, math.nan]}
    shown = pd.DataFrame({**subjects, "why": [None, "no kernel", "no kernel"], "measurements": "ab12"})
    text, same = tables.display(shown)
    assert list(text) == ["framework, mode, lane", "throughput ratio"]
    assert same == "MindSpore graph tuned, JAX graph: no kernel."
    of_tasks = tables.display(shown.assign(task=["gcn", "gcn", "cnn"]))[1]
    assert of_tasks == "MindSpore graph tuned on gcn, JAX graph on cnn: no kernel."


def test_csv_markdown_and_html_have_the_same_table(tmp_path: Path) -> None:
    made = frame().assign(measurements=["ab12 cd34", "ef56"], note="a|<b>\nTraceback")
    csv, markdown = tables.save(made, tmp_path, "ratios", "Ratios.")
    read, read_same = tables.display(pd.read_csv(csv))
    text, same = tables.display(made)
    assert (read == text).all(axis=None)
    assert read_same == same
    assert "ab12 cd34" in csv.read_text(encoding="utf-8"), "for trace"
    written = markdown.read_text(encoding="utf-8")
    assert "| all | 16 | 5 | 0.500 [0.490, 0.510] |" in written
    assert "ab12" not in written, "nobody wants to read keys"
    shown = tables.html(pd.DataFrame({"note": ["a|<b>\nTraceback"]}), "What <failed>").data
    assert "a|&lt;b&gt;<br>Traceback" in shown
    assert "<caption>What &lt;failed&gt;</caption>" in shown
    assert "a&#124;<b><br>Traceback" in tables.markdown(pd.DataFrame({"note": ["a|<b>\nTraceback"]}), "")


@pytest.mark.parametrize("frame", [pd.DataFrame(), pd.DataFrame(columns=["claim", "ratio", "ratio_low", "ratio_high"])])
def test_a_table_without_rows_says_that_there_is_nothing(frame: pd.DataFrame, tmp_path: Path) -> None:
    assert tables.NOTHING in tables.html(frame, "The cases.").data
    csv, markdown = tables.save(frame, tmp_path, "x", "The cases.")
    assert not len(pd.read_csv(csv))
    assert tables.NOTHING in markdown.read_text(encoding="utf-8")


# -- tables of a frame


def of(quantity: str, subject: str, estimate: float | None, part: int = 0, **columns: Any) -> dict[str, Any]:
    """A row of a quantity of a subject, of which nothing else has to be said."""
    made = {**row(quantity, subject=subject), "part": part, "label": subject, "files": f"{quantity} {subject[0]}"}
    return {**made, "estimate": estimate, "low": estimate, "high": estimate, **columns}


def table(rows: list[dict[str, Any]], *columns: str | Column, quantity: str = "step_ms", **more: Any) -> pd.DataFrame:
    return Table("", quantity, columns, **more).of(SimpleNamespace(frame=tidy.of_rows(rows)))


STEPS = [of("step_ms", PYTORCH, 2.0), of("step_ms", MINDSPORE, 6.0), of("step_ms", PYTORCH, 3.0, part=1)]


def test_beside_a_row_is_what_was_measured_of_the_same_condition_in_the_same_part() -> None:
    memory = [of("memory_mib", PYTORCH, 400.0), of("memory_mib", PYTORCH, 500.0, part=1)]
    within = [of("within_ratio", PYTORCH, value, baseline_subject=name) for value, name in ((2.0, "a"), (3.0, "b"))]
    rows = wide(tidy.of_rows([*STEPS, *memory, *within]), "step_ms")
    assert rows["memory_mib"].tolist() == pytest.approx([400, math.nan, 500], nan_ok=True)
    assert "within_ratio" not in rows, "it has several, relative to several baselines"


def test_a_quantity_is_a_column_with_its_interval_and_the_files_of_all_that_a_row_shows() -> None:
    slow = [of("slows_down", name, value) for name, value in ((PYTORCH, 0.0), (MINDSPORE, 1.0))]
    made = table([*STEPS[:2], *slow], "subject", "step_ms", "slows_down", "joules_per_sample")
    assert list(made) == ["subject", "step_ms", "step_ms_low", "step_ms_high", "slows_down", "measurements"]
    assert made["slows_down"].tolist() == [False, True]
    assert made["measurements"].tolist() == ["p slows_down step_ms", "m slows_down step_ms"]
    named = table(STEPS, Column("fast", ("estimate", "low", "high")), Column("who", lambda row: row["mode"]))
    assert named["fast_high"].tolist() == [2, 6, 3]
    assert named["who"].tolist() == ["eager", "graph", "eager"]
    assert len(table(STEPS, "subject", where=lambda rows: rows["part"] == 1)) == 1
    assert not len(table(STEPS, "subject", where=lambda rows: rows["part"] == 9))


def test_hyperparameters_have_columns_of_their_own() -> None:
    rows = [of("step_ms", name, 1.0, hyperparameters=text) for name, text in ((PYTORCH, '{"a": 1}'), (MINDSPORE, "{}"))]
    assert table(rows, HYPERPARAMETERS)["a"].tolist() == pytest.approx([1, math.nan], nan_ok=True)


def test_a_ratio_without_a_number_shows_why() -> None:
    rows = [of("throughput_ratio", PYTORCH, 2.0, verdict="faster")]
    rows += [of("throughput_ratio", MINDSPORE, None, why="disturbed")]
    made = table(rows, Column("verdict", verdict), Column("why", disturbed_note()), quantity="throughput_ratio")
    assert made["verdict"].tolist() == ["faster", "disturbed"]
    assert made["why"].isna().tolist() == [True, False]


# -- what subjects are called


def test_an_environment_called_like_its_framework_goes_without_saying() -> None:
    torch = Condition(workload="cnn", lane="tuned")
    jax, other = torch.but(framework="jax", environment="jax"), torch.but(environment="torch-2.9")
    beside = jax.but(environment="default")
    subjects = naming.subjects([torch, jax, other])
    assert [*subjects.values()] == [PYTORCH, "jax eager tuned", "pytorch torch-2.9 eager tuned"]
    assert naming.subjects([jax, beside]) == {jax: "jax jax eager tuned", beside: "jax eager tuned"}
    even, pairs = tidy.Interval(1.0, 1.0, 1.0, 1), ((jax, torch), (torch, jax))
    rows = tidy.of_rows(tidy.row("throughput_ratio", one, even, baseline) for one, baseline in pairs)
    once = naming.name_subjects(rows)
    assert once["subject"].tolist() == ["jax eager tuned", PYTORCH]
    assert once["baseline_subject"].tolist() == [PYTORCH, "jax eager tuned"]
    assert once["environment"].tolist() == ["jax", "default"], "by which it is looked for"
    pd.testing.assert_frame_equal(naming.name_subjects(once), once)
    both = rows.assign(baseline_environment="default")
    pd.testing.assert_frame_equal(naming.name_subjects(both), both)
