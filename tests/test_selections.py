"""Declared tables and figures show the rows that they name, and what else was measured of the same condition."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest
from frames import PYTORCH, row
from matplotlib.figure import Figure

from benchlib.plotting import Bars, Picture, figures
from benchlib.plotting.style import subject_looks
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import MODELS_DIFFER
from benchlib.tables import HYPERPARAMETERS, MANY, Column, Table, disturbed, ratios_text, verdict, wide

MINDSPORE = "mindspore graph tuned"


def of(quantity: str, subject: str, estimate: float | None, part: int = 0, **columns: Any) -> dict[str, Any]:
    """A row of a quantity of a subject, of which nothing else has to be said."""
    made = {**row(quantity, subject=subject), "part": part, "label": subject, "files": f"{quantity} {subject[0]}"}
    return {**made, "estimate": estimate, "low": estimate, "high": estimate, **columns}


def frame(*rows: dict[str, Any]) -> pd.DataFrame:
    return tidy.of_rows(rows)


def table(rows: pd.DataFrame, *columns: str | Column, quantity: str = "step_ms", **more: Any) -> pd.DataFrame:
    return Table("", quantity, columns, **more).of(SimpleNamespace(frame=rows))


STEPS = (of("step_ms", PYTORCH, 2.0), of("step_ms", MINDSPORE, 6.0), of("step_ms", PYTORCH, 3.0, part=1))


def test_beside_a_row_is_what_was_measured_of_the_same_condition_in_the_same_part() -> None:
    memory = [of("memory_mib", PYTORCH, 400.0), of("memory_mib", PYTORCH, 500.0, part=1)]
    rows = wide(frame(*STEPS, *memory), "step_ms")
    assert rows["estimate"].tolist() == [2, 6, 3]
    assert rows["memory_mib"].tolist() == pytest.approx([400, float("nan"), 500], nan_ok=True)
    assert not len(wide(frame(*STEPS), "warm_up_s"))


def test_what_a_condition_has_of_several_baselines_stands_beside_none() -> None:
    within = [of("within_ratio", PYTORCH, value, baseline_subject=name) for value, name in ((2.0, "a"), (3.0, "b"))]
    assert "within_ratio" not in wide(frame(*STEPS, *within), "step_ms")
    assert wide(frame(*STEPS, *within), "within_ratio")["step_ms"].tolist() == [2, 2]


def test_a_quantity_is_a_column_with_its_interval_and_one_that_nobody_measured_is_none() -> None:
    slow = [of("slows_down", name, value) for name, value in ((PYTORCH, 0.0), (MINDSPORE, 1.0))]
    made = table(frame(*STEPS[:2], *slow), "subject", "step_ms", "slows_down", "joules_per_sample", "warm_up_s")
    assert list(made) == ["subject", "step_ms", "step_ms_low", "step_ms_high", "slows_down", "measurements"]
    assert made["slows_down"].tolist() == [False, True]
    assert list(table(frame(*STEPS[:2]), Column("ms", "step_ms", ends=False))) == ["ms", "measurements"]
    named = table(
        frame(*STEPS[:2]), Column("fast", ("estimate", "low", "high")), Column("who", lambda row: row["mode"])
    )
    assert named["fast_high"].tolist() == [2, 6]
    assert named["who"].tolist() == ["eager", "graph"]


def test_a_row_names_the_files_of_all_that_it_shows() -> None:
    rows = frame(*STEPS[:2], of("warm_up_s", PYTORCH, 1.0), of("memory_mib", PYTORCH, 1.0))
    assert table(rows, "step_ms", "warm_up_s")["measurements"].tolist() == ["p step_ms warm_up_s", "m step_ms"]


def test_hyperparameters_have_columns_of_their_own() -> None:
    first, second = (
        of("step_ms", name, 1.0, hyperparameters=text) for name, text in ((PYTORCH, '{"a": 1}'), ("b c d", "{}"))
    )
    assert table(frame(first, second), HYPERPARAMETERS)["a"].tolist() == pytest.approx([1, float("nan")], nan_ok=True)


def test_only_rows_that_are_wanted_are_shown() -> None:
    assert table(frame(*STEPS), "subject", where=lambda rows: rows["part"] == 1)["subject"].tolist() == [PYTORCH]
    assert not len(table(frame(*STEPS), "subject", where=lambda rows: rows["part"] == 9))


def test_a_ratio_without_a_number_shows_why() -> None:
    rows = frame(
        of("throughput_ratio", PYTORCH, 2.0, verdict="faster"), of("throughput_ratio", MINDSPORE, None, why="disturbed")
    )
    made = table(rows, Column("verdict", verdict), Column("why", disturbed()), quantity="throughput_ratio")
    assert made["verdict"].tolist() == ["faster", "disturbed"]
    assert made["why"].isna().tolist() == [True, False]


def test_a_sentence_on_many_ratios_counts_them_and_names_both_ends() -> None:
    told = {"verdict": "faster", "control": 1.0, "control_low": 0.9, "control_high": 1.1}
    every = [of("throughput_ratio", f"pytorch eager {n}", 2.0 + n, **told) for n in range(MANY + 1)]
    few, many = (ratios_text(wide(frame(*rows), "throughput_ratio")) for rows in (every[:MANY], every))
    assert (few.count("faster"), few.count("A/A")) == (MANY, 1)
    assert few.endswith("faster (of all: A/A 1.00 [0.90, 1.10])")
    other = of("throughput_ratio", "jax graph tuned", 2.0, **told | {"control": 1.05})
    assert ratios_text(wide(frame(*every[:2], other), "throughput_ratio")).count("A/A") == 3, "each has its own"
    none = of("throughput_ratio", "jax graph tuned", None, why=MODELS_DIFFER)
    assert ratios_text(wide(frame(*every[:2], none), "throughput_ratio")).count("A/A") == 1, "one has no ratio"
    assert many.startswith(f"faster at {MANY + 1}; lowest pytorch eager 0 2.0")
    assert f"highest pytorch eager {MANY} {2 + MANY}.0" in many


# -- how it looks


SUBJECTS = [
    *("pytorch eager tuned", "pytorch graph tuned", "pytorch eager default", "pytorch eager bf16 tuned"),
    *("mindspore eager tuned", "mindspore graph tuned", "mindspore graph default"),
]


def looks(*subjects: str) -> dict[str, figures.Look]:
    rows = frame(*(of("step_ms", name, 1.0) for name in subjects))
    return subject_looks(rows.assign(hue=rows["subject"]))


def test_a_subject_looks_the_same_whatever_stands_beside_it() -> None:
    every = looks(*SUBJECTS)
    for name in SUBJECTS:
        assert looks(name)[name] == every[name]
    assert len({(look.color, look.marker, look.line) for look in every.values()}) == len(SUBJECTS)
    for one, other in itertools.combinations(every.values(), 2):
        assert one.color != other.color
        assert (one.marker, one.line) != (other.marker, other.line), "not by colour alone"


def test_six_frameworks_have_colours_and_markers_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["jax", "mindspore", "mxnet", "pytorch", "tensorflow", "theano"]
    monkeypatch.setattr("benchlib.frameworks.names", lambda: names)
    monkeypatch.setattr("benchlib.frameworks.rank", lambda name: name)
    every = looks(*(f"{name} eager tuned" for name in names)).values()
    assert len({look.color for look in every}) == len({look.marker for look in every}) == len(names)


def drawn(rows: pd.DataFrame, **picture: Any) -> Figure:
    bars = Bars(quantity="step_ms", xlabel="step (ms)", labels="subject")
    caption, figure = Picture(caption="Steps.", panels=[bars], each="part", columns=2, **picture).draw(
        SimpleNamespace(frame=rows, margin=0.05)
    )
    assert caption == "Steps."
    return figure


def labels(figure: Figure) -> list[list[str]]:
    return [[text.get_text() for text in axes.get_yticklabels()] for axes in figure.axes]


def test_rows_are_named_once_where_panels_beside_each_other_have_the_same() -> None:
    same = [of("step_ms", name, 1.0, part=part) for part in (0, 1) for name in (PYTORCH, MINDSPORE)]
    assert labels(drawn(frame(*same))) == [[PYTORCH, MINDSPORE], ["", ""]]
    assert labels(drawn(frame(*same[:3]))) == [[PYTORCH, MINDSPORE], [PYTORCH]], "another panel's names are not its own"


def test_bars_that_are_named_by_what_they_look_like_need_no_legend() -> None:
    assert not drawn(frame(*STEPS)).legends
    assert (
        Picture(caption="", panels=[Bars(quantity="warm_up_s", xlabel="", labels="subject")]).draw(
            SimpleNamespace(frame=frame(*STEPS), margin=0.05)
        )
        is None
    ), "nothing was measured"
