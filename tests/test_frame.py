"""The tidy frame: typed whatever is in it, closed in its words, with the numbers of the objects that it is made of."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import studies
from synthetic_lab import SyntheticLab

from benchlib import caveats
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.stats import derived_ratios
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import DISTURBED, MODELS_DIFFER, NOT_MEASURED, Comparison, verdict_on
from benchlib.stats.intervals import geometric_interval
from benchlib.stats.training_runs import NOT_REACHED, TrainingRuns

ROOT = Path(__file__).parents[1]
EAGER = Condition(workload="cnn", hyperparameters={"image_size": 8}, batch_size=64)
GRAPH = EAGER.but(framework="mindspore", mode="graph")


def compared(folder: Path, *conditions: Condition, **lab: Any) -> Comparison:
    asked = {"precision": 0.03, "budget_s": 1, "block_s": 0.1, "margin": 0.04}
    return SyntheticLab(folder, **lab).compare(list(conditions), **asked)


def trained(folder: Path, *conditions: Condition, threshold: float | None = None, **lab: Any) -> TrainingRuns:
    return SyntheticLab(folder, **lab).train(list(conditions), seeds=[0, 1, 2], epochs=3, threshold=threshold)


def only(frame: pd.DataFrame, quantity: str, **columns: Any) -> pd.Series:
    """The one row of a quantity that has these columns."""
    rows = frame[frame["quantity"] == quantity]
    for name, value in columns.items():
        rows = rows[rows[name] == value]
    (row,) = (row for _, row in rows.iterrows())
    return row


def test_an_empty_frame_has_all_columns_in_their_types(tmp_path: Path) -> None:
    full = tidy.of_comparison(compared(tmp_path, EAGER, GRAPH), task="cnn on digits")
    for empty in (tidy.of_rows([]), tidy.concat([])):
        assert list(empty) == tidy.SCHEMA.names
        assert empty.dtypes.equals(full.dtypes)
    assert not len(empty[empty["device"] == "cuda"])


@pytest.mark.parametrize("wrong", [{"quantity": "speed"}, {"why": "it did not"}, {"colour": "red"}])
def test_words_that_are_not_in_the_closed_sets_are_refused(wrong: dict[str, str]) -> None:
    row = tidy.row("step_ms", EAGER, geometric_interval([0.0]))
    assert len(tidy.of_rows([row])) == 1
    with pytest.raises(ValueError, match=next(iter(wrong.values())) if "colour" not in wrong else "colour"):
        tidy.of_rows([{**row, **wrong}])


def test_a_comparison_gives_ratios_with_their_baseline_and_its_control(tmp_path: Path) -> None:
    comparison = compared(tmp_path, EAGER, GRAPH)
    frame = tidy.of_comparison(comparison, notebook="devices", task="cnn on digits")
    ratio, told = only(frame, "throughput_ratio"), comparison.ratios().iloc[1]
    assert ratio[["estimate", "low", "high", "verdict"]].tolist() == told[["ratio", "low", "high", "verdict"]].tolist()
    assert (ratio["framework"], ratio["baseline_framework"], ratio["mode"]) == ("mindspore", "pytorch", "graph")
    assert json.loads(ratio["hyperparameters"])["image_size"] == 8
    assert ratio["files"].split() == comparison.files(GRAPH)
    control = only(frame, "control_ratio")
    assert control["estimate"] == comparison.control.estimate
    assert control["subject"] == control["baseline_subject"] == EAGER.subject
    for name, value in {"control_low": comparison.control.low, "margin": 0.04, "notebook": "devices"}.items():
        assert set(frame[name]) == {value}, "of every row of the comparison"
    speed = only(frame, "samples_per_second", subject=GRAPH.subject)
    measured = comparison.throughput().set_index("label").loc[str(GRAPH)]
    assert (speed["estimate"], speed["low"], speed["unit"]) == (measured["samples_per_second"], measured["low"], "1/s")
    assert pd.isna(speed["baseline_framework"]), "it is relative to nothing"
    steps = only(frame, "steps_per_second", subject=GRAPH.subject)
    assert steps["high"] == pytest.approx(1000 / measured["step_ms_low"])
    assert only(frame, "memory_mib", subject=EAGER.subject)["estimate"] == 400 + 2 * 64
    assert not frame["quantity"].str.startswith("accelerator").any(), "the CPU has none"
    assert set(frame["quantity"]) <= set(tidy.QUANTITIES)


def test_size_and_share_of_the_peak_are_those_of_the_condition(tmp_path: Path) -> None:
    linear = Condition(workload="linear", batch_size=4, hyperparameters={"in_features": 8, "out_features": 16})
    frame = tidy.of_comparison(compared(tmp_path, linear), roof_s=lambda condition: 0.001 * condition.batch_size)
    row = only(frame, "peak_share_percent")
    assert row["estimate"] == pytest.approx(100 * 4 / only(frame, "step_ms")["estimate"])
    assert row["parameters"] == 8 * 16 + 16
    assert row["million_multiply_adds"] == pytest.approx(4 * 8 * 16 / 1e6)


@pytest.mark.parametrize("beyond", [False, True])
def test_less_work_is_said_of_a_ratio_and_beyond_the_peak_there_is_none(tmp_path: Path, beyond: bool) -> None:
    comparison = compared(tmp_path, EAGER, GRAPH)
    counts = {"multiply_adds": 3.0, "reference_multiply_adds": 4.0, "declared_multiply_adds": (2.0, 3.2)}
    less = comparison.certificates[GRAPH.key] = comparison.certificates[GRAPH.key].model_copy(update=counts)
    assert less.remarks == ["A step takes 3 multiply-adds for a sample, the reference's 4."]
    beside = derived_ratios.pair_rows(comparison)
    place = {"notebook": "devices", "task": "", "part": 0}
    frame = tidy.of_comparison(comparison, beside, roof_s=lambda one: 1e3 if beyond else 1e-9, **place)
    ratio, other_side = only(frame, "throughput_ratio"), only(frame, "pair_ratio")
    assert ratio["caveat"] == "it takes 75 % of the reference's multiply-adds"
    assert "the baseline takes 75 %" in other_side["caveat"]
    assert pd.isna([ratio["estimate"], ratio["verdict"], other_side["low"]]).all() == beyond
    assert (ratio["why"] == tidy.LESS_WORK) == beyond
    assert "above 100 %" in " ".join(caveats.of_rows(frame)) or not beyond


@pytest.mark.parametrize(
    ("trouble", "of_ratio", "of_speed"),
    [
        ("disturbed", DISTURBED, DISTURBED),
        ("fails", NOT_MEASURED, NOT_MEASURED),
        ("differs", MODELS_DIFFER, NOT_MEASURED),
    ],
)
def test_where_there_is_no_number_it_is_said_why(tmp_path: Path, trouble: str, of_ratio: str, of_speed: str) -> None:
    comparison = compared(tmp_path, EAGER, GRAPH, **{trouble: lambda c: c.framework == "mindspore"})
    frame = tidy.of_comparison(comparison, derived_ratios.pair_rows(comparison))
    ratio, speed = only(frame, "throughput_ratio"), only(frame, "samples_per_second", subject=GRAPH.subject)
    other_side = only(frame, "pair_ratio")
    assert (ratio["why"], other_side["why"], speed["why"]) == (of_ratio, of_ratio, of_speed)
    assert pd.isna([ratio["estimate"], other_side["estimate"], speed["estimate"], ratio["verdict"]]).all()
    assert frame["why"].notna().equals(frame["estimate"].isna()), "each is known, or it is said why not"


def test_an_accelerator_that_tells_nothing_is_said_to(tmp_path: Path) -> None:
    frame = tidy.of_comparison(compared(tmp_path, EAGER.but(device="cuda")))
    assert only(frame, "accelerator_percent")["estimate"] == 55
    assert only(frame, "device_peak_mib")["why"] == tidy.NOT_REPORTED


def test_training_runs_give_what_was_learned_in_readable_units(tmp_path: Path) -> None:
    runs = trained(tmp_path, EAGER, GRAPH, threshold=0.99)
    frame = tidy.of_training(runs, task="cnn on digits")
    metric = only(frame, "final_metric", subject=EAGER.subject)
    values = 100 * runs.runs()["metric"][:3]
    assert [*metric[["estimate", "lowest", "highest"]]] == pytest.approx([values.mean(), values.min(), values.max()])
    assert (metric["unit"], metric["processes"], metric["epochs"], metric["threshold"]) == ("%", 3, 3, 0.99)
    first = only(frame, "first_epoch_ratio", subject=GRAPH.subject)
    assert first["low"] == runs.first_epoch(GRAPH).low
    assert only(frame, "seconds_to_threshold", subject=EAGER.subject)["why"] == NOT_REACHED
    assert metric["files"].split() == runs.files(EAGER)
    assert set(frame["kind"]) == {"training"}
    assert "seconds_to_threshold" not in set(tidy.of_training(trained(tmp_path, EAGER))["quantity"]), "there is none"


@pytest.mark.parametrize(
    ("lab", "quantity", "why"),
    [
        ({"disturbed": lambda c: True}, "epoch_s", DISTURBED),
        ({"disturbed": lambda c: True}, "first_epoch_ratio", DISTURBED),
        ({"fails": lambda c: True}, "final_metric", NOT_MEASURED),
        ({"loss": lambda c, seed, epoch: math.inf}, "final_loss", tidy.DIVERGED),
    ],
)
def test_training_that_gives_no_number_says_why(tmp_path: Path, lab: dict, quantity: str, why: str) -> None:
    row = only(tidy.of_training(trained(tmp_path, EAGER, **lab)), quantity)
    assert (row["why"], math.isnan(row["estimate"])) == (why, True)


def test_times_as_fast_is_within_seeds_and_of_the_same_models_only(tmp_path: Path) -> None:
    def metric(condition: Condition, seed: int, epoch: int) -> float:
        return 0.5 if condition.framework == "mindspore" and seed == 2 else 0.9

    runs = trained(tmp_path, EAGER, GRAPH, metric=metric, threshold=0.8)
    ratio, why = runs.times_as_fast(GRAPH, EAGER)
    seconds = runs.runs().set_index(["label", "seed"])["epoch_s"]
    logs = np.log(seconds[str(EAGER)]) - np.log(seconds[str(GRAPH)])
    assert (ratio, why) == (geometric_interval(logs.to_list()), None)
    assert runs.times_as_fast(GRAPH, EAGER, "seconds_to_threshold")[1] == NOT_REACHED, "one seed of three did not"
    assert derived_ratios.speed_ratio_row(runs, "epoch_ratio", GRAPH, EAGER)["estimate"] == ratio.estimate

    def why_not(other: Condition, **lab: Any) -> str | None:
        ratio, why = trained(tmp_path, EAGER, other, **lab).times_as_fast(other, EAGER)
        assert math.isnan(ratio.estimate) == (why is not None)
        return why

    assert why_not(GRAPH, differs=lambda c: c == GRAPH) == MODELS_DIFFER
    assert why_not(GRAPH, disturbed=lambda c: c == GRAPH) == DISTURBED
    assert why_not(GRAPH, fails=lambda c: c == GRAPH) == NOT_MEASURED
    assert why_not(EAGER.but(learning_rate=0.5), differs=lambda c: True) is None, "at another rate it is the same model"


def test_a_frame_comes_back_from_disk_as_it_was(tmp_path: Path) -> None:
    frame = tidy.of_comparison(compared(tmp_path, EAGER, GRAPH), task="cnn on digits")
    path = tmp_path / "new" / "frame.parquet"
    tidy.save(frame, path)
    pd.testing.assert_frame_equal(tidy.load(path), frame)
    pq.write_table(pq.read_table(path).drop_columns("why"), path)
    with pytest.raises(BenchlibError, match=f"{path}: written by another benchlib"):
        tidy.load(path)


def measured(folder: Path, notebook: str, **lab: Any) -> Any:
    """The study of a notebook with quick's parameters, from made-up measurements."""
    return studies.measured(notebook, SyntheticLab(folder, **lab))


