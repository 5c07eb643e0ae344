"""What subjects are called where people read."""

from __future__ import annotations

from pathlib import Path

import explored
import pandas as pd
from test_report import Report

from benchlib.lab import Lab
from benchlib.plotting import naming

JAX = explored.GRAPH.but(framework="jax", environment="jax")


def test_an_environment_called_like_its_framework_goes_without_saying() -> None:
    other = explored.TORCH.but(environment="torch-2.9")
    assert naming.subjects([explored.TORCH, JAX, other]) == {
        explored.TORCH: "pytorch eager tuned",
        JAX: "jax graph tuned",
        other: "pytorch torch-2.9 eager tuned",
    }
    beside = JAX.but(environment="default")
    assert naming.subjects([JAX, beside]) == {JAX: "jax jax graph tuned", beside: "jax graph tuned"}


def test_rows_are_called_alike_on_both_sides_and_a_second_time_changes_nothing() -> None:
    rows = pd.DataFrame(
        {
            "framework": ["jax", "pytorch", "jax"],
            "environment": ["jax", "default", "jax"],
            "subject": ["jax jax graph tuned", "pytorch eager tuned", "jax jax eager tuned"],
            "baseline_framework": [None, "jax", "pytorch"],
            "baseline_environment": [None, "jax", "default"],
            "baseline_subject": [None, "jax jax graph tuned", "pytorch eager tuned"],
        }
    )
    once = naming.in_rows(rows)
    assert once["subject"].tolist() == ["jax graph tuned", "pytorch eager tuned", "jax eager tuned"]
    assert once["baseline_subject"].tolist()[1:] == ["jax graph tuned", "pytorch eager tuned"]
    assert once["environment"].tolist() == ["jax", "default", "jax"], "by which it is looked for"
    pd.testing.assert_frame_equal(naming.in_rows(once), once)
    assert [naming.implementation_of(row) for row in once.to_dict("records")] == ["jax", "pytorch", "jax"]
    beside = rows.assign(baseline_environment=[None, "default", "default"])
    pd.testing.assert_frame_equal(naming.in_rows(beside), beside)
    assert naming.implementation_of(beside.iloc[0]) == "jax jax"


def test_no_sentence_and_no_table_of_a_notebook_or_the_report_says_a_name_twice(tmp_path: Path) -> None:
    result = explored.results(tmp_path, [[explored.TORCH, JAX]])
    said = [*result.findings(), *result.answers(), result.show_table("ratios").data]
    report = Report(Lab(outputs=tmp_path))
    parts = ("first_page", "glance", "compared", "settings", "machine", "knobs", "questions")
    said += [getattr(report, f"show_{part}")().data for part in parts]
    assert any("jax graph" in text for text in said)
    texts = [text.replace(str(JAX), "") for text in said]
    assert [text for text in texts if "jax jax" in text] == []
    (csv,) = (frame for name, (_, frame) in result.tables().items() if name == "ratios")
    assert csv["environment"].tolist() == ["jax"], "the table's file has it"
