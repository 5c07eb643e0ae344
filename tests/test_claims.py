"""The published claims are whole, and each rule finds what was planted, by its interval."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from frames import PYTORCH, UNKNOWN, row
from pydantic import ValidationError

from benchlib import workloads
from benchlib.analysis import frame as tidy
from benchlib.analysis.comparison import DISTURBED
from benchlib.analysis.statistics import Interval
from benchlib.literature import judge, works
from benchlib.literature.evidence import (
    CONTRADICTS,
    NO_INTERVAL,
    NOISY,
    ONE_SEED,
    OPEN,
    RESTLESS,
    SUPPORTS,
    TOO_WIDE,
    WITHIN_OR_BEYOND,
    bearing,
    find,
)
from benchlib.literature.verdicts import NO_DIFFERENCE, NOT_MEASURED, NOT_REPRODUCED, REPRODUCED, verdict_of

pytestmark = pytest.mark.usefixtures("one_kind_of_figure")

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared" / "published.yaml"
GRAPH = "mindspore graph tuned"
TENSORFLOW, MXNET, JAX = (f"{name} graph tuned" for name in ("tensorflow", "mxnet", "jax"))
SLOW, NEAR, FAST = (0.1, 0.2), (0.96, 0.99), (2.0, 3.0)
LOST = {"ends": UNKNOWN, "why": DISTURBED}
NO_CONTROL = {"control": UNKNOWN, "control_why": DISTURBED}


@dataclass
class Found:
    cases: list[dict[str, Any]]
    missing: list[str]

    @property
    def bears(self) -> list[str]:
        return [case["bears"] for case in self.cases]

    @property
    def verdict(self) -> str:
        return verdict_of(self.cases, self.missing)


def as_frames(**rows: list[dict]) -> dict[str, pd.DataFrame]:
    """By notebook, the frame of its rows."""
    files = {name: [{"files": f"key{n}", **one} for n, one in enumerate(each)] for name, each in rows.items()}
    return {name: tidy.of_rows(each) for name, each in files.items()}


def found(number: str, **rows: list[dict]) -> Found:
    claim = next(one for one in works.claims() if one.id == number)
    return Found(*find(claim, as_frames(**rows)))


def judged(number: str, places: dict[str, str] | None = None, **rows: list[dict]) -> pd.Series:
    return judge(as_frames(**rows), places).claims.set_index("claim").loc[number]


def answers(*ends: tuple[float, float], **more: Any) -> list[dict]:
    """Rows of the notebook inference."""
    columns = {"on": "resnet50_inference on random", "hyperparameters": '{"image_size": 32}', **more}
    return [row("throughput_ratio", pair, batch_size=2**at, **columns) for at, pair in enumerate(ends)]


def operator(name: str, parameters: int, ends: tuple[float, float], **more: Any) -> dict:
    """A row of the notebook operators."""
    columns = {"million_multiply_adds": 1.0, "hyperparameters": '{"passes": "forward"}', **more}
    return row("throughput_ratio", ends, on=f"{name} on random", parameters=parameters, **columns)


def test_every_claim_asks_for_what_there_is() -> None:
    assert [one.id for one in works.claims()] == [f"C{number}" for number in range(1, 19)]
    for claim in works.claims():
        assert claim.source in works.sources()
        for part in claim.rule.rows:
            assert (ROOT / "notebooks" / f"{part.notebook}.ipynb").is_file()
            assert part.quantity in tidy.QUANTITIES
    for one in [*works.works()["thresholds"], *works.works()["training"]]:
        name = {"aclImdb_v1": "imdb", "multi30k en-fr": "multi30k"}.get(one["data"], one["data"])
        assert works.sources()[one["source"]].used[one["workload"]] == name
        workloads.load(one["workload"])
    assert all(len(table.of(None)) for table in works.published().values())


@pytest.mark.skipif(not SHARED.is_file(), reason="THE COLLECTED FIGURES ARE ABSENT: ours are not compared with them")
def test_figures_are_those_that_were_collected() -> None:
    theirs, ours = yaml.safe_load(SHARED.read_text(encoding="utf-8")), works.works()
    assert {name: ours[name] for name in set(ours) - {"claims", "sources"}} == {
        name: theirs[name] for name in set(theirs) - {"claims", "sources"}
    }
    for name, source in theirs["sources"].items():
        assert {key: value for key, value in ours["sources"][name].items() if key not in {"short", "used"}} == source
    for one, claim in zip(theirs["claims"], works.claims(), strict=True):
        values = list(one["published"].values()) if "published" in one else [one["ratio"]] if "ratio" in one else []
        assert (claim.id, claim.source, list(claim.published.values())) == (one["id"], one["source"], values)
        assert bool(claim.doubt) >= ("doubt" in one)


def test_a_claim_is_a_row_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"notebook": "devices", "quantity": "throughput_ratio", "own": "{threads} threads", "inverse": True}
    rows |= {"where": "threads == 4 and baseline_threads == 1", "needs": {"four threads": ""}}
    claim = {"id": "C99", "source": "yin2020", "device": "i7-8650U", "says": "More threads are no faster."}
    with pytest.raises(ValidationError, match=r"rule\.rows\.0\.were"):
        works.Claim(**claim, rule={"says": "One over four.", "rows": [{**rows, "were": ""}]})
    made = works.Claim(**claim, rule={"says": "One over four.", "rows": [rows]})
    monkeypatch.setattr(works, "claims", lambda: [made])
    of = functools.partial(row, "throughput_ratio", (1.5, 2), PYTORCH, on="cnn on digits", baseline_threads=1)
    assert found("C99", devices=[of(threads=2)]).missing == ["four threads"]
    (case,) = found("C99", devices=[of(threads=2), of(threads=4)]).cases
    assert (case["case"], case["claimed_ratio_low"], case["bears"]) == ("cnn on digits, 4 threads", 0.5, CONTRADICTS)


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
    assert verdict_of([{"bears": one} for one in bears], missing) == verdict


@pytest.mark.parametrize(
    ("ends", "alike", "bears"),
    [
        ((1.01, 1.2), None, (SUPPORTS, "")),
        ((0.8, 0.99), None, (CONTRADICTS, "")),
        ((0.9, 1.1), None, (OPEN, "")),
        (UNKNOWN, None, (OPEN, NO_INTERVAL)),
        ((0.96, 1.04), None, (CONTRADICTS, "the same within 5 %")),
        ((1.01, 1.05), None, (CONTRADICTS, "the same within 5 %")),
        ((0.96, 0.99), None, (CONTRADICTS, "the same within 5 %")),
        ((0.95, 1.05), 1.1, (SUPPORTS, "")),
        ((1.02, 1.08), 1.1, (SUPPORTS, "")),
        ((1.2, 1.3), 1.1, (CONTRADICTS, "")),
        ((1.05, 1.2), 1.1, (OPEN, WITHIN_OR_BEYOND)),
        ((0.8, 1.3), 1.1, (OPEN, TOO_WIDE)),
        (UNKNOWN, 1.1, (OPEN, NO_INTERVAL)),
    ],
)
def test_a_ratio_bears_by_its_interval(ends: tuple[float, float], alike: float | None, bears: tuple[str, str]) -> None:
    assert bearing(Interval(sum(ends) / 2, *ends, 5), 0.05, alike) == bears


def test_a_verdict_says_what_it_is_short_of() -> None:
    assert judged("C10", inference=answers((1.01, 1.04)))["verdict_here"].startswith(
        "Not reproduced (the same within 5 %)"
    )
    many = judged("C10", inference=answers((1.01, 1.04), (0.99, 1.01), (0.5, 0.6), (1.2, 1.3)))
    assert (many["verdict"], "2 the same within 5 %" in many["measured_here"]) == (NOT_REPRODUCED, True)
    assert [found("C10", inference=answers((1.01, 1.04), margin=at)).bears for at in (0.03, 0.04)] == [
        [SUPPORTS],
        [CONTRADICTS],
    ], "the margin is the notebook's"
    rows = [row("threshold_ratio", (0.4, 0.6), on=f"gcn on {name}", threshold=at) for name, at in (("cora", 0.8),)]
    assert "to another threshold than the work's" in judged("C2", frameworks=rows)["verdict_here"]
    rows = [row("threshold_ratio", (0.4, 0.6), on="gcn on digits_graph", threshold=0.7)]
    assert judged("C2", frameworks=rows)["here"].startswith("in direction, on stand-in data: gcn on digits_graph")
    same = judged("C2", frameworks=[row("threshold_ratio", (0.4, 0.6), threshold=0.7)], places={"key0": "2 cores"})
    assert same["verdict_here"] == "Reproduced, in direction, on 2 cores"
    rows = [row("throughput_ratio", ends, on="gru on imdb", device="cuda") for ends in ((0.8, 1.3), (1, 1.1))]
    flat = judged("C17", frameworks=rows)
    assert (flat["verdict"], flat["undecided"]) == (NO_DIFFERENCE, True), "that confirms nothing"
    assert "nor excluded" in flat["verdict_here"]
    assert judged("C10", inference=answers((1.1, 1.2), (0.9, 1.1)))["undecided"], "some show a difference"
    assert not judged("C10", inference=answers((0.9, 1.1)))["undecided"]
    assert not judged("C10", inference=answers((0.5, 0.6), (0.9, 1.1), (2, 3)))["undecided"], "it is decided"


def test_nothing_measured_is_no_verdict() -> None:
    every = judge({})
    assert set(every.claims["verdict"]) == {NOT_MEASURED}
    assert (every.claims["takes"] != "–").all(), "it is said what it would take"
    assert (len(every.cases), every.pictures(), next(every.findings())) == (
        0,
        {},
        "Of 18 published claims: 18 not measured here.",
    )


def test_a_picture_has_all_ratios_of_a_claim_beside_the_published() -> None:
    every = judge(as_frames(inference=answers(*[(1.1, 1.2)] * 30), operators=[operator("conv2d", 10, FAST)]))
    pictures = every.pictures()
    assert sum(len(one.shown(None)) for one in pictures.values()) == every.cases["claimed_ratio"].notna().sum() == 30
    for picture in pictures.values():
        caption, figure = picture.draw(None)
        assert "C10" in caption
        assert figure.get_figheight() < 9


def test_ratios_are_taken_in_the_direction_of_the_claim() -> None:
    threshold = functools.partial(row, "threshold_ratio")
    rows = [threshold((3, 6), on="resnet50 on cifar10"), threshold((3, 6)), threshold((0.4, 0.6), on="seq2seq on x")]
    rows.append(threshold(SLOW, "mindspore eager tuned"))
    resnet50, gcn, seq2seq = (found(number, frameworks=rows) for number in ("C1", "C2", "C3"))
    assert (resnet50.verdict, resnet50.cases[0]["published_ratio"]) == (REPRODUCED, 5.03)
    assert (gcn.verdict, len(gcn.cases)) == (NOT_REPRODUCED, 1), "eager mode is not what the claim is about"
    assert seq2seq.cases[0]["claimed_ratio_low"] == pytest.approx(1 / 0.6)
    assert seq2seq.cases[0]["measurements"] == "key2"
    names = ("googlenet on cifar10", "lstm on imdb", "bert on text")
    rows = [row("epoch_ratio", (1.1, 1.2), on=name, batch_size=32, epochs=3) for name in names]
    assert found("C9", frameworks=rows[:2]).verdict == NOT_MEASURED
    whole = found("C9", frameworks=rows)
    assert (whole.verdict, [case["published_ratio"] for case in whole.cases]) == (REPRODUCED, [1.198, 1.1, 1.881])
    assert found("C10", inference=answers(SLOW, subject="mindspore eager tuned")).cases == []


@pytest.mark.parametrize("number", ["C1", "C8", "C9", "C10"])
def test_mindspore_against_itself_is_not_mindspore_against_pytorch(number: str) -> None:
    def rows(**baseline: str) -> dict[str, list[dict]]:
        trained = {"C1": ("threshold_ratio", "resnet50 on cifar10"), "C9": ("epoch_ratio", "lstm on imdb")}
        if number in trained:
            quantity, on = trained[number]
            return {"frameworks": [row(quantity, FAST, on=on, batch_size=32, epochs=3, **baseline)]}
        if number == "C10":
            return {"inference": answers(FAST, **baseline)}
        return {"operators": [operator("conv2d", count, ends, **baseline) for count, ends in ((1, SLOW), (100, FAST))]}

    assert found(number, **rows()).cases
    alone = found(number, **rows(baseline="mindspore eager tuned"))
    assert (alone.cases, bool(alone.missing)) == ([], True)


def test_a_ratio_whose_control_is_in_doubt_is_not_believed() -> None:
    rows = [*answers((1.1, 1.2), control=(0.99, 1.01)), *answers((1.1, 1.2), control=(1.02, 1.04))]
    assert [(case["bears"], case["why"]) for case in found("C10", inference=rows).cases] == [
        (SUPPORTS, ""),
        (OPEN, RESTLESS),
    ]
    assert found("C10", inference=answers((1.01, 1.04), control=(1.02, 1.03))).bears == [OPEN]
    assert found("C10", inference=answers((1.1, 1.2), control=UNKNOWN)).verdict == REPRODUCED, "it was not measured"
    gru = row("throughput_ratio", (0.95, 1.05), on="gru on imdb", device="cuda", **NO_CONTROL)
    tuned = row("throughput_ratio", (1.1, 1.2), without="cudnn_benchmark", **NO_CONTROL)
    mixed = row("within_ratio", (1.1, 1.2), "pytorch eager bf16 tuned", PYTORCH, on="cnn on digits", **NO_CONTROL)
    sizes = [row("samples_per_second", (n, n + 1), batch_size=n, **NO_CONTROL) for n in (16, 64)]
    every = {"inference": answers((1.1, 1.2), **NO_CONTROL), "frameworks": [gru], "instrument": [tuned]}
    every |= {"batch_size": sizes, "modes": [mixed]}
    for number in ("C5", "C10", "C12", "C17", "C18"):
        assert [(case["bears"], case["why"]) for case in found(number, **every).cases] == [(OPEN, NOISY)], number


def test_first_epochs_are_wanted_of_both_frameworks_and_lost_ones_are_missing() -> None:
    first = functools.partial(row, "first_epoch_ratio", kind="training", epochs=30)
    assert found("C4", frameworks=[first((1.5, 2), PYTORCH)]).verdict == NOT_MEASURED, "one framework is not both"
    assert found("C4", frameworks=[first((1.5, 2), PYTORCH), first((0.9, 2), GRAPH)]).verdict == NO_DIFFERENCE
    lost = found("C4", frameworks=[first((1.5, 2), PYTORCH), first(UNKNOWN, GRAPH)])
    assert (lost.verdict, len(lost.cases)) == (NOT_MEASURED, 1)
    assert lost.missing == ["gcn on cora, mindspore graph tuned (no run has two epochs)"]


def test_the_time_of_an_epoch_by_the_learning_rate() -> None:
    def of(ends: tuple[float, float], **more: Any) -> Found:
        rates = {"learning_rate": 0.2, "baseline_learning_rate": 0.1, **more}
        return found("C15", learning_rate=[row("epoch_ratio", ends, PYTORCH, PYTORCH, on="cnn on digits", **rates)])

    assert [of(ends).verdict for ends in ((0.97, 0.99), (0.6, 0.7), (0.7, 1.2))] == [
        REPRODUCED,
        NOT_REPRODUCED,
        NO_DIFFERENCE,
    ]
    assert of((0.97, 0.99)).cases[0]["case"] == "cnn on digits, pytorch eager tuned, rate 0.2 over 0.1"
    failed = of(UNKNOWN, why="not measured")
    assert (failed.cases, "the runs failed" in failed.missing[0]) == ([], True)
    one = found("C15", learning_rate=[row("epoch_s", (1, 2), learning_rate=0.1)])
    assert "two learning rates" in one.missing[0], "one rate is not flat"


def test_mixed_precision_and_modes() -> None:
    def within(subject: str, baseline: str, ends: tuple[float, float], **more: Any) -> dict:
        return row("within_ratio", ends, subject, baseline, on="cnn on digits", **more)

    pairs = [
        within("pytorch graph tuned", "pytorch eager tuned", (0.8, 0.9)),
        within("pytorch graph bf16 tuned", "pytorch eager bf16 tuned", (0.8, 0.9)),
        within("pytorch eager bf16 default", "pytorch eager tuned", (0.8, 0.9)),  # two things differ
        within("pytorch eager bf16 tuned", "pytorch eager tuned", (1.1, 1.3)),
        within("mindspore graph fp16-O2 tuned", "mindspore graph tuned", (1.2, 1.3)),
        within("mindspore graph tuned", "mindspore eager tuned", FAST),
    ]
    across = functools.partial(row, "throughput_ratio", SLOW, on="cnn on digits")
    eager = across("mindspore eager tuned", "pytorch eager tuned")
    other = across("mindspore eager default", "mindspore eager tuned")  # PyTorch cannot run
    mixed, modes = (found(number, modes=[*pairs, eager, other]) for number in ("C5", "C6"))
    assert (mixed.verdict, mixed.bears) == (REPRODUCED, [SUPPORTS, SUPPORTS])
    assert [case["claimed_ratio_low"] for case in modes.cases] == pytest.approx([2, 5])
    graph = across("mindspore eager tuned", "pytorch graph tuned")
    assert len(found("C6", modes=[*pairs, graph]).cases) == 1, "PyTorch's graph mode is not what it is compared with"
    cpu, cuda = (within("pytorch eager bf16 tuned", PYTORCH, FAST, task=on, device=on) for on in ("cpu", "cuda"))
    assert [case["group"] for case in found("C5", modes=[cpu, cuda]).cases] == ["cuda"], "accelerators count"
    assert [case["group"] for case in found("C5", modes=[cpu]).cases] == ["cpu"]


def test_scaling_combines_independent_intervals_and_wants_more_than_two() -> None:
    def group(who: str, count: int, ends: tuple[float, float], batch: int = 64, **more: Any) -> dict:
        sizes = {"world_size": count, "batch_size": batch, "baseline_batch_size": 64, **more}
        return row("efficiency_percent", ends, who, who, on="cnn on digits", **sizes)

    two = found("C7", scaling=[group(PYTORCH, 2, (50, 55)), group(GRAPH, 2, (80, 90))])
    assert two.verdict == NOT_MEASURED
    (case,) = two.cases
    half = math.hypot(math.log(55 / 50), math.log(90 / 80)) / 2
    assert math.log(case["claimed_ratio_high"] / case["claimed_ratio_low"]) / 2 == pytest.approx(half)
    assert case["measurements"] == "key1 key0", "both frameworks' files"
    four = [group(PYTORCH, 4, (50, 55)), group(GRAPH, 4, (80, 90))]
    assert found("C7", scaling=four).verdict == REPRODUCED
    weak = [group(PYTORCH, 4, (50, 55), 256), group(GRAPH, 4, (50, 55), 256)]
    assert len(found("C7", scaling=[*four, *weak]).cases) == 2, "strong scaling is not set against weak"
    older = group(PYTORCH, 4, (94, 99), subject="pytorch torch-2.9 eager tuned", environment="torch-2.9")
    assert sorted(found("C7", scaling=[*four, older]).bears) == [CONTRADICTS, SUPPORTS], "every subject of the two"
    lost = group(GRAPH, 4, UNKNOWN, why=DISTURBED)
    assert found("C7", scaling=[four[0], lost]).missing == [f"{lost['label']} ({NOISY})"]


def test_operators_cross_with_the_number_of_parameters() -> None:
    def of(convolution: dict[int, Any], normalisation: dict[int, Any] | None = None, **more: Any) -> Found:
        rows = [operator("conv2d", count, ends) for count, ends in convolution.items()]
        rows += [operator("batchnorm2d", count, ends, **more) for count, ends in (normalisation or {}).items()]
        return found("C8", operators=rows)

    convolution = {100: FAST, 10: SLOW, 50: (0.5, 2)}
    alone = of(convolution)
    assert (alone.verdict, alone.bears) == (NOT_MEASURED, [SUPPORTS, SUPPORTS]), "which crosses first is a part of it"
    assert [case["measurements"] for case in alone.cases] == ["key1", "key0"]
    assert of(convolution, {1: SLOW, 8: FAST}).verdict == REPRODUCED
    assert of(convolution, {1: SLOW, 20: FAST}).bears[-1] == OPEN, "both cross somewhere between 10 and 20"
    assert of(convolution, {200: SLOW, 400: FAST}).bears[-1] == CONTRADICTS
    for doubt in ({"control": (1.1, 1.2)}, NO_CONTROL):
        assert of(convolution, {1: SLOW, 8: FAST}, **doubt).bears[-1] == OPEN, "its ratios are not believed"
    assert of({1: SLOW, 100: (0.2, 0.3)}).verdict == NOT_REPRODUCED
    assert of({100: SLOW}).cases == [], "one number of parameters crosses nothing"
    ends = {1: SLOW, 10: NEAR, 100: FAST}
    assert of(ends, {1: SLOW, 10: FAST, 100: FAST}).bears[-1] == OPEN, "at 10 the convolution is the same: not slower"
    default = [operator("conv2d", count, SLOW, subject="x", lane="default") for count in (1, 100)]
    assert found("C8", operators=default).cases == [], "as installed is not what was compared"


def test_claims_about_gpus_are_judged_on_gpus_only() -> None:
    def of(device: str) -> list[Found]:
        ratio = functools.partial(row, "throughput_ratio", FAST, device=device)
        gru = [ratio(PYTORCH, on="gru on imdb"), ratio(GRAPH, on="gru on imdb")]
        tuned = [ratio(PYTORCH, without="cudnn_benchmark")] if device == "cuda" else []
        rows = {"devices": [ratio(PYTORCH, on="cnn on digits")], "frameworks": gru, "instrument": tuned}
        return [found(number, **rows) for number in ("C11", "C17", "C18")]

    assert [one.cases for one in of("cpu")] == [[], [], []]
    gain, alike, tuned = of("cuda")
    assert (gain.bears, gain.cases[0]["published_ratio"]) == ([SUPPORTS], 2.843)
    assert alike.bears == [CONTRADICTS], "twice as fast is not alike; PyTorch's modes are one framework"
    assert (tuned.bears, tuned.cases[0]["claimed_ratio_low"]) == ([CONTRADICTS], pytest.approx(1 / 3))


def test_claims_of_more_frameworks_are_whole_only_where_theirs_were_measured() -> None:
    cuda = {"device": "cuda"}
    gains = [row("throughput_ratio", FAST, who, who, on="cnn on digits", **cuda) for who in (PYTORCH, TENSORFLOW)]
    alike = [row("throughput_ratio", (0.95, 1.05), who, on="gru on imdb", **cuda) for who in (TENSORFLOW, JAX)]
    for number, rows in (("C11", {"devices": gains}), ("C17", {"frameworks": alike})):
        (lacking,) = found(number, **rows).missing
        assert ("MXNet" in lacking, found(number, **rows).verdict) == (True, NOT_MEASURED)
    gains.append(row("throughput_ratio", (8, 9), MXNET, MXNET, on="cnn on digits", **cuda))
    alike.append(row("throughput_ratio", (0.9, 1.1), MXNET, on="gru on imdb", **cuda))
    assert "not tested: that it is more in MXNet" in judged("C11", devices=gains)["verdict_here"]
    assert found("C17", frameworks=alike).verdict == REPRODUCED


def test_who_is_fastest_by_the_batch_is_asked_of_all_that_were_compared() -> None:
    def at(*ratios: tuple[int, str, tuple[float, float]], **more: Any) -> list[dict]:
        of = functools.partial(row, "throughput_ratio", on="cnn on digits", **more)
        return [of(ends, who, batch_size=size) for size, who, ends in ratios]

    small = [(16, who, (0.4, 0.5)) for who in (TENSORFLOW, MXNET, JAX)]
    large = [(128, TENSORFLOW, (1.1, 1.2)), (128, MXNET, (2, 2.2)), (128, JAX, (0.9, 1.1))]
    whole = found("C16", batch_size=at(*small, *large))
    assert (whole.verdict, whole.missing) == (REPRODUCED, [])
    of = {case["case"]: case for case in whole.cases}
    assert set(of) == {
        *(f"cnn on digits, batch 16, {PYTORCH} over {who}" for who in (TENSORFLOW, MXNET, JAX)),
        *(f"cnn on digits, batch 128, {MXNET} over {who}" for who in (PYTORCH, TENSORFLOW, JAX)),
    }
    assert of[f"cnn on digits, batch 16, {PYTORCH} over {JAX}"]["claimed_ratio_low"] == pytest.approx(1 / 0.5)
    both = of[f"cnn on digits, batch 128, {MXNET} over {TENSORFLOW}"]
    assert both["claimed_ratio"] == pytest.approx(math.sqrt(2 * 2.2 / 1.1 / 1.2))
    half = math.hypot(math.log(1.1), math.log(1.2 / 1.1)) / 2
    assert both["claimed_ratio_low"] == pytest.approx(both["claimed_ratio"] * math.exp(-half))
    assert found("C16", batch_size=at(*small[:2], (16, JAX, FAST), *large)).verdict == NOT_REPRODUCED
    for rows in (at((16, JAX, FAST), (128, JAX, FAST)), at(*small)):
        lacking = found("C16", batch_size=rows)
        assert lacking.verdict == NOT_MEASURED
        assert any("MXNet at a batch size above 64" in one for one in lacking.missing)
    lost = at((128, TENSORFLOW, (1.1, 1.2))) + at((128, MXNET, UNKNOWN), why=DISTURBED)
    assert found("C16", batch_size=[*at(*small), *lost]).missing == [f"cnn on digits, {MXNET} ({NOISY})"]
    restless = found("C16", batch_size=at(*small, *large, control=(1.1, 1.2)))
    assert {case["why"] for case in restless.cases} == {RESTLESS}


def by_rate(values: dict[float, tuple[float, float, float]], seeds: int = 3, epochs: int = 10) -> list[dict]:
    """Rows of the notebook learning_rate: mean, lowest and highest by rate."""
    columns = {"subject": PYTORCH, "on": "cnn on cifar10", "kind": "training", "unit": "%", "epochs": epochs}
    of = functools.partial(row, "final_metric", processes=seeds, **columns)
    return [
        of(learning_rate=rate, lowest=low, highest=high) | {"estimate": mean}
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
def test_inner_maximum(values: list, bears: str | None) -> None:
    rates = {0.01 * 10.0**at: ends for at, ends in enumerate(values)}
    one = found("C14", learning_rate=by_rate(rates))
    assert one.bears[:1] == [bears] * (bears is not None)
    assert one.missing, "so coarse a grid does not say whether it is near 0.01"
    if bears == SUPPORTS:
        assert [case["why"] for case in found("C14", learning_rate=by_rate(rates, seeds=1)).cases] == [ONE_SEED]


@pytest.mark.parametrize(
    ("best", "second", "verdict"),
    [(0.01, 0.03, REPRODUCED), (0.05, 0.03, NOT_REPRODUCED), (0.03, 0.01, NO_DIFFERENCE), (0.005, 0.01, NO_DIFFERENCE)],
)
def test_best_near_the_published_best(best: float, second: float, verdict: str) -> None:
    values = dict.fromkeys((0.001, 0.005, 0.01, 0.03, 0.05, 0.07), (50.0, 49.0, 51.0))
    values |= {best: (70.0, 69.0, 71.0), second: (60.0, 59.0, 61.0)}
    one = found("C14", learning_rate=by_rate(values))
    assert (one.bears[0], one.verdict) == (SUPPORTS, verdict), "it rises and falls"
    shorter = found("C14", learning_rate=by_rate(values, epochs=3))
    assert "10 epochs" in shorter.missing[0]
    assert shorter.cases[0]["differs"] == ["after another number of epochs than the work's"]
    if verdict == REPRODUCED:
        near = found("C14", learning_rate=by_rate(values | {0.005: (69.5, 68.0, 70.0)}))
        assert near.bears[1] == OPEN, "seeds do not tell 0.005 from 0.01"


def test_growth_with_the_batch() -> None:
    def at(batch: int, speed: float, memory: float, gpu: float | None = None, **more: Any) -> list[dict]:
        values = {"samples_per_second": speed, "memory_mib": memory}
        values |= {"accelerator_memory_mib": gpu * 10, "accelerator_percent": gpu} if gpu else {}
        columns = {"subject": PYTORCH, "on": "cnn on digits", "batch_size": batch, "device": "cuda" if gpu else "cpu"}
        of = functools.partial(row, **columns, **more)
        return [of("memory_mib", (1, 1), kind="training"), *(of(n, (0.95 * v, 1.05 * v)) for n, v in values.items())]

    def of(*rows: list[dict]) -> Found:
        return found("C12", batch_size=[one for each in rows for one in each])

    cpu = of(at(4, 10, 100), at(64, 50, 200))
    assert (cpu.verdict, cpu.bears) == (NOT_MEASURED, [SUPPORTS, SUPPORTS]), "a GPU's utilisation is a part of it"
    assert of(at(4, 10, 100), at(64, 50, 100.1)).bears == [SUPPORTS, OPEN], "memory has an interval"
    gpu = of(at(4, 10, 100, 5), at(64, 50, 10, 50))
    assert (gpu.verdict, len(gpu.cases)) == (REPRODUCED, 3), "the host's memory is not what it is about"
    restless = {"control": (1.02, 1.03)}
    assert of(at(4, 10, 100, 5), at(16, 20, 10, 9, **restless), at(64, 50, 10, 50)).verdict == REPRODUCED
    doubted = of(at(4, 10, 100, 5), at(64, 50, 10, 50, **restless))
    assert [case["why"] for case in doubted.cases] == [RESTLESS, "", ""], "speed only"


def test_what_was_disturbed_is_not_measured_and_says_so() -> None:
    lost = functools.partial(row, why=DISTURBED, ends=UNKNOWN)
    cuda, cnn, gru = {"device": "cuda"}, {"on": "cnn on digits"}, {"on": "gru on imdb"}
    frameworks = [lost(quantity) for quantity in ("threshold_ratio", "first_epoch_ratio")]
    frameworks += [lost("epoch_ratio", on="lstm on imdb"), lost("throughput_ratio", subject=TENSORFLOW, **gru, **cuda)]
    modes = [lost("within_ratio", subject="pytorch eager bf16 tuned", baseline=PYTORCH, **cnn)]
    modes += [lost("within_ratio", baseline="mindspore eager tuned", **cnn)]
    every = {
        "frameworks": frameworks,
        "modes": modes,
        "operators": [operator("conv2d", 10, UNKNOWN, why=DISTURBED)],
        "inference": answers(UNKNOWN, why=DISTURBED),
        "batch_size": [lost("samples_per_second", batch_size=16)],
        "learning_rate": [lost("epoch_ratio", subject=PYTORCH, baseline=PYTORCH, learning_rate=0.2)],
        "devices": [lost("throughput_ratio", subject=PYTORCH, **cnn, **cuda)],
        "instrument": [lost("throughput_ratio", without="cudnn_benchmark", **cuda)],
    }
    for number in ("C2", "C4", "C5", "C6", "C8", "C9", "C10", "C11", "C12", "C15", "C17", "C18"):
        one = found(number, **every)
        assert (one.cases, any(NOISY in text for text in one.missing)) == ([], True), number