@pytest.mark.parametrize("notebook", ["batch_size", "scaling", "learning_rate"])
def test_the_frame_of_a_result_is_saved_with_its_tables(tmp_path: Path, notebook: str) -> None:
    result = measured(tmp_path, notebook)
    path = f"tables/{notebook}_frame.parquet"
    assert path in result.summary()["tables"]
    saved = tidy.load(tmp_path / path)
    pd.testing.assert_frame_equal(saved, result.frame)
    assert set(saved["notebook"]) == {notebook}
    named = {key for files in saved["files"] for key in files.split()}
    assert named == set(result.summary()["measurements"])


@pytest.mark.parametrize("trouble", ["disturbed", "differs", "fails", "cannot"])
@pytest.mark.parametrize("notebook", ["instrument", "frameworks", "modes", "scaling"])
def test_every_row_has_a_number_or_the_reason_why_not(tmp_path: Path, notebook: str, trouble: str) -> None:
    frame = measured(tmp_path, notebook, **{trouble: lambda c: (c.framework, c.mode) != ("pytorch", "eager")}).frame
    assert frame["why"].notna().equals(frame["estimate"].isna())
    frame = measured(tmp_path, notebook, **{trouble: lambda c: True}).frame
    odd = frame[frame["why"].isna() == frame["estimate"].isna()]
    assert not len(odd), odd[["quantity", "subject", "estimate", "why"]]


