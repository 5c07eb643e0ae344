"""Verdicts: the published claims are whole, and each rule finds what was planted, by its interval."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from matplotlib.colors import to_rgb
from synthetic_lab import SyntheticLab

from benchlib import workloads
from benchlib.analysis.comparison import DISTURBED
from benchlib.analysis.statistics import Interval
from benchlib.condition import Condition
from benchlib.store import Store
from benchlib.suite import claims, experiments, figures, published, records, tables
from benchlib.suite.claims import rules
from benchlib.suite.claims.cases import bearing
from benchlib.suite.claims.rows import Results
from benchlib.suite.claims.verdicts import (
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

pytestmark = pytest.mark.usefixtures("one_kind_of_figure")

ROOT = Path(__file__).parents[1]
SHARED = Path(__file__).parents[2] / "shared" / "published.yaml"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., None]:
    """Writes a table of a notebook that has succeeded; rows that say no measurements get some, and ratios that say no
    baseline PyTorch's.
    """

    def inner(notebook: str, name: str, rows: list[dict], status: str = "succeeded", **parameters: object) -> None:
        for folder in ("tables", "notebooks"):
            (tmp_path / folder).mkdir(exist_ok=True)
        own = {"ratio", "threshold_ratio", "epoch_ratio"}
        told = [{"baseline": "pytorch eager tuned"} if own & set(row) else {} for row in rows]
        rows = [{"measurements": f"key{number}", **told[number], **row} for number, row in enumerate(rows)]
        frame = pd.DataFrame(rows)
        frame.to_csv(tmp_path / "tables" / f"{notebook}_{name}.csv", index=False)
        path = tmp_path / "notebooks" / f"{notebook}.json"
        files = json.loads(path.read_text())["files"] if path.exists() else {}
        table = f"tables/{notebook}_{name}.csv"
        files[table] = records.digest((tmp_path / table).read_bytes())
        path.write_text(json.dumps({"status": status, "parameters": parameters, "files": files}))

    return inner


def found(folder: Path, number: str) -> Judged:
    return next(one for one in claims.judged(Results(folder)) if one.claim.id == number)


def interval(name: str, low: float, high: float) -> dict[str, float]:
    return {name: math.sqrt(low * high), f"{name}_low": low, f"{name}_high": high}


def test_every_claim_has_a_source_a_rule_that_says_itself_and_known_workloads() -> None:
    every = published.claims()
    assert [one.id for one in every] == [f"C{number}" for number in range(1, 19)]
    for claim in every:
        assert claim.source in published.sources()
        rule = rules.RULES[claim.rule["name"]]
        assert len(rule.__doc__) > 30
        for name in claim.rule.get("names", []):
            workloads.load(name)


@pytest.mark.skipif(not SHARED.is_file(), reason="THE COLLECTED FIGURES ARE ABSENT: ours are not compared with them")
def test_figures_are_those_that_were_collected() -> None:
    theirs = yaml.safe_load(SHARED.read_text(encoding="utf-8"))
    ours = published.works()
    assert set(ours) == set(theirs)
    for section in set(theirs) - {"claims", "sources"}:
        assert ours[section] == theirs[section], section
    assert set(ours["sources"]) == set(theirs["sources"])
    for name, told in theirs["sources"].items():
        assert {key: value for key, value in ours["sources"][name].items() if key not in {"short", "used"}} == told
    assert {one["id"]: one["source"] for one in theirs["claims"]} == {c.id: c.source for c in published.claims()}
    for one in theirs["claims"]:
        claim = next(claim for claim in published.claims() if claim.id == one["id"])
        values = list(one["published"].values()) if "published" in one else [one["ratio"]] if "ratio" in one else []
        assert list(claim.published.values()) == values
        assert claim.device.replace(" against ", " / ").replace(" 910", "910") == one["device"]
        assert bool(claim.doubt) >= ("doubt" in one)


def test_what_a_work_used_is_what_its_figures_say() -> None:
    names = {"aclImdb_v1": "imdb", "multi30k en-fr": "multi30k"}
    for one in [*published.works()["thresholds"], *published.works()["training"]]:
        used = published.sources()[one["source"]].used
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
        (math.nan, math.nan, (OPEN, "")),
        (0.96, 1.04, (CONTRADICTS, "the same within 5 %")),
        (1.01, 1.05, (CONTRADICTS, "the same within 5 %")),
        (0.96, 0.99, (CONTRADICTS, "the same within 5 %")),
    ],
)
def test_a_ratio_bears_by_the_side_that_its_interval_is_on_or_that_it_is_the_same(
    low: float, high: float, bears: tuple[str, str]
) -> None:
    assert bearing(Interval((low + high) / 2, low, high, 5), 0.05) == bears


def answers(*ends: tuple[float, float], **more: object) -> list[dict]:
    """Rows of the notebook inference."""
    named = {"subject": "mindspore graph tuned", "framework": "mindspore", "mode": "graph", "lane": "tuned"}
    return [{**named, "batch_size": 2**at, **interval("ratio", *pair), **more} for at, pair in enumerate(ends)]


def test_a_claim_of_a_difference_is_contradicted_by_the_same_within_the_margin(tmp_path: Path, write: Callable) -> None:
    write("inference", "ratios", answers((1.01, 1.04)), margin=0.05)
    judged = found(tmp_path, "C10")
    assert judged.verdict == NOT_REPRODUCED
    assert in_words(judged) == "Not reproduced (the same within 5 %)"
    assert judged.outcome.cases[0].measured == "1.025 [1.010, 1.040], the same within 5 %"
    result = experiments.module("claims").measure(None, SyntheticLab(tmp_path))
    assert "1.025 [1.010, 1.040], the same within 5 %." in result.findings()[1]
    assert result.tables()["cases"][1]["bears"].tolist() == ["contradicts the claim: the same within 5 %"]
    assert "the same within 5 %" in result.tables()["verdicts"][1].set_index("claim").loc["C10", "measured_here"]


def test_of_many_cases_it_is_counted_how_many_are_the_same(tmp_path: Path, write: Callable) -> None:
    write("inference", "ratios", answers((1.01, 1.04), (0.99, 1.01), (0.5, 0.6), (1.2, 1.3)), margin=0.05)
    judged = found(tmp_path, "C10")
    assert in_words(judged) == "Not reproduced", "one case is slower: they are not all the same"
    result = experiments.module("claims").measure(None, SyntheticLab(tmp_path))
    assert "1 supports it, 3 contradict it (2 the same within 5 %)." in result.findings()[1]


def test_the_margin_is_that_of_the_notebook_that_has_the_ratio(tmp_path: Path, write: Callable) -> None:
    def bears(**parameters: float) -> str:
        write("inference", "ratios", answers((1.01, 1.04)), **parameters)
        return found(tmp_path, "C10").outcome.cases[0].bears

    assert bears(margin=0.03) == SUPPORTS
    assert bears(margin=0.04) == CONTRADICTS
    assert bears() == CONTRADICTS, "measured before there were margins: it is 5 %"


def test_what_is_the_same_but_not_believed_stays_open(tmp_path: Path, write: Callable) -> None:
    write("inference", "ratios", answers((1.01, 1.04), **interval("control", 1.02, 1.03)), margin=0.05)
    (case,) = found(tmp_path, "C10").outcome.cases
    assert (case.bears, case.why, case.measured) == (OPEN, RESTLESS, "1.025 [1.010, 1.040]")


def test_where_operators_cross_the_same_is_neither_faster_nor_slower(tmp_path: Path, write: Callable) -> None:
    named = {"subject": "mindspore graph tuned", "framework": "mindspore", "lane": "tuned", "passes": "forward"}
    named |= {"million_multiply_adds": 1, "baseline": "pytorch eager tuned"}
    slower, near, faster = interval("ratio", 0.1, 0.2), interval("ratio", 0.96, 0.99), interval("ratio", 2, 3)

    def order(**parameters: float) -> str:
        rows = [
            {**named, "workload": name, "parameters": count, **ratio}
            for name, ends in {"conv2d": (slower, near, faster), "batchnorm2d": (slower, faster, faster)}.items()
            for count, ratio in zip((1, 10, 100), ends, strict=True)
        ]
        write("operators", "ratios", rows, **parameters)
        return found(tmp_path, "C8").outcome.cases[-1].bears

    assert order(margin=0.01) == SUPPORTS
    assert order(margin=0.05) == OPEN, "at 10 parameters the convolution is the same: it is not shown to be slower"


def test_the_figure_of_claims_has_the_band_of_what_is_the_same(tmp_path: Path, write: Callable) -> None:
    write("inference", "ratios", answers((1.01, 1.04), (2, 3)), margin=0.05)
    result = experiments.module("claims").measure(None, SyntheticLab(tmp_path))
    ((caption, figure),) = result.figures.values()
    assert "lies within the pale band shows no difference to speak of" in caption
    assert "the same within 5 %" in {text.get_text() for legend in figure.legends for text in legend.get_texts()}
    (axes,) = figure.axes
    pale = [one for one in axes.collections if to_rgb(one.get_facecolor()[0]) == to_rgb(figures.PALE)]
    assert [tuple(one.get_datalim(axes.transData).intervalx.round(6)) for one in pale] == [(0.95, 1.05)]


def test_nothing_measured_is_no_verdict(tmp_path: Path) -> None:
    every = claims.judged(Results(tmp_path))
    assert {one.verdict for one in every} == {NOT_MEASURED}
    assert all(one.outcome.missing for one in every), "it is said what it would take"


def test_results_of_a_notebook_that_failed_are_not_used(tmp_path: Path, write: Callable) -> None:
    rows = [{"task": "gcn on cora", "subject": "pytorch eager tuned", **interval("first_epoch", 1.5, 2)}]
    write("frameworks", "first_epochs", rows, status="failed")
    assert found(tmp_path, "C4").outcome.cases == []


def test_results_of_an_older_benchlib_without_the_columns_are_not_used(tmp_path: Path, write: Callable) -> None:
    write("frameworks", "learned", [{"task": "gcn on cora", "subject": "mindspore graph tuned"}])
    assert found(tmp_path, "C2").verdict == NOT_MEASURED


def test_time_to_threshold_is_taken_in_the_direction_of_the_claim(tmp_path: Path, write: Callable) -> None:
    def row(task: str, low: float, high: float, who: str = "mindspore graph tuned") -> dict:
        return {"task": task, "subject": who, **interval("threshold_ratio", low, high)}

    write(
        "frameworks",
        "learned",
        [
            row("resnet50 on cifar10", 3, 6),
            row("gcn on cora", 3, 6),
            row("seq2seq on multi30k", 0.4, 0.6),
            row("gcn on cora", 0.1, 0.2, "mindspore eager tuned"),
        ],
    )
    resnet50, gcn, seq2seq = (found(tmp_path, number) for number in ("C1", "C2", "C3"))
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
    told = {"subject": "mindspore graph tuned", "framework": "mindspore", "mode": "graph", "lane": "tuned"}
    tables = {
        "C1": ("frameworks", "learned", [{"task": "resnet50 on cifar10", **interval("threshold_ratio", 2, 3)}]),
        "C8": (
            "operators",
            "ratios",
            [
                {"workload": name, "passes": "forward", "parameters": count, "million_multiply_adds": 1}
                | interval("ratio", *ends)
                for name in ("conv2d", "batchnorm2d")
                for count, ends in ((1, (0.1, 0.2)), (100, (2, 3)))
            ],
        ),
        "C9": ("frameworks", "learned", [{"task": "lstm on imdb", **interval("epoch_ratio", 2, 3)}]),
        "C10": ("inference", "ratios", [{"batch_size": 32, **interval("ratio", 2, 3)}]),
    }
    notebook, name, rows = tables[number]
    write(notebook, name, [{**told, **row} for row in rows])
    assert found(tmp_path, number).outcome.cases, "against PyTorch it is"
    write(notebook, name, [{**told, **row, "baseline": "mindspore eager tuned"} for row in rows])
    judged = found(tmp_path, number)
    assert (judged.verdict, judged.outcome.cases) == (NOT_MEASURED, [])
    assert judged.outcome.missing


def test_data_and_threshold_other_than_the_works_are_in_the_verdict(tmp_path: Path, write: Callable) -> None:
    row = {"subject": "mindspore graph tuned", **interval("threshold_ratio", 0.4, 0.6)}

    def told(data: str, threshold: float) -> tuple[str, str]:
        task = {"workload": "gcn", "data": data, "threshold": threshold}
        write("frameworks", "learned", [{"task": f"gcn on {data}", **row}], tasks=[task])
        judged = found(tmp_path, "C2")
        assert judged.verdict == REPRODUCED
        return in_words(judged), judged.outcome.cases[0].setting

    assert told("cora", 0.7) == ("Reproduced, in direction", "to 70 %")
    assert told("cora", 0.8) == (
        "Reproduced, in direction, to another threshold than the work's",
        "to 80 %; the work: to 70 %",
    )
    assert told("digits_graph", 0.85) == (
        "Reproduced, in direction, on stand-in data",
        "to 85 %; the work: cora to 70 %",
    )


def test_of_two_tasks_of_one_workload_on_one_data_set_each_case_has_its_own_threshold(
    tmp_path: Path, write: Callable
) -> None:
    given = [{"workload": "gcn", "data": "cora", "threshold": 0.7, "hyperparameters": {"hidden": n}} for n in (16, 64)]
    given[1]["threshold"] = 0.8
    names = [f"gcn on cora, hidden={n}, threshold {to}" for n, to in ((16, 0.7), (64, 0.8))]
    row = {"subject": "mindspore graph tuned", **interval("threshold_ratio", 0.4, 0.6)}
    write("frameworks", "learned", [{"task": name, **row} for name in names], tasks=given)
    cases = found(tmp_path, "C2").outcome.cases
    assert [(case.of, case.setting) for case in cases] == [
        (f"{names[0]}, mindspore graph tuned", "to 70 %"),
        (f"{names[1]}, mindspore graph tuned", "to 80 %; the work: to 70 %"),
    ]


def test_a_ratio_whose_control_excludes_1_is_not_believed(tmp_path: Path, write: Callable) -> None:
    def row(**control: float) -> dict:
        named = {"subject": "mindspore graph tuned", "framework": "mindspore", "mode": "graph", "batch_size": 32}
        return {**named, **interval("ratio", 1.1, 1.2), **control}

    write("inference", "ratios", [row(**interval("control", 0.99, 1.01)), row(**interval("control", 1.02, 1.04))])
    judged = found(tmp_path, "C10")
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
    write("inference", "ratios", [row(**interval("control", math.nan, math.nan))])
    unknown = found(tmp_path, "C10")
    assert unknown.verdict == REPRODUCED, "a control that was not measured says nothing"
    assert unknown.outcome.cases[0].control is None


def test_a_ratio_whose_control_was_disturbed_is_not_believed(tmp_path: Path, write: Callable) -> None:
    lost = {**interval("control", math.nan, math.nan), "control_why": DISTURBED}
    named = {"subject": "mindspore graph tuned", "framework": "mindspore", "mode": "graph", "lane": "tuned"}
    row = {**named, "verdict": "faster", **interval("ratio", 1.1, 1.2), **lost}
    write("inference", "ratios", [{**row, "batch_size": 32}])
    gru = {**row, "task": "gru on imdb", "device": "cuda", **interval("ratio", 0.95, 1.05)}
    write("frameworks", "ratios", [gru])
    write("instrument", "knobs", [{**row, "change": "without cudnn_benchmark"}])
    write("batch_size", "ratios", [{**row, "batch_size": 64}])
    sizes = [
        {"subject": "mindspore graph tuned", "batch_size": size, "accelerator_percent": math.nan}
        | {**interval("samples_per_second", size, size + 1), **interval("memory_mib", size, size + 1)}
        for size in (16, 64)
    ]
    write("batch_size", "indicators", sizes)
    within = {"task": "cnn on digits", "subject": "pytorch eager bf16 tuned", "baseline": "pytorch eager tuned"}
    write("modes", "within", [{**within, **interval("within_ratio", 1.1, 1.2), "verdict": "faster"}])
    write("modes", "ratios", [{**row, "task": "cnn on digits"}])
    for number in ("C5", "C10", "C12", "C17", "C18"):
        first = found(tmp_path, number).outcome.cases[0]
        assert (first.bears, first.why, first.control) == (OPEN, NOISY, None), number
        assert NOISY in in_words(found(tmp_path, number)) or found(tmp_path, number).outcome.missing, number


def test_sizes_whose_control_was_disturbed_do_not_tell_where_operators_cross(tmp_path: Path, write: Callable) -> None:
    named = {"subject": "mindspore graph tuned", "framework": "mindspore", "lane": "tuned", "passes": "forward"}
    named |= {"million_multiply_adds": 1, "baseline": "pytorch eager tuned", **interval("control", 0.99, 1.01)}
    slower, faster = interval("ratio", 0.1, 0.2), interval("ratio", 2, 3)

    def order(**control: object) -> str:
        rows = [
            {**named, "workload": name, "parameters": count, **ratio, **control}
            for name, ends in {"conv2d": (slower, slower, faster), "batchnorm2d": (slower, faster, faster)}.items()
            for count, ratio in zip((1, 10, 100), ends, strict=True)
        ]
        write("operators", "ratios", rows)
        return found(tmp_path, "C8").outcome.cases[-1].bears

    assert order() != OPEN
    assert order(**interval("control", math.nan, math.nan), control_why=DISTURBED) == OPEN


def test_first_epoch_in_both_frameworks_and_all_settings(tmp_path: Path, write: Callable) -> None:
    rows = [{"task": "gcn on cora", "subject": "pytorch eager tuned", **interval("first_epoch", 1.5, 2)}]
    write("frameworks", "first_epochs", rows)
    assert found(tmp_path, "C4").verdict == NOT_MEASURED, "one framework is not both"
    rows.append({"task": "gcn on cora", "subject": "mindspore graph tuned", **interval("first_epoch", 0.9, 2)})
    write("frameworks", "first_epochs", rows)
    assert found(tmp_path, "C4").verdict == NO_DIFFERENCE


def test_runs_that_all_failed_are_missing_and_leave_nothing_open(tmp_path: Path, write: Callable) -> None:
    rows = [
        {"task": "gcn on cora", "subject": "pytorch eager tuned", **interval("first_epoch", 1.5, 2)},
        {"task": "gcn on cora", "subject": "mindspore graph tuned", **interval("first_epoch", math.nan, math.nan)},
    ]
    write("frameworks", "first_epochs", rows)
    first = found(tmp_path, "C4")
    assert (first.verdict, len(first.outcome.cases)) == (NOT_MEASURED, 1)
    assert first.outcome.missing == [
        "training runs of the notebook frameworks in mindspore",
        "gcn on cora, mindspore graph tuned, of which no run has two epochs",
    ]
    runs = [{"subject": "p", "learning_rate": rate, "seed": 0, "epoch_s": math.nan} for rate in (0.1, 0.2)]
    write("learning_rate", "runs", runs)
    flat = found(tmp_path, "C15")
    assert (flat.verdict, flat.outcome.cases) == (NOT_MEASURED, [])
    assert "the runs failed" in flat.outcome.missing[0]
    write("learning_rate", "runs", runs[:1])
    assert "two learning rates" in found(tmp_path, "C15").outcome.missing[0], "one rate is not flat"


def test_mixed_precision_and_modes(tmp_path: Path, write: Callable) -> None:
    def row(subject: str, baseline: str, low: float, high: float) -> dict:
        return {
            "task": "cnn on digits",
            "subject": subject,
            "baseline": baseline,
            **interval("within_ratio", low, high),
        }

    within = [
        row("pytorch graph tuned", "pytorch eager tuned", 0.8, 0.9),
        row("pytorch graph bf16 tuned", "pytorch eager bf16 tuned", 0.8, 0.9),
        row("pytorch eager bf16 tuned", "pytorch eager tuned", 1.1, 1.3),
        row("mindspore graph fp16-O2 tuned", "mindspore graph tuned", 1.2, 1.3),
        row("mindspore graph tuned", "mindspore eager tuned", 2, 3),
    ]
    write("modes", "within", within)
    eager = {"task": "cnn on digits", "subject": "mindspore eager tuned", **interval("ratio", 0.1, 0.2)}
    other = {**eager, "subject": "mindspore eager default", "baseline": "mindspore eager tuned"}  # PyTorch cannot run
    write("modes", "ratios", [{**eager, "baseline": "pytorch eager tuned"}, other])
    assert found(tmp_path, "C5").verdict == REPRODUCED
    assert [case.bears for case in found(tmp_path, "C5").outcome.cases] == [SUPPORTS, SUPPORTS]
    modes = found(tmp_path, "C6")
    assert [case.ratio.low for case in modes.outcome.cases] == pytest.approx([2, 5])
    assert modes.verdict == REPRODUCED
    control = interval("control", 1.01, 1.02)
    row = {"task": "cnn on digits", "subject": "mindspore eager tuned", **interval("ratio", 0.1, 0.2), **control}
    write("modes", "ratios", [row])
    assert {case.why for case in found(tmp_path, "C5").outcome.cases} == {RESTLESS}, "of the same comparison"
    write("modes", "ratios", [{**row, "baseline": "pytorch graph tuned", **interval("control", 1, 1)}])
    assert len(found(tmp_path, "C6").outcome.cases) == 1, "PyTorch's graph mode is not what it is compared with"


def test_scaling_combines_independent_intervals_and_wants_more_than_two(tmp_path: Path, write: Callable) -> None:
    def row(who: str, count: int, low: float, high: float) -> dict:
        named = {"subject": f"{who} tuned", "scaling": "strong", "world_size": count}
        return {**named, **interval("efficiency_percent", low, high)}

    write("scaling", "scaling", [row("pytorch eager", 2, 50, 55), row("mindspore graph", 2, 80, 90)])
    two = found(tmp_path, "C7")
    assert two.verdict == NOT_MEASURED
    (case,) = two.outcome.cases
    half = math.hypot(math.log(55 / 50), math.log(90 / 80)) / 2
    assert math.log(case.ratio.high / case.ratio.low) / 2 == pytest.approx(half)
    assert case.files == "key1 key0", "both frameworks' files"
    write("scaling", "scaling", [row("pytorch eager", 4, 50, 55), row("mindspore graph", 4, 80, 90)])
    assert found(tmp_path, "C7").verdict == REPRODUCED


def test_operators_cross_with_the_number_of_parameters(tmp_path: Path, write: Callable) -> None:
    def row(
        count: int, low: float, high: float, work: float = 1, lane: str = "tuned", operator: str = "conv2d"
    ) -> dict:
        named = {"subject": f"mindspore graph {lane}", "framework": "mindspore", "workload": operator, "lane": lane}
        return {**named, "passes": "forward", "parameters": count, "million_multiply_adds": work} | interval(
            "ratio", low, high
        )

    def batchnorm(start: int, end: int) -> list[dict]:
        return [row(start, 0.1, 0.2, operator="batchnorm2d"), row(end, 1.2, 1.3, operator="batchnorm2d")]

    convolution = [row(100, 1.2, 1.3), row(10, 0.1, 0.2, work=999), row(50, 0.5, 2)]
    write("operators", "ratios", convolution)
    alone = found(tmp_path, "C8")
    assert alone.verdict == NOT_MEASURED, "which of two crosses first is a part of it"
    assert "conv2d and batchnorm2d" in alone.outcome.missing[0]
    assert [case.bears for case in alone.outcome.cases] == [SUPPORTS, SUPPORTS], "as few parameters, more work"
    assert [case.files for case in alone.outcome.cases] == ["key1", "key0"]
    write("operators", "ratios", [*convolution, *batchnorm(1, 8)])
    crossed = found(tmp_path, "C8")
    assert crossed.verdict == REPRODUCED
    order = crossed.outcome.cases[-1]
    assert order.of == "forward, mindspore graph tuned, conv2d crosses later than batchnorm2d"
    assert order.measured == (
        "conv2d: PyTorch faster up to 10 parameters, MindSpore from 100 on; "
        "batchnorm2d: PyTorch faster up to 1 parameters, MindSpore from 8 on"
    )
    write("operators", "ratios", [*convolution, *batchnorm(1, 20)])
    assert found(tmp_path, "C8").outcome.cases[-1].bears == OPEN, "both cross somewhere between 10 and 20"
    write("operators", "ratios", [*convolution, *batchnorm(200, 400)])
    late = found(tmp_path, "C8")
    assert (late.verdict, late.outcome.cases[-1].bears) == (NOT_REPRODUCED, CONTRADICTS)
    restless = [{**one, **interval("control", 1.1, 1.2)} for one in batchnorm(200, 400)]
    write("operators", "ratios", [*convolution, *restless])
    assert found(tmp_path, "C8").outcome.cases[-1].bears == OPEN, "its ratios are not believed"
    write("operators", "ratios", [row(100, 0.2, 0.3), row(1, 0.1, 0.2)])
    assert found(tmp_path, "C8").verdict == NOT_REPRODUCED
    write("operators", "ratios", [row(100, 0.2, 0.3, work=1), row(100, 0.1, 0.2, work=9)])
    assert found(tmp_path, "C8").outcome.cases == [], "one number of parameters crosses nothing"
    write("operators", "ratios", [row(100, 0.2, 0.3, lane="default"), row(1, 0.1, 0.2, lane="default")])
    default = found(tmp_path, "C8")
    assert default.verdict == NOT_MEASURED, "as installed its convolutions are not what was compared"
    assert default.outcome.missing, "and it is said what it would take"


def test_inference_is_judged_in_graph_mode_only(tmp_path: Path, write: Callable) -> None:
    def row(mode: str, low: float, high: float) -> dict:
        named = {"subject": f"mindspore {mode} tuned", "framework": "mindspore", "mode": mode, "batch_size": 32}
        return {**named, **interval("ratio", low, high)}

    write("inference", "ratios", [row("eager", 0.1, 0.2)], workload="resnet50_inference", data="random")
    assert found(tmp_path, "C10").verdict == NOT_MEASURED
    write("inference", "ratios", [row("eager", 0.1, 0.2), row("graph", 1.1, 1.2)])
    assert found(tmp_path, "C10").verdict == REPRODUCED
    assert found(tmp_path, "C10").outcome.cases[0].published == 1.740


def test_claims_about_gpus_are_judged_on_gpus_only(tmp_path: Path, write: Callable) -> None:
    def row(device: str, **more: object) -> dict:
        named = {"subject": "pytorch eager tuned", "framework": "pytorch", "device": device, "task": "gru on imdb"}
        return {**named, **interval("ratio", 2, 3), **more}

    gru_in_mindspore = {"subject": "mindspore graph tuned", "framework": "mindspore"}

    for device in ("cpu", "cuda"):
        write("devices", "ratios", [row(device)], workload="cnn", data="digits")
        write("frameworks", "ratios", [row(device), row(device, **gru_in_mindspore)])
        change = "without cudnn_benchmark" if device == "cuda" else "lane default"
        write("instrument", "knobs", [row(device, change=change)])
        verdicts = [found(tmp_path, number).outcome.cases for number in ("C11", "C17", "C18")]
        if device == "cpu":
            assert verdicts == [[], [], []]
    gpu, gru, autotuned = verdicts
    assert (gpu[0].bears, gpu[0].published) == (SUPPORTS, 2.843)
    assert [case.bears for case in gru] == [CONTRADICTS], (
        "twice as fast is not alike; PyTorch's modes are one framework"
    )
    assert autotuned[0].bears == CONTRADICTS, "faster without it"
    assert autotuned[0].ratio.low == pytest.approx(1 / 3)
    write("instrument", "knobs", [row("cuda", change="without cudnn_benchmark", **interval("ratio", 0.91, 0.92))])
    told = in_words(found(tmp_path, "C18"))
    assert told.startswith("Reproduced, but not tested: how much is much"), "9 % may not be"
    write("instrument", "knobs", [row("cuda", change="without cudnn_benchmark", **interval("ratio", 0.97, 0.98))])
    assert in_words(found(tmp_path, "C18")).startswith("Not reproduced (the same within 5 %)"), "2 % is not"


def test_tables_that_the_notebook_did_not_write_are_not_used(tmp_path: Path, write: Callable) -> None:
    row = {"task": "gcn on cora", "subject": "mindspore graph tuned", **interval("threshold_ratio", 0.4, 0.6)}
    write("frameworks", "learned", [row])
    assert found(tmp_path, "C2").verdict == REPRODUCED
    path = tmp_path / "tables" / "frameworks_learned.csv"
    path.write_text(path.read_text().replace("0.4", "4.4"))
    assert found(tmp_path, "C2").verdict == NOT_MEASURED


def test_training_of_three_workloads_wants_all_three(tmp_path: Path, write: Callable) -> None:
    names = ("googlenet on cifar10", "lstm on imdb", "bert on text")
    rows = [{"task": name, "subject": "mindspore graph tuned", **interval("epoch_ratio", 1.1, 1.2)} for name in names]
    write("frameworks", "learned", rows[:2])
    assert found(tmp_path, "C9").verdict == NOT_MEASURED
    write("frameworks", "learned", rows)
    assert found(tmp_path, "C9").verdict == REPRODUCED
    assert [case.published for case in found(tmp_path, "C9").outcome.cases] == [1.198, 1.100, 1.881]


def metric_rows(values: dict[float, tuple[float, float, float]], runs: int = 3) -> list[dict]:
    told = {"subject": "pytorch eager tuned", "runs": runs, "failed": 0}
    return [
        {**told, "learning_rate": rate, "accuracy_percent": mean, "lowest": low, "highest": high}
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
    rows = metric_rows({0.01 * 10.0**at: ends for at, ends in enumerate(values)})
    told = {"workload": "cnn", "data": "cifar10", "epochs": 10}
    write("learning_rate", "metric", rows, **told)
    judged = found(tmp_path, "C14")
    assert [case.bears for case in judged.outcome.cases][:1] == [bears] * (bears is not None)
    assert judged.outcome.missing, "so coarse a grid does not say whether it is near 0.01"
    if bears == SUPPORTS:
        write("learning_rate", "metric", [{**row, "runs": 1} for row in rows], **told)
        one_seed = found(tmp_path, "C14")
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
    told = {"workload": "cnn", "data": "cifar10"}
    write("learning_rate", "metric", metric_rows(values), epochs=10, **told)
    judged = found(tmp_path, "C14")
    assert judged.outcome.cases[0].bears == SUPPORTS, "it rises and falls"
    assert judged.verdict == verdict
    write("learning_rate", "metric", metric_rows(values), epochs=3, **told)
    shorter = found(tmp_path, "C14")
    assert "10 epochs" in shorter.outcome.missing[0]
    if verdict == REPRODUCED:
        assert shorter.verdict == NOT_MEASURED, "after three epochs it is another question"
        write("learning_rate", "metric", metric_rows(values | {0.005: (69.5, 68.0, 70.0)}), epochs=10, **told)
        assert found(tmp_path, "C14").outcome.cases[1].bears == OPEN, "seeds do not tell 0.005 from 0.01"
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
    ratio = rules.FLAT / rules.ALIKE  # the margin of the claim about the GRU is wider
    low, high = (end / ratio if end > rules.FLAT else end for end in ends)
    row = {"subject": "mindspore graph tuned", "device": "cuda", "task": "gru on imdb", "ratio": 1.07}
    write("frameworks", "ratios", [{**row, "ratio_low": low, "ratio_high": high}])
    judged = found(tmp_path, "C17")
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
    rows = [
        {
            "subject": "p",
            "learning_rate": rate,
            "seed": seed,
            "epoch_s": (1 if rate == 0.1 else factor) * (1 + noise * seed * (rate > 0.1)),
        }
        for rate in (0.1, 0.2)
        for seed in range(4)
    ]
    write("learning_rate", "runs", rows, workload="cnn", data="digits")
    judged = found(tmp_path, "C15")
    assert judged.verdict == verdict
    assert in_words(judged).startswith("No difference beyond a factor of 1.1") == (verdict == NO_DIFFERENCE)


def test_growth_with_the_batch(tmp_path: Path, write: Callable) -> None:
    def row(batch: int, speed: float, memory: float, gpu: float = math.nan) -> dict:
        named = {"subject": "pytorch eager tuned", "batch_size": batch}
        values = {"samples_per_second": speed, "memory_mib": memory}
        values |= {"accelerator_memory_mib": gpu * 10, "accelerator_percent": gpu}
        return named | {name: end for each, value in values.items() for name, end in _around(each, value).items()}

    told = {"workload": "cnn", "data": "digits"}
    write("batch_size", "indicators", [row(4, 10, 100), row(64, 50, 200)], **told)
    on_cpu = found(tmp_path, "C12")
    assert on_cpu.verdict == NOT_MEASURED, "the utilisation of a GPU is a part of it"
    assert [case.bears for case in on_cpu.outcome.cases] == [SUPPORTS, SUPPORTS]
    write("batch_size", "indicators", [row(4, 10, 100), row(64, 50, 100.1)], **told)
    assert [case.bears for case in found(tmp_path, "C12").outcome.cases] == [SUPPORTS, OPEN], "memory has an interval"
    write("batch_size", "indicators", [row(4, 10, 100, 5), row(64, 50, 10, 50)], **told)
    on_gpu = found(tmp_path, "C12")
    assert on_gpu.verdict == REPRODUCED, "the host's memory is not what it is about"
    assert len(on_gpu.outcome.cases) == 3
    control = {"subject": "mindspore graph tuned", **interval("ratio", 1, 2), **interval("control", 1.02, 1.03)}
    write("batch_size", "ratios", [{**control, "batch_size": 16}], **told)
    assert found(tmp_path, "C12").verdict == REPRODUCED, "another comparison's"
    write("batch_size", "ratios", [{**control, "batch_size": 64}], **told)
    assert [case.why for case in found(tmp_path, "C12").outcome.cases] == [RESTLESS, "", ""], "speed only"


def test_memory_that_was_measured_first_in_too_few_processes_is_named(tmp_path: Path, write: Callable) -> None:
    def row(batch: int, firsts: int) -> dict:
        no_gpu = {"accelerator_memory_mib": math.nan, "accelerator_percent": math.nan}
        named = {"subject": "pytorch eager tuned", "batch_size": batch, "first_in_process": firsts, **no_gpu}
        ends = _around("memory_mib", 100.0 * batch)
        return (
            named
            | _around("samples_per_second", batch)
            | (ends if firsts > 1 else {**ends, "memory_mib_low": math.nan})
        )

    write("batch_size", "indicators", [row(4, 2), row(64, 1)], workload="cnn", data="digits")
    speed, memory = found(tmp_path, "C12").outcome.cases
    assert (speed.bears, memory.bears) == (SUPPORTS, OPEN)
    assert memory.why.startswith(NO_INTERVAL)
    assert memory.why.endswith("measured the size first, 2 at batch 4 and 1 at batch 64")
    assert "which are independent" not in found(tmp_path, "C12").rule, "the same processes may have measured both"


def _around(name: str, value: float) -> dict[str, float]:
    return {name: value, f"{name}_low": 0.95 * value, f"{name}_high": 1.05 * value}


def test_sentence_has_the_hardware_in_its_verdict(tmp_path: Path, write: Callable) -> None:
    row = {"task": "gcn on cora", "subject": "mindspore graph tuned", **interval("threshold_ratio", 0.4, 0.6)}
    lab = SyntheticLab(tmp_path)
    files = lab.compare([Condition(workload="gcn")], precision=0.03, budget_s=1, block_s=0.1).files()
    tasks = [{"workload": "gcn", "data": "cora", "threshold": 0.7}]
    write("frameworks", "learned", [{**row, "measurements": " ".join(files)}], tasks=tasks)
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
    assert "claims_ratios.svg" in " ".join(summary["figures"])
    for file in files:
        lab.store.path(file).unlink()
    told = experiments.module("claims").measure(None, lab).findings()[1]
    assert "on a machine that is no longer known: the files of its measurements are gone" in told


def ran(notebook: str, lab: SyntheticLab, **changes: object) -> None:
    """Run an experiment of quick, with some parameters changed, on a lab that makes its measurements up; write its
    tables and its record as the suite does.
    """
    values = yaml.safe_load((ROOT / "parameters" / "quick" / f"{notebook}.yaml").read_text(encoding="utf-8"))
    module = experiments.module(notebook)
    parameters = module.Parameters(**values | changes)
    made = module.measure(parameters, lab).tables()
    paths = [
        path
        for name, (caption, frame) in made.items()
        for path in tables.save(frame, lab.folder / "tables", f"{notebook}_{name}", caption)
    ]
    files = {path.relative_to(lab.folder).as_posix(): records.digest(path.read_bytes()) for path in paths}
    record = {"status": "succeeded", "files": files, "parameters": parameters.model_dump(mode="json")}
    (lab.folder / "notebooks").mkdir(exist_ok=True)
    (lab.folder / "notebooks" / f"{notebook}.json").write_text(json.dumps(record))


def bearings(folder: Path, number: str) -> list[tuple[str, str]]:
    return [(case.of, case.bears) for case in found(folder, number).outcome.cases]


def test_verdicts_on_the_tables_that_the_notebook_frameworks_writes(tmp_path: Path) -> None:
    lstm = {"workload": "lstm", "data": "digits_sequence", "hyperparameters": {}, "batch_size": 32}
    lstm |= {"learning_rate": 0.005, "train_samples": None, "epochs": 3, "most_epochs": 6, "threshold": 0.7}
    path = ROOT / "parameters" / "quick" / "frameworks.yaml"
    tasks = [yaml.safe_load(path.read_text(encoding="utf-8"))["tasks"][0], lstm]
    lab = SyntheticLab(tmp_path, metric=lambda condition, seed, epoch: 1.0, first=lambda condition: 9.0)
    ran("frameworks", lab, tasks=tasks)
    gcn = found(tmp_path, "C2")
    assert (gcn.verdict, gcn.outcome.missing) == (REPRODUCED, []), "MindSpore takes three times as long"
    assert in_words(gcn) == "Reproduced, in direction, on stand-in data"
    (case,) = gcn.outcome.cases
    assert (case.of, case.setting) == (
        "gcn on digits_graph, mindspore graph tuned",
        "to 85 %; the work: cora to 70 %",
    )
    assert case.ratio.estimate == pytest.approx(3, rel=0.1)
    assert case.files, "it can be traced"
    of_lstm = found(tmp_path, "C9")
    assert of_lstm.verdict == NOT_REPRODUCED
    assert of_lstm.outcome.cases[0].setting == "batch 32, 3 epochs; the work: imdb"
    assert of_lstm.outcome.missing == [
        f"{name} trained in both frameworks (PROFILE=full)" for name in ("googlenet", "bert")
    ]
    assert found(tmp_path, "C4").verdict == REPRODUCED
    assert len(found(tmp_path, "C4").outcome.cases) == 4, "two workloads in two frameworks"
    mindspore = [{"framework": "mindspore", "mode": mode, "lane": "tuned"} for mode in ("eager", "graph")]
    lab = SyntheticLab(tmp_path, metric=lambda condition, seed, epoch: 1.0)
    ran("frameworks", lab, subjects=mindspore, tasks=tasks)
    assert [found(tmp_path, number).outcome.cases for number in ("C2", "C9")] == [[], []], "no PyTorch there"


def test_verdicts_on_the_tables_that_the_notebook_modes_writes(tmp_path: Path) -> None:
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
    mixed = found(tmp_path, "C5")
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


def test_verdicts_on_the_tables_that_operators_and_inference_write(tmp_path: Path) -> None:
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
    crossed = found(tmp_path, "C8")
    assert crossed.verdict == REPRODUCED
    assert crossed.outcome.cases[-1].measured == (
        "conv2d: PyTorch faster up to 2,320 parameters, MindSpore from 9,280 on; "
        "batchnorm2d: PyTorch faster up to 32 parameters, MindSpore from 64 on"
    )
    subjects = [{"framework": name, "mode": "graph", "lane": "tuned"} for name in ("pytorch", "mindspore")]
    ran("inference", SyntheticLab(tmp_path), subjects=subjects)
    answers = found(tmp_path, "C10")
    assert answers.verdict == NOT_REPRODUCED
    assert answers.outcome.cases[0].setting == "images of 32 x 32"


def test_verdicts_on_the_tables_that_the_learning_rates_write(tmp_path: Path) -> None:
    rates = published.tried("learning_rate")
    subject = {"framework": "pytorch", "mode": "eager", "lane": "tuned", "learning_rates": rates}
    longer = {"subjects": [subject], "epochs": 10, "most_epochs": 20, "seeds": [0, 1, 2]}

    def metric(condition: Condition, seed: int, epoch: int) -> float:
        return 0.9 - 0.1 * abs(math.log(condition.learning_rate / 0.01)) + 0.001 * seed

    ran("learning_rate", SyntheticLab(tmp_path, metric=metric, step=lambda condition: 0.01), **longer)
    best = found(tmp_path, "C14")
    assert in_words(best) == "Reproduced, on stand-in data"
    assert [case.measured for case in best.outcome.cases][1] == "the maximum is above 0.005 and below 0.03"
    assert found(tmp_path, "C15").verdict == REPRODUCED
    ran("learning_rate", SyntheticLab(tmp_path, metric=metric, fails=lambda condition: True), **longer)
    assert [found(tmp_path, number).verdict for number in ("C14", "C15")] == [NOT_MEASURED] * 2
    assert all(found(tmp_path, number).outcome.missing for number in ("C14", "C15"))


def as_many_as_in_full(write: Callable) -> None:
    """Rows as the tables of the profile full have them: 150 ratios."""
    on = ("gcn on cora", "gru on imdb", "cnn on cifar10", "lstm on imdb", "seq2seq on multi30k", "resnet50 on cifar10")
    on += ("googlenet on cifar10", "bert on pydoc")
    control = interval("control", 0.98, 1.01)
    kinds = [f"{p} tuned" for p in ("bf16", "fp16")]
    pairs = [(f"pytorch {mode} {kind}", f"pytorch {mode} tuned") for mode in ("eager", "graph") for kind in kinds]
    mixed = [f"{p}-O{level} tuned" for p in ("fp16", "bf16") for level in (1, 2, 3)]
    pairs += [(f"mindspore graph {kind}", "mindspore graph tuned") for kind in mixed]
    pairs += [("mindspore graph tuned", "mindspore eager tuned")]
    write(
        "modes",
        "within",
        [
            {"task": task, "subject": who, "baseline": baseline, **interval("within_ratio", 1.05, 1.15)}
            for task in on
            for who, baseline in pairs
        ],
    )
    write(
        "modes",
        "ratios",
        [{"task": task, "subject": "mindspore eager tuned", **interval("ratio", 0.1, 0.2), **control} for task in on],
    )
    both = ("pytorch eager tuned", "mindspore graph tuned")
    write(
        "frameworks",
        "first_epochs",
        [{"task": task, "subject": who, **interval("first_epoch", 1.5, 2)} for task in on for who in both],
    )
    named = {"subject": "mindspore graph tuned", "framework": "mindspore", "lane": "tuned", "million_multiply_adds": 1}
    write(
        "operators",
        "ratios",
        [
            {**named, "workload": name, "passes": passes, "parameters": count, **interval("ratio", 0.5, 2), **control}
            for name in ("conv2d", "linear", "batchnorm2d")
            for passes in ("forward", "forward+backward")
            for count in (9216, 2359296)
        ],
    )
    write(
        "frameworks",
        "learned",
        [
            {"task": task, "subject": "mindspore graph tuned", **interval("epoch_ratio", 0.2, 0.3)}
            | interval("threshold_ratio", 0.2, 0.3)
            for task in on
        ],
    )
    accelerator = dict.fromkeys(("accelerator_percent", "accelerator_memory_mib"), math.nan)
    write(
        "batch_size",
        "indicators",
        [
            {"subject": f"{who} tuned", "batch_size": batch, **accelerator}
            | interval("samples_per_second", batch, 1.1 * batch)
            | interval("memory_mib", 300 + batch, 301 + batch)
            for who in ("pytorch eager", "pytorch graph", "mindspore eager", "mindspore graph")
            for batch in (4, 1024)
        ],
        workload="cnn",
        data="cifar10",
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
        points += sum(line.get_marker() in set("osD") and len(line.get_xdata()) == 1 for line in axes.lines)
        points -= sum(line.get_markerfacecolor() == "none" for line in axes.lines)
    assert points == len(ratios), "each case is on one of them"
    assert result.show_figures().data.count("<img") == len(result.figures)


def test_an_interval_that_runs_out_of_the_figure_ends_in_an_arrow(tmp_path: Path, write: Callable) -> None:
    named = {"subject": "mindspore graph tuned", "framework": "mindspore", "lane": "tuned"}
    named |= {"workload": "conv2d", "passes": "forward+backward", "million_multiply_adds": 1}
    wide = [interval("ratio", 1e-4, 1e4), interval("ratio", 0.9, 1.1)]
    rows = [{**named, "parameters": count, **ratio} for count, ratio in zip((10, 1000), wide, strict=True)]
    write("operators", "ratios", rows)
    result = experiments.module("claims").measure(None, SyntheticLab(tmp_path))
    ((caption, figure),) = result.figures.values()
    (axes,) = figure.axes
    ends = {line.get_marker(): line.get_xdata()[0] for line in axes.lines if line.get_marker() in ("<", ">")}
    low, high = axes.get_xlim()
    assert ends == {"<": low, ">": high}
    assert "An arrow: the interval goes on." in caption


def test_a_claim_of_which_some_cases_show_a_difference_is_said_to_be_undecided() -> None:
    (claim, *_) = published.claims()

    def said(*bears: str) -> bool:
        outcome = Outcome([Case("x", one, "1", "") for one in bears])
        return undecided(Judged(claim, outcome, judge(outcome), ""))

    assert said(SUPPORTS, OPEN)
    assert not said(OPEN, OPEN), "that is what 'no difference shown' says"
    assert not said(SUPPORTS)
    assert not said(SUPPORTS, OPEN, CONTRADICTS), "that one is decided"


def test_the_rules_are_shown_with_what_they_are_asked_of(tmp_path: Path) -> None:
    told = [one.rule for one in claims.judged(Results(tmp_path))]
    assert len(set(told)) == len(told)
    assert told[0].endswith("Here faster: mindspore; names: resnet50.")


def test_tables_and_measurements_are_read_once(
    tmp_path: Path, write: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = SyntheticLab(tmp_path)
    files = lab.compare([Condition(workload="gcn")], precision=0.03, budget_s=1, block_s=0.1).files()
    row = {"task": "gcn on cora", "subject": "mindspore graph tuned", "measurements": " ".join(files)}
    write("frameworks", "learned", [{**row, **interval("threshold_ratio", 0.4, 0.6), **interval("epoch_ratio", 1, 2)}])
    write("frameworks", "first_epochs", [{**row, **interval("first_epoch", 1, 2)}])
    record = json.loads((tmp_path / "notebooks" / "frameworks.json").read_text())
    record["files"] |= {f"measurements/{key}.parquet": "" for key in files}
    (tmp_path / "notebooks" / "frameworks.json").write_text(json.dumps(record))
    read: list[str] = []
    own, documents = pd.read_csv, Store.documents
    monkeypatch.setattr(pd, "read_csv", lambda path: read.append(path.name) or own(path))
    monkeypatch.setattr(Store, "documents", lambda self, key: read.append(key) or documents(self, key))
    monkeypatch.setattr(records, "digest", lambda value, of=records.digest: read.append("digest") or of(value))
    result = experiments.module("claims").measure(None, lab)
    for name in ("verdicts", "cases", "rules"):
        result.show_table(name)
    assert result.tables() is result.tables(), "each is shown by a cell of its own"
    result.findings()
    assert sorted(read) == sorted(["digest", "digest", *files, "frameworks_first_epochs.csv", "frameworks_learned.csv"])


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
    judged = found(tmp_path, number)
    assert (judged.verdict, judged.outcome.cases) == (NOT_MEASURED, [])
    assert any(NOISY in one for one in judged.outcome.missing)
    result = experiments.module("claims").measure(None, SyntheticLab(tmp_path))
    verdicts = result.tables()["verdicts"][1].set_index("claim")
    assert NOISY in verdicts.loc[number, "takes"]


def test_a_disturbed_ratio_of_a_gpu_or_of_a_group_is_not_measured(tmp_path: Path, write: Callable) -> None:
    lost = {**interval("ratio", math.nan, math.nan), "verdict": DISTURBED, "device": "cuda"}
    row = {"subject": "pytorch eager tuned", "framework": "pytorch", **lost}
    write("devices", "ratios", [row])
    gru = {"subject": "mindspore graph tuned", "framework": "mindspore", "task": "gru on imdb"}
    write("frameworks", "ratios", [{**row, **gru}])
    write("instrument", "knobs", [{**row, "change": "without cudnn_benchmark"}])
    group = {"scaling": "strong", "world_size": 4, "verdict": DISTURBED}
    both = [{**group, **interval("efficiency_percent", 50, 55), "subject": "pytorch eager tuned", "verdict": "faster"}]
    both += [{**group, **interval("efficiency_percent", math.nan, math.nan), "subject": "mindspore graph tuned"}]
    write("scaling", "scaling", both)
    for number in ("C7", "C11", "C17", "C18"):
        judged = found(tmp_path, number)
        assert (judged.verdict, judged.outcome.cases) == (NOT_MEASURED, []), number
        assert NOISY in judged.outcome.missing[0], number
