"""Verdicts: the published claims are whole, and each rule finds what was planted, by its interval."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import frames
import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml
from frames import PYTORCH, UNKNOWN, row
from matplotlib.colors import to_rgb
from synthetic_lab import SyntheticLab

from benchlib import literature, records, tables, workloads
from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.literature import works
from benchlib.literature.cases import bearing
from benchlib.literature.results import Results
from benchlib.literature.verdicts import (
    CONTRADICTS,
    NO_DIFFERENCE,
    NO_INTERVAL,
    NOISY,
    NOT_MEASURED,
    NOT_REPRODUCED,
    ONE_SEED,
    OPEN,
    REPRODUCED,
    RESTLESS,
    SUPPORTS,
    TOO_WIDE,
    WITHIN_OR_BEYOND,
    Case,
    Judged,
    Outcome,
    in_words,
    judge,
    undecided,
)
from benchlib.plotting import figures
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import DISTURBED
from benchlib.stats.intervals import Interval, geometric_interval
from benchlib.store import Store
from benchlib.suite import experiments

pytestmark = pytest.mark.usefixtures("one_kind_of_figure")

ROOT = Path(__file__).parents[1]
SHARED = Path(__file__).parents[2] / "shared" / "published.yaml"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., None]:
    """Writes the frame of a notebook that has succeeded."""
    return functools.partial(frames.save, tmp_path)


def judged_of(folder: Path, number: str) -> Judged:
    return next(one for one in literature.judged(Results(folder)) if one.claim.id == number)


def test_every_claim_has_a_source_a_rule_that_says_itself_and_known_workloads() -> None:
    every = works.claims()
    assert [one.id for one in every] == [f"C{number}" for number in range(1, 19)]
    for claim in every:
        assert claim.source in works.sources()
        of_rows = literature.FUNCTIONS[claim.rule.function] is literature.cases_of_rows
        assert of_rows == bool(claim.rule.rows or claim.rule.takes)
        assert len(claim.rule.says) > 30
        for part in claim.rule.rows:
            assert part.notebook in experiments.NOTEBOOKS
            assert part.quantity in tidy.QUANTITIES
        for name in claim.rule.names:
            workloads.load(name)


@pytest.mark.skipif(not SHARED.is_file(), reason="THE COLLECTED FIGURES ARE ABSENT: ours are not compared with them")
def test_figures_are_those_that_were_collected() -> None:
    theirs = yaml.safe_load(SHARED.read_text(encoding="utf-8"))
    ours = works.works()
    assert set(ours) == set(theirs)
    for section in set(theirs) - {"claims", "sources"}:
        assert ours[section] == theirs[section], section
    assert set(ours["sources"]) == set(theirs["sources"])
    for name, source in theirs["sources"].items():
        assert {key: value for key, value in ours["sources"][name].items() if key not in {"short", "used"}} == source
    assert {one["id"]: one["source"] for one in theirs["claims"]} == {c.id: c.source for c in works.claims()}
    for one in theirs["claims"]:
        claim = next(claim for claim in works.claims() if claim.id == one["id"])
        values = list(one["published"].values()) if "published" in one else [one["ratio"]] if "ratio" in one else []
        assert list(claim.published.values()) == values
        assert claim.device.replace(" against ", " / ").replace(" 910", "910") == one["device"]
        assert bool(claim.doubt) >= ("doubt" in one)


def test_what_a_work_used_is_what_its_figures_say() -> None:
    names = {"aclImdb_v1": "imdb", "multi30k en-fr": "multi30k"}
    for one in [*works.works()["thresholds"], *works.works()["training"]]:
        used = works.sources()[one["source"]].used
        assert used[one["workload"]] == names.get(one["data"], one["data"])


@pytest.mark.parametrize(
    ("bears", "missing", "verdict"),
    [
        ([SUPPORTS, SUPPORTS], [], REPRODUCED),
        ([SUPPORTS, CONTRADICTS, OPEN], [], NOT_REPRODUCED),
        ([SUPPORTS, OPEN], [], NO_DIFFERENCE),
        ([SUPPORTS], ["bert"], NOT_MEASURED),
        ([CONTRADICTS], ["bert"], NOT_REPRODUCED),
        ([], ["a GPU"], NOT_MEASURED),
        ([], [], NOT_MEASURED),
    ],
)
def test_verdict(bears: list[str], missing: list[str], verdict: str) -> None:
    assert judge(Outcome([Case("x", one, "1", "") for one in bears], missing)) == verdict


@pytest.mark.parametrize(
    ("low", "high", "bears"),
    [
        (1.01, 1.2, (SUPPORTS, "")),
        (0.8, 0.99, (CONTRADICTS, "")),
        (0.9, 1.1, (OPEN, "")),
        (math.nan, math.nan, (OPEN, NO_INTERVAL)),
        (0.96, 1.04, (CONTRADICTS, "the same within 5 %")),
        (1.01, 1.05, (CONTRADICTS, "the same within 5 %")),
        (0.96, 0.99, (CONTRADICTS, "the same within 5 %")),
    ],
)
def test_a_ratio_bears_by_the_side_that_its_interval_is_on_or_that_it_is_the_same(
    low: float, high: float, bears: tuple[str, str]
) -> None:
    assert bearing(Interval((low + high) / 2, low, high, 5), 0.05) == bears


def answers(*ends: tuple[float, float], **more: Any) -> list[dict]:
    """Rows of the notebook inference."""
    columns = {"on": "resnet50_inference on random", "hyperparameters": '{"image_size": 32}', **more}
    return [row("throughput_ratio", pair, batch_size=2**at, **columns) for at, pair in enumerate(ends)]


def test_a_claim_of_a_difference_is_contradicted_by_the_same_within_the_margin(tmp_path: Path, write: Callable) -> None:
    write("inference", answers((1.01, 1.04)))
    judged = judged_of(tmp_path, "C10")
    assert judged.verdict == NOT_REPRODUCED
    assert in_words(judged) == "Not reproduced (the same within 5 %)"
    assert judged.outcome.cases[0].measured == "1.025 [1.010, 1.040], the same within 5 %"
    result = experiments.module("claims").measure(None, SyntheticLab(tmp_path))
    assert "1.025 [1.010, 1.040], the same within 5 %." in result.findings()[1]
    assert result.tables()["cases"][1]["bears"].tolist() == ["contradicts the claim: the same within 5 %"]
    assert "the same within 5 %" in result.tables()["verdicts"][1].set_index("claim").loc["C10", "measured_here"]


def test_of_many_cases_it_is_counted_how_many_are_the_same(tmp_path: Path, write: Callable) -> None:
    write("inference", answers((1.01, 1.04), (0.99, 1.01), (0.5, 0.6), (1.2, 1.3)))
    judged = judged_of(tmp_path, "C10")
    assert in_words(judged) == "Not reproduced", "one case is slower: they are not all the same"
    result = experiments.module("claims").measure(None, SyntheticLab(tmp_path))
    assert "1 supports it, 3 contradict it (2 the same within 5 %)." in result.findings()[1]


def test_the_margin_is_that_of_the_notebook_that_has_the_ratio(tmp_path: Path, write: Callable) -> None:
    def bears(**columns: float) -> str:
        write("inference", answers((1.01, 1.04), **columns))
        return judged_of(tmp_path, "C10").outcome.cases[0].bears

    assert bears(margin=0.03) == SUPPORTS
    assert bears(margin=0.04) == CONTRADICTS
    assert bears() == CONTRADICTS, "by default it is 5 %"


def test_what_is_the_same_but_not_believed_stays_open(tmp_path: Path, write: Callable) -> None:
    write("inference", answers((1.01, 1.04), control=(1.02, 1.03)))
    (case,) = judged_of(tmp_path, "C10").outcome.cases
    assert (case.bears, case.why, case.measured) == (OPEN, RESTLESS, "1.025 [1.010, 1.040]")


def test_where_operators_cross_the_same_is_neither_faster_nor_slower(tmp_path: Path, write: Callable) -> None:
    slower, near, faster = (0.1, 0.2), (0.96, 0.99), (2, 3)

    def order(margin: float) -> str:
        rows = [
            operator(name, count, ratio, margin=margin)
            for name, ends in {"conv2d": (slower, near, faster), "batchnorm2d": (slower, faster, faster)}.items()
            for count, ratio in zip((1, 10, 100), ends, strict=True)
        ]
        write("operators", rows)
        return judged_of(tmp_path, "C8").outcome.cases[-1].bears

    assert order(margin=0.01) == SUPPORTS
    assert order(margin=0.05) == OPEN, "at 10 parameters the convolution is the same: it is not shown to be slower"


def operator(name: str, parameters: int, ends: tuple[float, float], **more: Any) -> dict:
    """A row of the notebook operators."""
    columns = {"million_multiply_adds": 1.0, "hyperparameters": '{"passes": "forward"}', **more}
    return row("throughput_ratio", ends, on=f"{name} on random", parameters=parameters, **columns)


def test_the_figure_of_claims_has_the_band_of_what_is_the_same(tmp_path: Path, write: Callable) -> None:
    write("inference", answers((1.01, 1.04), (2, 3)))
    result = experiments.module("claims").measure(None, SyntheticLab(tmp_path))
    ((caption, figure),) = result.figures.values()
    assert "lies within the pale band shows no difference to speak of" in caption
    assert "the same within 5 %" in {text.get_text() for legend in figure.legends for text in legend.get_texts()}
    (axes,) = figure.axes
    pale = [one for one in axes.collections if to_rgb(one.get_facecolor()[0]) == to_rgb(figures.PALE)]
    assert [tuple(one.get_datalim(axes.transData).intervalx.round(6)) for one in pale] == [(0.95, 1.05)]


def test_nothing_measured_is_no_verdict(tmp_path: Path) -> None:
    every = literature.judged(Results(tmp_path))
    assert {one.verdict for one in every} == {NOT_MEASURED}
    assert all(one.outcome.missing for one in every), "it is said what it would take"


def test_results_of_a_notebook_that_failed_are_not_used(tmp_path: Path, write: Callable) -> None:
    write("frameworks", [first_epoch(PYTORCH, (1.5, 2))], status="failed")
    assert judged_of(tmp_path, "C4").outcome.cases == []


def test_results_of_before_are_judged_and_named(tmp_path: Path, write: Callable) -> None:
    write("frameworks", [row("threshold_ratio", (0.4, 0.6))])
    write("modes", [row("within_ratio", (1.2, 1.4), "pytorch graph tuned", PYTORCH)])
    record = records.read(tmp_path, "frameworks")
    claimed = experiments.module("claims").measure(None, SyntheticLab(tmp_path))
    assert not any("stale" in text for text in [*claimed.findings(), claimed.tables()["verdicts"][0]])
    records.write(records.path_of(tmp_path, "frameworks"), record | {"stale": "these have changed: benchlib"})
    claimed = experiments.module("claims").measure(None, SyntheticLab(tmp_path))
    stale = "Results of before, which are stale, were judged of: frameworks (these have changed: benchlib)."
    assert claimed.findings()[1] == stale
    assert claimed.tables()["verdicts"][0].endswith(f" {stale}"), "a paper may have the table alone"
    assert judged_of(tmp_path, "C2").verdict == REPRODUCED


def test_a_frame_of_another_benchlib_is_refused_by_name(tmp_path: Path, write: Callable) -> None:
    write("frameworks", [row("threshold_ratio", (0.4, 0.6))])
    assert judged_of(tmp_path, "C2").verdict == REPRODUCED
    path = tmp_path / "tables" / "frameworks_frame.parquet"
    pq.write_table(pq.read_table(path).drop_columns("threshold"), path)
    record = tmp_path / "notebooks" / "frameworks.json"
    files = {"tables/frameworks_frame.parquet": records.digest(path.read_bytes())}
    record.write_text(json.dumps({"status": "succeeded", "files": files}))
    with pytest.raises(BenchlibError, match=f"{path}: written by another benchlib"):
        judged_of(tmp_path, "C2")


def first_epoch(subject: str, ends: tuple[float, float], on: str = "gcn on cora", **more: Any) -> dict:
    """A row of the notebook frameworks."""
    return row("first_epoch_ratio", ends, subject, on=on, kind="training", epochs=30, **more)


def test_time_to_threshold_is_taken_in_the_direction_of_the_claim(tmp_path: Path, write: Callable) -> None:
    write(
        "frameworks",
        [
            row("threshold_ratio", (3, 6), on="resnet50 on cifar10"),
            row("threshold_ratio", (3, 6)),
            row("threshold_ratio", (0.4, 0.6), on="seq2seq on multi30k"),
            row("threshold_ratio", (0.1, 0.2), "mindspore eager tuned"),
        ],
    )
    resnet50, gcn, seq2seq = (judged_of(tmp_path, number) for number in ("C1", "C2", "C3"))
    assert resnet50.verdict == REPRODUCED
    assert resnet50.outcome.cases[0].published == 5.03
    assert gcn.verdict == NOT_REPRODUCED, "MindSpore was the faster one"
    assert len(gcn.outcome.cases) == 1, "eager mode is not what the claim is about"
    assert seq2seq.verdict == REPRODUCED
    assert seq2seq.outcome.cases[0].ratio.low == pytest.approx(1 / 0.6)
    assert seq2seq.outcome.cases[0].files == "key2"


@pytest.mark.parametrize("number", ["C1", "C8", "C9", "C10"])
def test_mindspore_against_itself_is_not_mindspore_against_pytorch(
    tmp_path: Path, write: Callable, number: str
) -> None:
    def rows(**baseline: str) -> tuple[str, list[dict]]:
        return {
            "C1": ("frameworks", [row("threshold_ratio", (2, 3), on="resnet50 on cifar10", **baseline)]),
            "C8": (
                "operators",
                [
                    operator(name, count, ends, **baseline)
                    for name in ("conv2d", "batchnorm2d")
                    for count, ends in ((1, (0.1, 0.2)), (100, (2, 3)))
                ],
            ),
            "C9": ("frameworks", [row("epoch_ratio", (2, 3), on="lstm on imdb", batch_size=32, epochs=3, **baseline)]),
            "C10": ("inference", answers((2, 3), **baseline)),
        }[number]

    write(*rows())
    assert judged_of(tmp_path, number).outcome.cases, "against PyTorch it is"
    write(*rows(baseline="mindspore eager tuned"))
    judged = judged_of(tmp_path, number)
    assert (judged.verdict, judged.outcome.cases) == (NOT_MEASURED, [])
    assert judged.outcome.missing


def test_data_and_threshold_other_than_the_works_are_in_the_verdict(tmp_path: Path, write: Callable) -> None:
    def words(data: str, threshold: float) -> tuple[str, str]:
        write("frameworks", [row("threshold_ratio", (0.4, 0.6), on=f"gcn on {data}", threshold=threshold)])
        judged = judged_of(tmp_path, "C2")
        assert judged.verdict == REPRODUCED
        return in_words(judged), judged.outcome.cases[0].setting

    assert words("cora", 0.7) == ("Reproduced, in direction", "to 70 %")
    assert words("cora", 0.8) == (
        "Reproduced, in direction, to another threshold than the work's",
        "to 80 %; the work: to 70 %",
    )
    assert words("digits_graph", 0.85) == (
        "Reproduced, in direction, on stand-in data",
        "to 85 %; the work: cora to 70 %",
    )


def test_of_two_tasks_of_one_workload_on_one_data_set_each_case_has_its_own_threshold(
    tmp_path: Path, write: Callable
) -> None:
    names = {f"gcn on cora, hidden={n}, threshold {to}": to for n, to in ((16, 0.7), (64, 0.8))}
    write("frameworks", [row("threshold_ratio", (0.4, 0.6), task=name, threshold=to) for name, to in names.items()])
    cases = judged_of(tmp_path, "C2").outcome.cases
    assert [(case.of, case.setting) for case in cases] == [
        ("gcn on cora, hidden=16, threshold 0.7, mindspore graph tuned", "to 70 %"),
        ("gcn on cora, hidden=64, threshold 0.8, mindspore graph tuned", "to 80 %; the work: to 70 %"),
    ]


def test_a_ratio_whose_control_excludes_1_is_not_believed(tmp_path: Path, write: Callable) -> None:
    write("inference", [*answers((1.1, 1.2), control=(0.99, 1.01)), *answers((1.1, 1.2), control=(1.02, 1.04))])
    judged = judged_of(tmp_path, "C10")
    assert [case.bears for case in judged.outcome.cases] == [SUPPORTS, OPEN]
    assert in_words(judged) == f"No difference shown ({RESTLESS})"
    assert undecided(judged)
    result = experiments.module("claims").measure(None, SyntheticLab(tmp_path))
    assert (
        "Of C10 'no difference shown' says too much: not decided, as neither a difference nor sameness is in all"
        in result.findings()[0]
    )
    shown = result.tables()["cases"][1]
    assert shown["control_low"].tolist() == pytest.approx([0.99, 1.02])
    assert tables.display(shown)[0]["A/A"].tolist() == ["1.000 [0.990, 1.010]", "1.030 [1.020, 1.040]"]
    assert shown["bears"].tolist() == ["supports the claim", f"leaves open: {RESTLESS}"]
    write("inference", answers((1.1, 1.2), control=UNKNOWN))
    unknown = judged_of(tmp_path, "C10")
    assert unknown.verdict == REPRODUCED, "a control that was not measured says nothing"
    assert unknown.outcome.cases[0].control is None


def test_a_ratio_whose_control_was_disturbed_is_not_believed(tmp_path: Path, write: Callable) -> None:
    lost = {"control": UNKNOWN, "control_why": DISTURBED, "verdict": "faster"}
    write("inference", answers((1.1, 1.2), **lost))
    write("frameworks", [row("throughput_ratio", (0.95, 1.05), on="gru on imdb", device="cuda", **lost)])
    write("instrument", [row("throughput_ratio", (1.1, 1.2), without="cudnn_benchmark", **lost)])
    sizes = [
        row(quantity, (size, size + 1), batch_size=size, **(lost if size == 64 else {}))
        for size in (16, 64)
        for quantity in ("samples_per_second", "memory_mib")
    ]
    write("batch_size", sizes)
    mixed = row("within_ratio", (1.1, 1.2), "pytorch eager bf16 tuned", PYTORCH, on="cnn on digits", **lost)
    write("modes", [mixed])
    for number in ("C5", "C10", "C12", "C17", "C18"):
        first = judged_of(tmp_path, number).outcome.cases[0]
        assert (first.bears, first.why, first.control) == (OPEN, NOISY, None), number
        assert NOISY in in_words(judged_of(tmp_path, number)) or judged_of(tmp_path, number).outcome.missing, number


def test_sizes_whose_control_was_disturbed_do_not_tell_where_operators_cross(tmp_path: Path, write: Callable) -> None:
    slower, faster = (0.1, 0.2), (2, 3)

    def order(**control: Any) -> str:
        rows = [
            operator(name, count, ratio, **control)
            for name, ends in {"conv2d": (slower, slower, faster), "batchnorm2d": (slower, faster, faster)}.items()
            for count, ratio in zip((1, 10, 100), ends, strict=True)
        ]
        write("operators", rows)
        return judged_of(tmp_path, "C8").outcome.cases[-1].bears

    assert order(control=(0.99, 1.01)) != OPEN
    assert order(control=UNKNOWN, control_why=DISTURBED) == OPEN


def test_first_epoch_in_both_frameworks_and_all_settings(tmp_path: Path, write: Callable) -> None:
    rows = [first_epoch(PYTORCH, (1.5, 2))]
    write("frameworks", rows)
    assert judged_of(tmp_path, "C4").verdict == NOT_MEASURED, "one framework is not both"
    rows.append(first_epoch("mindspore graph tuned", (0.9, 2)))
    write("frameworks", rows)
    assert judged_of(tmp_path, "C4").verdict == NO_DIFFERENCE


def test_runs_that_all_failed_are_missing_and_leave_nothing_open(tmp_path: Path, write: Callable) -> None:
    write("frameworks", [first_epoch(PYTORCH, (1.5, 2)), first_epoch("mindspore graph tuned", UNKNOWN)])
    first = judged_of(tmp_path, "C4")
    assert (first.verdict, len(first.outcome.cases)) == (NOT_MEASURED, 1)
    assert first.outcome.missing == [
        "training runs of the notebook frameworks in mindspore",
        "gcn on cora, mindspore graph tuned (no run has two epochs)",
    ]
    write("learning_rate", [at_rate(UNKNOWN, why="not measured")])
    flat = judged_of(tmp_path, "C15")
    assert (flat.verdict, flat.outcome.cases) == (NOT_MEASURED, [])
    assert "the runs failed" in flat.outcome.missing[0]
    write("learning_rate", [row("epoch_s", (1, 2), learning_rate=0.1)])
    assert "two learning rates" in judged_of(tmp_path, "C15").outcome.missing[0], "one rate is not flat"


def at_rate(ends: tuple[float, float], **more: Any) -> dict:
    """A row of the notebook learning_rate."""
    rates = {"learning_rate": 0.2, "baseline_learning_rate": 0.1}
    return row("epoch_ratio", ends, PYTORCH, PYTORCH, on="cnn on digits", **rates, **more)


def test_mixed_precision_and_modes(tmp_path: Path, write: Callable) -> None:
    def within(subject: str, baseline: str, ends: tuple[float, float], **more: Any) -> dict:
        return row("within_ratio", ends, subject, baseline, on="cnn on digits", **more)

    def across(subject: str, baseline: str, **more: Any) -> dict:
        return row("throughput_ratio", (0.1, 0.2), subject, baseline, on="cnn on digits", **more)

    def pairs(**more: Any) -> list[dict]:
        return [
            within("pytorch graph tuned", "pytorch eager tuned", (0.8, 0.9), **more),
            within("pytorch graph bf16 tuned", "pytorch eager bf16 tuned", (0.8, 0.9), **more),
            within("pytorch eager bf16 default", "pytorch eager tuned", (0.8, 0.9), **more),  # two things differ
            within("pytorch eager bf16 tuned", "pytorch eager tuned", (1.1, 1.3), **more),
            within("mindspore graph fp16-O2 tuned", "mindspore graph tuned", (1.2, 1.3), **more),
            within("mindspore graph tuned", "mindspore eager tuned", (2, 3), **more),
        ]

    eager = across("mindspore eager tuned", "pytorch eager tuned")
    other = across("mindspore eager default", "mindspore eager tuned")  # PyTorch cannot run
    write("modes", [*pairs(), eager, other])
    assert judged_of(tmp_path, "C5").verdict == REPRODUCED
    assert [case.bears for case in judged_of(tmp_path, "C5").outcome.cases] == [SUPPORTS, SUPPORTS]
    modes = judged_of(tmp_path, "C6")
    assert [case.ratio.low for case in modes.outcome.cases] == pytest.approx([2, 5])
    assert modes.verdict == REPRODUCED
    write("modes", pairs(control=(1.01, 1.02)))
    assert {case.why for case in judged_of(tmp_path, "C5").outcome.cases} == {RESTLESS}, "of the same comparison"
    write("modes", [*pairs(), across("mindspore eager tuned", "pytorch graph tuned", control=(1, 1))])
    assert len(judged_of(tmp_path, "C6").outcome.cases) == 1, "PyTorch's graph mode is not what it is compared with"


def test_of_modes_on_several_devices_accelerators_count(tmp_path: Path, write: Callable) -> None:
    def on(device: str) -> dict:
        columns = {"on": "cnn on digits", "task": f"cnn on digits, {device}", "device": device}
        return row("within_ratio", (1.1, 1.3), "pytorch eager bf16 tuned", PYTORCH, **columns)

    write("modes", [on("cpu"), on("cuda")])
    assert [case.of for case in judged_of(tmp_path, "C5").outcome.cases] == [
        "cnn on digits, cuda, pytorch eager bf16 tuned"
    ]
    write("modes", [on("cpu")])
    assert [case.of for case in judged_of(tmp_path, "C5").outcome.cases] == [
        "cnn on digits, cpu, pytorch eager bf16 tuned"
    ]


def test_scaling_combines_independent_intervals_and_wants_more_than_two(tmp_path: Path, write: Callable) -> None:
    def group(who: str, count: int, ends: tuple[float, float], batch: int = 64) -> dict:
        sizes = {"world_size": count, "batch_size": batch, "baseline_batch_size": 64}
        return row("efficiency_percent", ends, f"{who} tuned", f"{who} tuned", on="cnn on digits", **sizes)

    write("scaling", [group("pytorch eager", 2, (50, 55)), group("mindspore graph", 2, (80, 90))])
    two = judged_of(tmp_path, "C7")
    assert two.verdict == NOT_MEASURED
    (case,) = two.outcome.cases
    assert case.of == "strong scaling, mindspore graph tuned over pytorch eager tuned, 2 processes"
    half = math.hypot(math.log(55 / 50), math.log(90 / 80)) / 2
    assert math.log(case.ratio.high / case.ratio.low) / 2 == pytest.approx(half)
    assert case.files == "key1 key0", "both frameworks' files"
    four = [group("pytorch eager", 4, (50, 55)), group("mindspore graph", 4, (80, 90))]
    write("scaling", four)
    assert judged_of(tmp_path, "C7").verdict == REPRODUCED
    weak = [group("pytorch eager", 4, (50, 55), 256), group("mindspore graph", 4, (50, 55), 256)]
    write("scaling", [*four, *weak])
    ways = [case.of for case in judged_of(tmp_path, "C7").outcome.cases]
    both = "mindspore graph tuned over pytorch eager tuned, 4 processes"
    assert ways == [f"strong scaling, {both}", f"weak scaling, {both}"], "one is not set against the other"


def test_scaling_is_compared_of_every_subject_of_the_two(tmp_path: Path, write: Callable) -> None:
    sizes = {"world_size": 4, "batch_size": 64, "baseline_batch_size": 64}
    group = functools.partial(row, "efficiency_percent", on="cnn on digits", **sizes)
    older = {"environment": "torch-2.9", "subject": "pytorch torch-2.9 eager tuned"}
    own = group((80, 90), baseline="mindspore graph tuned")
    theirs = [group((50, 55), PYTORCH, PYTORCH), group((94, 99), PYTORCH, PYTORCH) | older]
    write("scaling", [own, *theirs])
    judged = judged_of(tmp_path, "C7")
    start = "strong scaling, mindspore graph tuned over"
    assert {case.of: case.bears for case in judged.outcome.cases} == {
        f"{start} pytorch eager tuned, 4 processes": SUPPORTS,
        f"{start} pytorch torch-2.9 eager tuned, 4 processes": CONTRADICTS,
    }
    assert judged.verdict == NOT_REPRODUCED
    write("scaling", [own, *reversed(theirs)])
    assert judged_of(tmp_path, "C7").verdict == NOT_REPRODUCED, "whichever comes first"


def test_operators_cross_with_the_number_of_parameters(tmp_path: Path, write: Callable) -> None:
    def convolved(count: int, ends: tuple[float, float], work: float = 1, **more: Any) -> dict:
        return operator("conv2d", count, ends, million_multiply_adds=work, **more)

    def batchnorm(start: int, end: int, **more: Any) -> list[dict]:
        return [
            operator("batchnorm2d", count, ends, **more) for count, ends in ((start, (0.1, 0.2)), (end, (1.2, 1.3)))
        ]

    convolution = [convolved(100, (1.2, 1.3)), convolved(10, (0.1, 0.2), work=999), convolved(50, (0.5, 2))]
    write("operators", convolution)
    alone = judged_of(tmp_path, "C8")
    assert alone.verdict == NOT_MEASURED, "which of two crosses first is a part of it"
    assert "conv2d and batchnorm2d" in alone.outcome.missing[0]
    assert [case.bears for case in alone.outcome.cases] == [SUPPORTS, SUPPORTS], "as few parameters, more work"
    assert [case.files for case in alone.outcome.cases] == ["key1", "key0"]
    write("operators", [*convolution, *batchnorm(1, 8)])
    crossed = judged_of(tmp_path, "C8")
    assert crossed.verdict == REPRODUCED
    order = crossed.outcome.cases[-1]
    assert order.of == "forward, mindspore graph tuned, conv2d crosses later than batchnorm2d"
    assert order.measured == (
        "conv2d: PyTorch faster up to 10 parameters, MindSpore from 100 on; "
        "batchnorm2d: PyTorch faster up to 1 parameters, MindSpore from 8 on"
    )
    write("operators", [*convolution, *batchnorm(1, 20)])
    assert judged_of(tmp_path, "C8").outcome.cases[-1].bears == OPEN, "both cross somewhere between 10 and 20"
    write("operators", [*convolution, *batchnorm(200, 400)])
    late = judged_of(tmp_path, "C8")
    assert (late.verdict, late.outcome.cases[-1].bears) == (NOT_REPRODUCED, CONTRADICTS)
    write("operators", [*convolution, *batchnorm(200, 400, control=(1.1, 1.2))])
    assert judged_of(tmp_path, "C8").outcome.cases[-1].bears == OPEN, "its ratios are not believed"
    write("operators", [convolved(100, (0.2, 0.3)), convolved(1, (0.1, 0.2))])
    assert judged_of(tmp_path, "C8").verdict == NOT_REPRODUCED
    write("operators", [convolved(100, (0.2, 0.3), work=1), convolved(100, (0.1, 0.2), work=9)])
    assert judged_of(tmp_path, "C8").outcome.cases == [], "one number of parameters crosses nothing"
    installed = {"subject": "mindspore graph default"}
    write("operators", [convolved(100, (0.2, 0.3), **installed), convolved(1, (0.1, 0.2), **installed)])
    default = judged_of(tmp_path, "C8")
    assert default.verdict == NOT_MEASURED, "as installed its convolutions are not what was compared"
    assert default.outcome.missing, "and it is said what it would take"


def test_inference_is_judged_in_graph_mode_only(tmp_path: Path, write: Callable) -> None:
    eager = answers((0.1, 0.2), subject="mindspore eager tuned")
    write("inference", eager)
    assert judged_of(tmp_path, "C10").verdict == NOT_MEASURED
    write("inference", [*eager, *answers((1.1, 1.2))])
    assert judged_of(tmp_path, "C10").verdict == REPRODUCED
    assert judged_of(tmp_path, "C10").outcome.cases[0].published == 1.740


def test_claims_about_gpus_are_judged_on_gpus_only(tmp_path: Path, write: Callable) -> None:
    def ratio(device: str, ends: tuple[float, float] = (2, 3), subject: str = PYTORCH, **more: Any) -> dict:
        return row("throughput_ratio", ends, subject, device=device, **more)

    for device in ("cpu", "cuda"):
        write("devices", [ratio(device, on="cnn on digits")])
        gru = {"on": "gru on imdb"}
        write("frameworks", [ratio(device, **gru), ratio(device, subject="mindspore graph tuned", **gru)])
        write("instrument", [ratio(device, without="cudnn_benchmark" if device == "cuda" else "")])
        verdicts = [judged_of(tmp_path, number).outcome.cases for number in ("C11", "C17", "C18")]
        if device == "cpu":
            assert verdicts == [[], [], []]
    gpu, gru, autotuned = verdicts
    assert (gpu[0].bears, gpu[0].published) == (SUPPORTS, 2.843)
    assert [case.bears for case in gru] == [CONTRADICTS], (
        "twice as fast is not alike; PyTorch's modes are one framework"
    )
    assert autotuned[0].bears == CONTRADICTS, "faster without it"
    assert autotuned[0].ratio.low == pytest.approx(1 / 3)
    write("instrument", [ratio("cuda", (0.91, 0.92), without="cudnn_benchmark")])
    words = in_words(judged_of(tmp_path, "C18"))
    assert words.startswith("Reproduced, but not tested: how much is much"), "9 % may not be"
    write("instrument", [ratio("cuda", (0.97, 0.98), without="cudnn_benchmark")])
    assert in_words(judged_of(tmp_path, "C18")).startswith("Not reproduced (the same within 5 %)"), "2 % is not"


TENSORFLOW, MXNET, JAX = (f"{name} graph tuned" for name in ("tensorflow", "mxnet", "jax"))


def at_batches(*ratios: tuple[int, str, tuple[float, float]], **more: Any) -> list[dict]:
    """Throughput relative to PyTorch at batch sizes."""
    return [
        row("throughput_ratio", ends, who, on="cnn on digits", batch_size=size, **more) for size, who, ends in ratios
    ]


def test_who_is_fastest_by_the_batch_is_asked_of_all_that_were_compared(tmp_path: Path, write: Callable) -> None:
    as_claimed = at_batches(
        *((16, who, (0.4, 0.5)) for who in (TENSORFLOW, MXNET, JAX)),
        *((128, who, ends) for who, ends in ((TENSORFLOW, (1.1, 1.2)), (MXNET, (2, 2.2)), (JAX, (0.9, 1.1)))),
    )
    write("batch_size", as_claimed)
    judged = judged_of(tmp_path, "C16")
    assert (judged.verdict, judged.outcome.missing) == (REPRODUCED, [])
    of = {case.of: case.ratio for case in judged.outcome.cases}
    assert set(of) == {
        *(f"cnn on digits, batch 16, {PYTORCH} over {who}" for who in (TENSORFLOW, MXNET, JAX)),
        *(f"cnn on digits, batch 128, {MXNET} over {who}" for who in (PYTORCH, TENSORFLOW, JAX)),
    }
    assert of[f"cnn on digits, batch 16, {PYTORCH} over {JAX}"].low == pytest.approx(1 / 0.5)
    assert of[f"cnn on digits, batch 128, {MXNET} over {PYTORCH}"].low == pytest.approx(2)
    both = of[f"cnn on digits, batch 128, {MXNET} over {TENSORFLOW}"]
    assert both.estimate == pytest.approx(math.sqrt(2 * 2.2 / 1.1 / 1.2))
    assert both.low == pytest.approx(both.estimate * math.exp(-math.hypot(math.log(1.1), math.log(1.2 / 1.1)) / 2))
    write("batch_size", [*as_claimed[:2], *at_batches((16, JAX, (1.2, 1.4))), *as_claimed[3:]])
    judged = judged_of(tmp_path, "C16")
    (case,) = [case for case in judged.outcome.cases if case.bears == CONTRADICTS]
    assert (judged.verdict, case.of) == (NOT_REPRODUCED, f"cnn on digits, batch 16, {PYTORCH} over {JAX}")


def test_who_is_fastest_is_not_said_without_the_frameworks_of_the_work(tmp_path: Path, write: Callable) -> None:
    def missing(*rows: dict) -> list[str]:
        write("batch_size", list(rows))
        judged = judged_of(tmp_path, "C16")
        assert judged.verdict == NOT_MEASURED
        return judged.outcome.missing

    jax = at_batches((16, JAX, (2, 3)), (128, JAX, (2, 3)))
    of_both = missing(*jax)
    assert [one.partition(" (")[0] for one in of_both] == [
        f"{name} at a batch size {words} in the notebook batch_size"
        for words in ("of 64 or less", "above 64")
        for name in ("mxnet", "tensorflow")
    ]
    assert "PROFILE=frameworks" in of_both[0]
    small = at_batches(*((64, who, (0.4, 0.5)) for who in (TENSORFLOW, MXNET)))
    assert missing(*small) == ["a batch size above 64 in the notebook batch_size"]
    lost = at_batches((128, TENSORFLOW, (1.1, 1.2)), (128, MXNET, (2, 3)))
    lost[1] |= {"estimate": math.nan, "low": math.nan, "high": math.nan, "why": DISTURBED}
    assert missing(*small, *lost) == [f"{MXNET} at batch 128 ({NOISY})"]
    restless = at_batches(
        *((size, who, (2, 3)) for size in (16, 128) for who in (TENSORFLOW, MXNET)), control=(1.1, 1.2)
    )
    write("batch_size", restless)
    assert {case.why for case in judged_of(tmp_path, "C16").outcome.cases} == {RESTLESS}


def test_claims_of_more_frameworks_are_whole_only_where_theirs_were_measured(tmp_path: Path, write: Callable) -> None:
    cuda = {"device": "cuda"}
    gains = [row("throughput_ratio", (2, 3), who, who, on="cnn on digits", **cuda) for who in (PYTORCH, TENSORFLOW)]
    alike = [row("throughput_ratio", (0.95, 1.05), who, on="gru on imdb", **cuda) for who in (TENSORFLOW, JAX)]
    write("devices", gains)
    write("frameworks", alike)
    for number, place in (("C11", "devices"), ("C17", "frameworks")):
        judged = judged_of(tmp_path, number)
        assert (judged.verdict, len(judged.outcome.cases)) == (NOT_MEASURED, 2), number
        (lacking,) = judged.outcome.missing
        assert "mxnet" in lacking
        assert f"{place}.yaml" in lacking
    write("devices", [*gains, row("throughput_ratio", (8, 9), MXNET, MXNET, on="cnn on digits", **cuda)])
    write("frameworks", [*alike, row("throughput_ratio", (0.9, 1.1), MXNET, on="gru on imdb", **cuda)])
    assert "not tested: that it is more in MXNet" in in_words(judged_of(tmp_path, "C11"))
    assert judged_of(tmp_path, "C11").outcome.cases[-1].published == 8.827
    assert (judged_of(tmp_path, "C17").verdict, len(judged_of(tmp_path, "C17").outcome.cases)) == (REPRODUCED, 3)
    write("frameworks", [row("throughput_ratio", (0.9, 1.1), MXNET, on="gru on imdb", device="cpu")])
    assert judged_of(tmp_path, "C17").outcome.cases == [], "on a CPU there is no such library"


def test_a_frame_that_the_notebook_did_not_write_is_not_used(tmp_path: Path, write: Callable) -> None:
    write("frameworks", [row("threshold_ratio", (0.4, 0.6))])
    assert judged_of(tmp_path, "C2").verdict == REPRODUCED
    path = tmp_path / "tables" / "frameworks_frame.parquet"
    tidy.save(tidy.load(path).assign(low=4.4), path)
    assert judged_of(tmp_path, "C2").verdict == NOT_MEASURED


def test_training_of_three_workloads_wants_all_three(tmp_path: Path, write: Callable) -> None:
    names = ("googlenet on cifar10", "lstm on imdb", "bert on text")
    rows = [row("epoch_ratio", (1.1, 1.2), on=name, batch_size=32, epochs=3) for name in names]
    write("frameworks", rows[:2])
    assert judged_of(tmp_path, "C9").verdict == NOT_MEASURED
    write("frameworks", rows)
    assert judged_of(tmp_path, "C9").verdict == REPRODUCED
    assert [case.published for case in judged_of(tmp_path, "C9").outcome.cases] == [1.198, 1.100, 1.881]


def metric_rows(values: dict[float, tuple[float, float, float]], seeds: int = 3, epochs: int = 10) -> list[dict]:
    """Rows of the notebook learning_rate: mean, lowest and highest by rate."""
    columns = {"subject": PYTORCH, "on": "cnn on cifar10", "kind": "training", "unit": "%", "epochs": epochs}
    return [
        row("final_metric", processes=seeds, learning_rate=rate, lowest=low, highest=high, **columns)
        | {"estimate": mean}
        for rate, (mean, low, high) in values.items()
    ]


@pytest.mark.parametrize(
    ("values", "bears"),
    [
        ([(50, 40, 60), (90, 85, 95), (60, 50, 70)], SUPPORTS),
        ([(50, 40, 60), (65, 55, 75), (60, 50, 70)], OPEN),
        ([(50, 40, 60), (60, 50, 70), (90, 85, 95)], CONTRADICTS),
        ([(62, 55, 69), (60, 50, 70), (50, 40, 60)], OPEN),
        ([(90, 85, 95), (60, 50, 70), (50, 40, 60)], OPEN),  # the works went on to 0.001
        ([(50, 40, 60), (90, 85, 95)], None),
    ],
)
def test_inner_maximum(tmp_path: Path, write: Callable, values: list, bears: str | None) -> None:
    by_rate = {0.01 * 10.0**at: ends for at, ends in enumerate(values)}
    write("learning_rate", metric_rows(by_rate))
    judged = judged_of(tmp_path, "C14")
    assert [case.bears for case in judged.outcome.cases][:1] == [bears] * (bears is not None)
    assert judged.outcome.missing, "so coarse a grid does not say whether it is near 0.01"
    if bears == SUPPORTS:
        write("learning_rate", metric_rows(by_rate, seeds=1))
        one_seed = judged_of(tmp_path, "C14")
        assert in_words(one_seed) == f"No difference shown ({ONE_SEED})"
    elif bears is None:
        assert judged.verdict == NOT_MEASURED


@pytest.mark.parametrize(
    ("best", "second", "verdict"),
    [(0.01, 0.03, REPRODUCED), (0.05, 0.03, NOT_REPRODUCED), (0.03, 0.01, NO_DIFFERENCE), (0.005, 0.01, NO_DIFFERENCE)],
)
def test_best_near_the_published_best(
    tmp_path: Path, write: Callable, best: float, second: float, verdict: str
) -> None:
    values = dict.fromkeys((0.001, 0.005, 0.01, 0.03, 0.05, 0.07), (50.0, 49.0, 51.0))
    values |= {best: (70.0, 69.0, 71.0), second: (60.0, 59.0, 61.0)}
    write("learning_rate", metric_rows(values))
    judged = judged_of(tmp_path, "C14")
    assert judged.outcome.cases[0].bears == SUPPORTS, "it rises and falls"
    assert judged.verdict == verdict
    write("learning_rate", metric_rows(values, epochs=3))
    shorter = judged_of(tmp_path, "C14")
    assert "10 epochs" in shorter.outcome.missing[0]
    if verdict == REPRODUCED:
        assert shorter.verdict == NOT_MEASURED, "after three epochs it is another question"
        write("learning_rate", metric_rows(values | {0.005: (69.5, 68.0, 70.0)}))
        assert judged_of(tmp_path, "C14").outcome.cases[1].bears == OPEN, "seeds do not tell 0.005 from 0.01"
    else:
        assert "after another number of epochs than the work's" in in_words(shorter)


@pytest.mark.parametrize(
    ("ends", "bears", "why"),
    [
        ((0.95, 1.05), SUPPORTS, ""),
        ((1.02, 1.08), SUPPORTS, ""),
        ((1.2, 1.3), CONTRADICTS, ""),
        ((1.05, 1.2), OPEN, WITHIN_OR_BEYOND),
        ((0.8, 1.3), OPEN, TOO_WIDE),
        ((math.nan, math.nan), OPEN, NO_INTERVAL),
    ],
)
def test_of_a_claim_that_things_are_alike_an_open_case_is_not_its_confirmation(
    tmp_path: Path, write: Callable, ends: tuple[float, float], bears: str, why: str
) -> None:
    flat, alike = (next(one for one in works.claims() if one.id == each).rule.alike for each in ("C15", "C17"))
    assert flat < alike, "the margin of the claim about the GRU is wider"
    low, high = (end * alike / flat if end > flat else end for end in ends)
    write("frameworks", [row("throughput_ratio", (low, high), on="gru on imdb", device="cuda") | {"estimate": 1.07}])
    judged = judged_of(tmp_path, "C17")
    (case,) = judged.outcome.cases
    assert (case.bears, case.why) == (bears, why)
    words = in_words(judged)
    assert words.startswith("No difference beyond a factor of 1.25 shown, nor excluded") == (bears == OPEN)
    assert why in words
    assert undecided(judged) == (bears == OPEN)


@pytest.mark.parametrize(
    ("factor", "noise", "verdict"), [(1.02, 0.01, REPRODUCED), (1.5, 0.01, NOT_REPRODUCED), (1.02, 0.3, NO_DIFFERENCE)]
)
def test_flat_epoch_times(tmp_path: Path, write: Callable, factor: float, noise: float, verdict: str) -> None:
    def seconds(rate: float, seed: int) -> float:
        return (1 if rate == 0.1 else factor) * (1 + noise * seed * (rate > 0.1))

    ratio = geometric_interval([math.log(seconds(0.1, seed) / seconds(0.2, seed)) for seed in range(4)])
    write("learning_rate", [at_rate((ratio.low, ratio.high))])
    judged = judged_of(tmp_path, "C15")
    assert judged.verdict == verdict
    assert judged.outcome.cases[0].of == "cnn on digits, pytorch eager tuned, rate 0.2 over 0.1"
    assert in_words(judged).startswith("No difference beyond a factor of 1.1") == (verdict == NO_DIFFERENCE)


def test_growth_with_the_batch(tmp_path: Path, write: Callable) -> None:
    def at(batch: int, speed: float, memory: float, gpu: float = math.nan, **more: Any) -> list[dict]:
        values = {"samples_per_second": speed, "memory_mib": memory}
        values |= {"accelerator_memory_mib": gpu * 10, "accelerator_percent": gpu}
        columns = {"subject": PYTORCH, "on": "cnn on digits", "batch_size": batch, **more}
        trained = row("memory_mib", (1, 1), kind="training", **columns)  # of other processes
        return [trained, *(row(name, (0.95 * value, 1.05 * value), **columns) for name, value in values.items())]

    write("batch_size", [*at(4, 10, 100), *at(64, 50, 200)])
    on_cpu = judged_of(tmp_path, "C12")
    assert on_cpu.verdict == NOT_MEASURED, "the utilisation of a GPU is a part of it"
    assert [case.bears for case in on_cpu.outcome.cases] == [SUPPORTS, SUPPORTS]
    write("batch_size", [*at(4, 10, 100), *at(64, 50, 100.1)])
    assert [case.bears for case in judged_of(tmp_path, "C12").outcome.cases] == [SUPPORTS, OPEN], (
        "memory has an interval"
    )
    write("batch_size", [*at(4, 10, 100, 5), *at(64, 50, 10, 50)])
    on_gpu = judged_of(tmp_path, "C12")
    assert on_gpu.verdict == REPRODUCED, "the host's memory is not what it is about"
    assert len(on_gpu.outcome.cases) == 3
    restless = {"control": (1.02, 1.03)}
    write("batch_size", [*at(4, 10, 100, 5), *at(16, 20, 10, 9, **restless), *at(64, 50, 10, 50)])
    assert judged_of(tmp_path, "C12").verdict == REPRODUCED, "another comparison's"
    write("batch_size", [*at(4, 10, 100, 5), *at(64, 50, 10, 50, **restless)])
    assert [case.why for case in judged_of(tmp_path, "C12").outcome.cases] == [RESTLESS, "", ""], "speed only"


def test_memory_that_was_measured_first_in_too_few_processes_is_named(tmp_path: Path, write: Callable) -> None:
    def at(batch: int, firsts: int) -> list[dict]:
        size = {"subject": "pytorch eager tuned", "batch_size": batch, "on": "cnn on digits"}
        memory = row("memory_mib", (95.0 * batch, 105.0 * batch), processes=firsts, **size)
        if firsts < 2:
            memory |= {"low": None, "high": None}
        return [row("samples_per_second", (0.95 * batch, 1.05 * batch), **size), memory]

    write("batch_size", [*at(4, 2), *at(64, 1)])
    speed, memory = judged_of(tmp_path, "C12").outcome.cases
    assert (speed.bears, memory.bears) == (SUPPORTS, OPEN)
    assert memory.why.startswith(NO_INTERVAL)
    assert memory.why.endswith("measured the size first, 2 at batch 4 and 1 at batch 64")
    assert "which are independent" not in judged_of(tmp_path, "C12").rule, "the same processes may have measured both"


def test_sentence_has_the_hardware_in_its_verdict(tmp_path: Path, write: Callable) -> None:
    lab = SyntheticLab(tmp_path)
    files = lab.compare([Condition(workload="gcn")], precision=0.03, budget_s=1, block_s=0.1).files()
    write("frameworks", [row("threshold_ratio", (0.4, 0.6), threshold=0.7, files=" ".join(files))])
    result = experiments.module("claims").measure(None, lab)
    sentence = next(text for text in result.findings() if text.startswith("C2"))
    assert "published on Ascend 910" in sentence
    assert (
        "Reproduced, in direction, on 2 cores of synthetic: gcn on cora, mindspore graph tuned (to 70 %): 2.04"
        in sentence
    )
    summary = result.summary()
    assert summary["measurements"] == sorted(files)
    verdicts = pd.read_csv(tmp_path / "tables" / "claims_verdicts.csv").set_index("claim")
    assert verdicts.loc["C2", "measurements"].split() == files
    assert verdicts.loc["C2", "measured_here"].startswith("gcn on cora, mindspore graph tuned (to 70 %): 2.04 [1.67")
    assert "3.222" in verdicts.loc["C11", "doubt"]
    cases = pd.read_csv(tmp_path / "tables" / "claims_cases.csv")
    assert cases["claimed_ratio_low"].tolist() == pytest.approx([1 / 0.6])
    assert "ClaimsCasesCTwoGcn" in (tmp_path / "tables" / "claims_macros.tex").read_text()
    assert "figures/claims_ratios.svg" in summary["figures"]
    drawn = pd.read_csv(tmp_path / "figures" / "claims_ratios.csv")
    assert drawn["case"].tolist() == cases["case"].tolist()
    assert drawn["claimed_ratio_low"].tolist() == pytest.approx([1 / 0.6])
    for file in files:
        lab.store.path(file).unlink()
    finding = experiments.module("claims").measure(None, lab).findings()[1]
    assert "on a machine that is no longer known: the files of its measurements are gone" in finding


def ran(notebook: str, lab: SyntheticLab, **changes: object) -> None:
    """Run an experiment of quick, with some parameters changed, on a lab that makes its measurements up; write its
    frame and its record as the suite does.
    """
    values = experiments.values(notebook, ROOT / "parameters" / "quick" / f"{notebook}.yaml")
    module = experiments.module(notebook)
    result = module.measure(module.Parameters(**values | changes), lab)
    path = f"tables/{notebook}_frame.parquet"
    tidy.save(result.frame, lab.folder / path)
    record = {"status": "succeeded", "files": {path: records.digest((lab.folder / path).read_bytes())}}
    (lab.folder / "notebooks").mkdir(exist_ok=True)
    (lab.folder / "notebooks" / f"{notebook}.json").write_text(json.dumps(record))


def bearings(folder: Path, number: str) -> list[tuple[str, str]]:
    return [(case.of, case.bears) for case in judged_of(folder, number).outcome.cases]


def test_verdicts_on_the_frames_of_the_notebook_frameworks(tmp_path: Path) -> None:
    lstm = {"workload": "lstm", "data": "digits_sequence", "hyperparameters": {}, "batch_size": 32}
    lstm |= {"learning_rate": 0.005, "train_samples": None, "epochs": 3, "most_epochs": 6, "threshold": 0.7}
    path = ROOT / "parameters" / "quick" / "frameworks.yaml"
    tasks = [yaml.safe_load(path.read_text(encoding="utf-8"))["tasks"][0], lstm]
    lab = SyntheticLab(tmp_path, metric=lambda condition, seed, epoch: 1.0, first=lambda condition: 9.0)
    ran("frameworks", lab, tasks=tasks)
    gcn = judged_of(tmp_path, "C2")
    assert (gcn.verdict, gcn.outcome.missing) == (REPRODUCED, []), "MindSpore takes three times as long"
    assert in_words(gcn) == "Reproduced, in direction, on stand-in data"
    (case,) = gcn.outcome.cases
    assert (case.of, case.setting) == (
        "gcn on digits_graph, mindspore graph tuned",
        "to 85 %; the work: cora to 70 %",
    )
    assert case.ratio.estimate == pytest.approx(3, rel=0.1)
    assert case.files, "it can be traced"
    of_lstm = judged_of(tmp_path, "C9")
    assert of_lstm.verdict == NOT_REPRODUCED
    assert of_lstm.outcome.cases[0].setting == "batch 32, 3 epochs; the work: imdb"
    assert of_lstm.outcome.missing == [
        f"{name} trained in both frameworks (PROFILE=full)" for name in ("googlenet", "bert")
    ]
    assert judged_of(tmp_path, "C4").verdict == REPRODUCED
    assert len(judged_of(tmp_path, "C4").outcome.cases) == 4, "two workloads in two frameworks"
    mindspore = [{"framework": "mindspore", "mode": mode, "lane": "tuned"} for mode in ("eager", "graph")]
    lab = SyntheticLab(tmp_path, metric=lambda condition, seed, epoch: 1.0)
    ran("frameworks", lab, subjects=mindspore, tasks=tasks)
    assert [judged_of(tmp_path, number).outcome.cases for number in ("C2", "C9")] == [[], []], "no PyTorch there"


def test_verdicts_on_the_frames_of_the_notebook_modes(tmp_path: Path) -> None:
    subjects = [
        {"framework": framework, "mode": mode, "precision": precision, "lane": "tuned"}
        for framework in ("pytorch", "mindspore")
        for mode in ("eager", "graph")
        for precision in ("fp32", "bf16" if framework == "pytorch" else "bf16-O2")
        if (framework, mode, precision) != ("mindspore", "eager", "bf16-O2")
    ]

    def step(condition: Condition) -> float:
        """Mixed precision takes half as long, graph mode twice as long."""
        seconds = 0.01 * (2 if condition.mode == "graph" else 1)
        return seconds * (1 if condition.precision == "fp32" else 0.5)

    ran("modes", SyntheticLab(tmp_path, step=step), subjects=subjects, devices=["cpu"])
    mixed = judged_of(tmp_path, "C5")
    assert mixed.verdict == REPRODUCED
    assert bearings(tmp_path, "C5") == [
        (f"gcn on digits_graph, {who} tuned", SUPPORTS)
        for who in ("pytorch eager bf16", "pytorch graph bf16", "mindspore graph bf16-O2")
    ], "graph over eager within bf16 is no mixed precision over fp32"
    assert all(case.control is not None for case in mixed.outcome.cases), "the A/A of their comparison"
    assert bearings(tmp_path, "C6") == [
        ("gcn on digits_graph, MindSpore graph over eager", CONTRADICTS),
        ("gcn on digits_graph, PyTorch eager over MindSpore eager", CONTRADICTS),  # they are the same
    ]


def test_verdicts_on_the_frames_of_operators_and_inference(tmp_path: Path) -> None:
    def step(condition: Condition) -> float:
        """MindSpore is faster from 64 output channels on in convolutions, from 32 in batch normalisation."""
        sizes = condition.hyperparameters
        few = sizes.get("out_channels", sizes.get("channels", 0)) < (64 if "out_channels" in sizes else 32)
        return 0.01 * (1 if condition.framework == "pytorch" else 2 if few else 0.5)

    operators = [
        {
            "workload": "conv2d",
            "batch_size": 8,
            "hyperparameters": {"in_channels": 16, "out_channels": 16, "image_size": 16},
            "vary": {"out_channels": [64]},
        },
        {
            "workload": "batchnorm2d",
            "batch_size": 8,
            "hyperparameters": {"channels": 16, "image_size": 16},
            "vary": {"channels": [32]},
        },
    ]
    ran("operators", SyntheticLab(tmp_path, step=step), operators=operators)
    crossed = judged_of(tmp_path, "C8")
    assert crossed.verdict == REPRODUCED
    assert crossed.outcome.cases[-1].measured == (
        "conv2d: PyTorch faster up to 2,320 parameters, MindSpore from 9,280 on; "
        "batchnorm2d: PyTorch faster up to 32 parameters, MindSpore from 64 on"
    )
    subjects = [{"framework": name, "mode": "graph", "lane": "tuned"} for name in ("pytorch", "mindspore")]
    ran("inference", SyntheticLab(tmp_path), subjects=subjects)
    answers = judged_of(tmp_path, "C10")
    assert answers.verdict == NOT_REPRODUCED
    assert answers.outcome.cases[0].setting == "images of 32 x 32"


def test_verdicts_on_the_frames_of_the_learning_rates(tmp_path: Path) -> None:
    rates = works.tried("learning_rate")
    subject = {"framework": "pytorch", "mode": "eager", "lane": "tuned", "learning_rates": rates}
    longer = {"subjects": [subject], "epochs": 10, "most_epochs": 20, "seeds": [0, 1, 2]}

    def metric(condition: Condition, seed: int, epoch: int) -> float:
        return 0.9 - 0.1 * abs(math.log(condition.learning_rate / 0.01)) + 0.001 * seed

    ran("learning_rate", SyntheticLab(tmp_path, metric=metric, step=lambda condition: 0.01), **longer)
    best = judged_of(tmp_path, "C14")
    assert in_words(best) == "Reproduced, on stand-in data"
    assert [case.measured for case in best.outcome.cases][1] == "the maximum is above 0.005 and below 0.03"
    assert judged_of(tmp_path, "C15").verdict == REPRODUCED
    ran("learning_rate", SyntheticLab(tmp_path, metric=metric, fails=lambda condition: True), **longer)
    assert [judged_of(tmp_path, number).verdict for number in ("C14", "C15")] == [NOT_MEASURED] * 2
    assert all(judged_of(tmp_path, number).outcome.missing for number in ("C14", "C15"))


def as_many_as_in_full(write: Callable) -> None:
    """Rows as the frames of the profile full have them: 150 ratios."""
    on = ("gcn on cora", "gru on imdb", "cnn on cifar10", "lstm on imdb", "seq2seq on multi30k", "resnet50 on cifar10")
    on += ("googlenet on cifar10", "bert on pydoc")
    control = (0.98, 1.01)
    kinds = [f"{p} tuned" for p in ("bf16", "fp16")]
    pairs = [(f"pytorch {mode} {kind}", f"pytorch {mode} tuned") for mode in ("eager", "graph") for kind in kinds]
    mixed = [f"{p}-O{level} tuned" for p in ("fp16", "bf16") for level in (1, 2, 3)]
    pairs += [(f"mindspore graph {kind}", "mindspore graph tuned") for kind in mixed]
    pairs += [("mindspore graph tuned", "mindspore eager tuned")]
    within = [row("within_ratio", (1.05, 1.15), *pair, on=task, control=control) for task in on for pair in pairs]
    eager = [row("throughput_ratio", (0.1, 0.2), "mindspore eager tuned", on=task, control=control) for task in on]
    write("modes", [*within, *eager])
    first = [first_epoch(who, (1.5, 2), on=task) for task in on for who in (PYTORCH, "mindspore graph tuned")]
    learned = [
        row(name, (0.2, 0.3), on=task, batch_size=32, epochs=3)
        for task in on
        for name in ("epoch_ratio", "threshold_ratio")
    ]
    write("frameworks", [*first, *learned])
    write(
        "operators",
        [
            operator(name, count, (0.5, 2), control=control, hyperparameters=json.dumps({"passes": passes}))
            for name in ("conv2d", "linear", "batchnorm2d")
            for passes in ("forward", "forward+backward")
            for count in (9216, 2359296)
        ],
    )
    write(
        "batch_size",
        [
            row(name, ends, f"{who} tuned", on="cnn on cifar10", batch_size=batch)
            for who in ("pytorch eager", "pytorch graph", "mindspore eager", "mindspore graph")
            for batch in (4, 1024)
            for name, ends in {
                "samples_per_second": (batch, 1.1 * batch),
                "memory_mib": (300 + batch, 301 + batch),
            }.items()
        ],
    )


def test_each_figure_fits_a_page_and_its_labels_are_apart(tmp_path: Path, write: Callable) -> None:
    as_many_as_in_full(write)
    result = experiments.module("claims").measure(None, SyntheticLab(tmp_path))
    assert len(result.figures) > 1
    ratios = [case for one in result.judged for case in one.outcome.cases if case.ratio is not None]
    assert len(ratios) > 120
    points = 0
    for _, figure in result.figures.values():
        assert figure.get_figheight() <= 9
        assert figure.get_figwidth() <= 7.2
        (axes,) = figure.axes
        shown = [
            text for text in (*axes.get_yticklabels(), *axes.get_xticklabels(), axes.xaxis.label) if text.get_text()
        ]
        assert min(text.get_fontsize() for text in shown) >= 6
        boxes = [text.get_window_extent() for text in shown]
        assert min(box.x0 for box in boxes) >= 0, "none is cut"
        of_rows = sorted((text.get_window_extent() for text in axes.get_yticklabels()), key=lambda box: box.y0)
        assert all(low.y1 <= high.y0 + 1 for low, high in itertools.pairwise(of_rows))
        points += sum(line.get_marker() in set("osXD") and len(line.get_xdata()) == 1 for line in axes.lines)
        points -= sum(line.get_markerfacecolor() == "none" for line in axes.lines)
    assert points == len(ratios), "each case is on one of them"
    assert result.show_figures().data.count("<img") == len(result.figures)


def test_an_interval_that_runs_out_of_the_figure_ends_in_an_arrow(tmp_path: Path, write: Callable) -> None:
    wide = {10: (1e-4, 1e4), 1000: (0.9, 1.1)}
    write("operators", [operator("conv2d", count, ends) for count, ends in wide.items()])
    result = experiments.module("claims").measure(None, SyntheticLab(tmp_path))
    ((caption, figure),) = result.figures.values()
    (axes,) = figure.axes
    ends = {line.get_marker(): line.get_xdata()[0] for line in axes.lines if line.get_marker() in ("<", ">")}
    low, high = axes.get_xlim()
    assert ends == {"<": low, ">": high}
    assert "An arrow: the interval goes on." in caption


def test_a_claim_of_which_some_cases_show_a_difference_is_said_to_be_undecided() -> None:
    (claim, *_) = works.claims()

    def said(*bears: str) -> bool:
        outcome = Outcome([Case("x", one, "1", "") for one in bears])
        return undecided(Judged(claim, outcome, judge(outcome), ""))

    assert said(SUPPORTS, OPEN)
    assert not said(OPEN, OPEN), "that is what 'no difference shown' says"
    assert not said(SUPPORTS)
    assert not said(SUPPORTS, OPEN, CONTRADICTS), "that one is decided"


def test_a_claim_of_a_ratio_is_a_declaration(tmp_path: Path, write: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"notebook": "devices", "quantity": "throughput_ratio", "wanted": "four threads", "own": "{threads} threads"}
    rows |= {"where": "threads == 4 and baseline_threads == 1", "inverse": True}
    rule = {"says": "One thread over four, same framework.", "rows": [rows]}
    claim = {"id": "C99", "source": "yin2020", "device": "i7-8650U", "says": "More threads are no faster."}
    with pytest.raises(ValueError, match=r"rule\.rows\.0\.were"):
        works.Claim(**claim, rule={**rule, "rows": [{**rows, "were": ""}]})
    monkeypatch.setattr(works, "claims", lambda: [works.Claim(**claim, rule=rule)])
    threads = {"subject": PYTORCH, "on": "cnn on digits", "baseline_threads": 1}
    write("devices", [row("throughput_ratio", (1.5, 2), threads=2, **threads)])
    assert judged_of(tmp_path, "C99").outcome.missing == ["four threads"]
    write("devices", [row("throughput_ratio", (1.5, 2), threads=count, **threads) for count in (2, 4)])
    judged = judged_of(tmp_path, "C99")
    assert judged.verdict == NOT_REPRODUCED
    assert [(case.of, case.ratio.low) for case in judged.outcome.cases] == [("cnn on digits, 4 threads", 0.5)]
    assert judged.rule.startswith("One thread over four, same framework. Above 1 supports the claim, below 1 or ")


def test_the_rules_are_shown_with_what_they_are_asked_of(tmp_path: Path) -> None:
    texts = [one.rule for one in literature.judged(Results(tmp_path))]
    assert len(set(texts)) == len(texts)
    assert all(len(one) > 30 for one in texts)
    assert texts[0].endswith("Here faster: mindspore; names: resnet50.")


def test_frames_and_measurements_are_read_once(
    tmp_path: Path, write: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = SyntheticLab(tmp_path)
    files = lab.compare([Condition(workload="gcn")], precision=0.03, budget_s=1, block_s=0.1).files()
    columns = {"files": " ".join(files), "batch_size": 1, "epochs": 3}
    write("frameworks", [row(f"{name}_ratio", (0.4, 0.6), **columns) for name in ("threshold", "epoch", "first_epoch")])
    record = json.loads((tmp_path / "notebooks" / "frameworks.json").read_text())
    record["files"] |= {f"measurements/{key}.parquet": "" for key in files}
    (tmp_path / "notebooks" / "frameworks.json").write_text(json.dumps(record))
    read: list[str] = []
    own, documents = tidy.load, Store.documents
    monkeypatch.setattr(tidy, "load", lambda path: read.append(path.name) or own(path))
    monkeypatch.setattr(Store, "documents", lambda self, key: read.append(key) or documents(self, key))
    monkeypatch.setattr(records, "digest", lambda value, of=records.digest: read.append("digest") or of(value))
    result = experiments.module("claims").measure(None, lab)
    for name in ("verdicts", "cases", "rules"):
        result.show_table(name)
    assert result.tables() is result.tables(), "each is shown by a cell of its own"
    result.findings()
    assert sorted(read) == sorted(["digest", *files, "frameworks_frame.parquet"])


@pytest.mark.parametrize(
    ("notebook", "number"),
    [
        ("frameworks", "C2"),
        ("frameworks", "C4"),
        ("frameworks", "C9"),
        ("modes", "C5"),
        ("modes", "C6"),
        ("operators", "C8"),
        ("inference", "C10"),
        ("batch_size", "C12"),
        ("learning_rate", "C15"),
    ],
)
def test_what_was_disturbed_is_not_measured_and_says_so(tmp_path: Path, notebook: str, number: str) -> None:
    changes: dict[str, Any] = {}
    if number == "C9":  # of its workloads quick trains none
        lstm = {"workload": "lstm", "data": "digits_sequence", "batch_size": 64, "learning_rate": 0.1}
        lstm |= {"hyperparameters": {}, "train_samples": None, "epochs": 3, "most_epochs": 3, "threshold": None}
        changes = {"tasks": [lstm]}
    if number == "C10":  # nor does it answer in MindSpore's graph mode
        tuned = [("pytorch", "eager"), ("mindspore", "graph")]
        changes = {"subjects": [{"framework": one, "mode": mode, "lane": "tuned"} for one, mode in tuned]}
    ran(notebook, SyntheticLab(tmp_path, disturbed=lambda condition: True), **changes)
    judged = judged_of(tmp_path, number)
    assert (judged.verdict, judged.outcome.cases) == (NOT_MEASURED, [])
    assert any(NOISY in one for one in judged.outcome.missing)
    result = experiments.module("claims").measure(None, SyntheticLab(tmp_path))
    verdicts = result.tables()["verdicts"][1].set_index("claim")
    assert NOISY in verdicts.loc[number, "takes"]


def test_a_disturbed_ratio_of_a_gpu_or_of_a_group_is_not_measured(tmp_path: Path, write: Callable) -> None:
    lost, every = {"why": DISTURBED, "device": "cuda"}, (PYTORCH, TENSORFLOW, MXNET)
    write("devices", [row("throughput_ratio", UNKNOWN, who, who, on="cnn on digits", **lost) for who in every])
    write("frameworks", [row("throughput_ratio", UNKNOWN, who, on="gru on imdb", **lost) for who in every[1:]])
    write("instrument", [row("throughput_ratio", UNKNOWN, without="cudnn_benchmark", **lost)])
    group = {"world_size": 4, "batch_size": 64, "baseline_batch_size": 64, "on": "cnn on digits"}
    both = [row("efficiency_percent", (50, 55), PYTORCH, PYTORCH, **group)]
    both += [row("efficiency_percent", UNKNOWN, why=DISTURBED, baseline="mindspore graph tuned", **group)]
    write("scaling", both)
    for number, of in (("C7", 1), ("C11", 3), ("C17", 2), ("C18", 1)):
        judged = judged_of(tmp_path, number)
        assert (judged.verdict, judged.outcome.cases) == (NOT_MEASURED, []), number
        assert [NOISY in one for one in judged.outcome.missing] == [True] * of, number