def test_scaling_has_the_efficiency_of_its_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    frame = measured(tmp_path, "scaling").frame
    rows = frame[frame["quantity"] == "efficiency_percent"]
    assert (rows["batch_size"] / rows["baseline_batch_size"]).tolist() == [1, 2], "strong, and weak"
    assert only(frame, "communication_percent")["baseline_communication"] is False
    frame = measured(tmp_path, "scaling", disturbed=lambda condition: not condition.communication).frame
    assert only(frame, "communication_percent")["why"] == DISTURBED
    assert frame["why"].notna().equals(frame["estimate"].isna()), "each is known, or it is said why not"


def test_there_is_a_ratio_to_every_choice_of_baseline_made_from_the_processes_of_the_two(tmp_path: Path) -> None:
    other = EAGER.but(mode="graph")
    comparison = compared(tmp_path, EAGER, GRAPH, other, spread=0.1)
    frame = tidy.of_comparison(comparison, derived_ratios.pair_rows(comparison))
    labels = [str(one) for one in (EAGER, GRAPH, other)]
    rows = frame[frame["quantity"].isin(["throughput_ratio", "pair_ratio"])]
    pairs = list(zip(rows["baseline_label"], rows["label"], strict=True))
    assert sorted(pairs) == sorted((one, two) for one in labels for two in labels if one != two), "each once"
    timed = [m for m in comparison.measurements if m.role != "control"]
    seconds = {(str(m.condition), m.file): np.mean([math.log(block.wall_s) for block in m.blocks]) for m in timed}
    for row in rows.itertuples():
        logs = [seconds[row.baseline_label, file] - seconds[row.label, file] for file in comparison.files()]
        expected = geometric_interval(logs)
        assert (row.estimate, row.low, row.high) == pytest.approx((expected.estimate, expected.low, expected.high))
        assert row.processes == 5
        assert row.files.split() == comparison.files()
        assert row.verdict == verdict_on(expected, 0.04)
