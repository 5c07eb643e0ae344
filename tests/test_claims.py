"""The published claims are whole, and each rule finds what was planted, by its interval."""

import functools
import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import explored
import pandas as pd
import pytest
from frames import PYTORCH, UNKNOWN, row
from pydantic import ValidationError

from benchlib.condition import Condition
from benchlib.literature import evidence, judge, works
from benchlib.literature.verdicts import NO_DIFFERENCE, NOT_MEASURED, NOT_REPRODUCED, REPRODUCED, verdict_of
from benchlib.report import load
from benchlib.stats import frame as tidy
from benchlib.stats.comparison import DISTURBED
from benchlib.stats.intervals import Interval

pytestmark = pytest.mark.usefixtures("one_kind_of_figure")

SUPPORTS, CONTRADICTS, OPEN = evidence.SUPPORTS, evidence.CONTRADICTS, evidence.OPEN
ROOT = Path(__file__).parents[1]
GRAPH = "mindspore graph tuned"
TENSORFLOW, MXNET, JAX = (f"{name} graph tuned" for name in ("tensorflow", "mxnet", "jax"))
SLOW, NEAR, FAST = (0.1, 0.2), (0.96, 0.99), (2.0, 3.0)
NO_CONTROL = {"control": UNKNOWN, "control_why": DISTURBED}

ratio = functools.partial(row, "throughput_ratio")
within = functools.partial(row, "within_ratio", on="cnn on digits")


def as_frames(**rows: list[dict]) -> dict[str, pd.DataFrame]:
    files = {name: [{"files": f"key{n}", **one} for n, one in enumerate(each)] for name, each in rows.items()}
    return {name: tidy.of_rows(each) for name, each in files.items()}


def found(number: str, **rows: list[dict]) -> SimpleNamespace:
    claim = next(one for one in works.claims() if one.id == number)
    cases, missing = evidence.find(claim, as_frames(**rows))
    columns = {name: [case[name] for case in cases] for name in ("bears", "why", "case", "claimed_ratio_low")}
    return SimpleNamespace(cases=cases, missing=missing, verdict=verdict_of(cases, missing), **columns)


def judged(number: str, places: dict[str, str] | None = None, **rows: list[dict]) -> pd.Series:
    own = [one for one in works.claims() if one.id == number]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(works, "claims", lambda: own)
        return judge(as_frames(**rows), places).claims.iloc[0]


def answers(*ends: tuple[float, float], **more: Any) -> list[dict]:
    columns = {"on": "resnet50_inference on random", "hyperparameters": '{"image_size": 32}', **more}
    return [ratio(pair, batch_size=2**at, **columns) for at, pair in enumerate(ends)]


def operator(name: str, parameters: int, ends: tuple[float, float], **more: Any) -> dict:
    columns = {"million_multiply_adds": 1.0, "hyperparameters": '{"passes": "forward"}', **more}
    return ratio(ends, on=f"{name} on random", parameters=parameters, **columns)


def test_every_claim_asks_for_what_there_is() -> None:
    assert [one.id for one in works.claims()] == [f"C{number}" for number in range(1, 19)]
    for claim in works.claims():
        assert claim.source in works.sources()
        for part in claim.rule.rows:
            assert (ROOT / "notebooks" / f"{part.notebook}.ipynb").is_file()
            assert part.quantity in tidy.QUANTITIES
    for one in works.works()["thresholds"]:
        assert one["data"].split()[0] == works.sources()[one["source"]].used[one["workload"]]


def test_a_claim_is_a_row_of_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"notebook": "devices", "quantity": "throughput_ratio", "own": "{threads} threads", "inverse": True}
    rows |= {"where": "threads == 4 and baseline_threads == 1", "needs": {"four threads": ""}}
    claim = {"id": "C99", "source": "yin2020", "device": "i7-8650U", "says": "More threads are no faster."}
    with pytest.raises(ValidationError, match=r"rule\.rows\.0\.were"):
        works.Claim(**claim, rule={"says": "One over four.", "rows": [{**rows, "were": ""}]})
    made = works.Claim(**claim, rule={"says": "One over four.", "rows": [rows]})
    monkeypatch.setattr(works, "claims", lambda: [made])
    two, four = (ratio((1.5, 2), PYTORCH, on="cnn on digits", baseline_threads=1, threads=count) for count in (2, 4))
    assert found("C99", devices=[two]).missing == ["four threads"]
    one = found("C99", devices=[two, four])
    assert (one.case, one.claimed_ratio_low, one.bears) == (["cnn on digits, 4 threads"], [0.5], [CONTRADICTS])


def test_the_verdict_follows_from_cases_and_from_what_is_missing() -> None:
    def of(*bears: str, missing: tuple[str, ...] = ()) -> str:
        return verdict_of([{"bears": one} for one in bears], list(missing))

    assert of(SUPPORTS, SUPPORTS) == REPRODUCED
    assert of(SUPPORTS, CONTRADICTS, OPEN) == of(CONTRADICTS, missing=("bert",)) == NOT_REPRODUCED
    assert of(SUPPORTS, OPEN) == NO_DIFFERENCE
    assert of(SUPPORTS, missing=("bert",)) == of(missing=("a GPU",)) == of() == NOT_MEASURED


def test_a_ratio_bears_by_its_interval() -> None:
    def of(low: float, high: float, alike: float | None = None) -> tuple[str, str]:
        return evidence.judge_ratio(Interval((low + high) / 2, low, high, 5), 0.05, alike)

    assert of(1.01, 1.2) == of(1.02, 1.08, 1.1) == (SUPPORTS, "")
    assert of(0.8, 0.99) == of(1.2, 1.3, 1.1) == (CONTRADICTS, "")
    assert of(1.01, 1.05) == of(*NEAR) == (CONTRADICTS, "the same within 5 %")
    assert of(0.9, 1.1) == (OPEN, "")
    assert of(*UNKNOWN) == of(*UNKNOWN, 1.1) == (OPEN, evidence.NO_INTERVAL)
    assert (of(1.05, 1.2, 1.1), of(0.8, 1.3, 1.1)) == ((OPEN, evidence.WITHIN_OR_BEYOND), (OPEN, evidence.TOO_WIDE))


def test_a_verdict_says_what_it_is_short_of() -> None:
    same = judged("C10", inference=answers((1.01, 1.04)))
    assert same["verdict_here"].startswith("Not reproduced (the same within 5 %)")
    margins = [found("C10", inference=answers((1.01, 1.04), margin=at)).bears for at in (0.03, 0.04)]
    assert margins == [[SUPPORTS], [CONTRADICTS]], "the margin is the notebook's"

    def gcn(data: str, threshold: float, **places: str) -> str:
        rows = [row("threshold_ratio", (0.4, 0.6), on=f"gcn on {data}", threshold=threshold)]
        return judged("C2", places, frameworks=rows)["verdict_here"]

    assert gcn("cora", 0.7, key0="2 cores") == "Reproduced, in direction, on 2 cores"
    assert "to a threshold of 0.8, not 0.7" in gcn("cora", 0.8)
    assert "on stand-in data for cora" in gcn("digits_graph", 0.7)
    rows = [ratio(ends, on="gru on imdb", device="cuda") for ends in ((0.8, 1.3), (1, 1.1))]
    flat = judged("C17", frameworks=rows)
    assert (flat["verdict"], flat["verdict_here"].partition(": not shown")[0]) == (NO_DIFFERENCE, "Undecided")
    cases = {((1.1, 1.2), (0.9, 1.1)): True, ((0.9, 1.1),): False, ((0.5, 0.6), (0.9, 1.1), (2, 3)): False}
    assert {ends: judged("C10", inference=answers(*ends))["undecided"] for ends in cases} == cases


def test_nothing_measured_is_no_verdict_and_all_ratios_are_in_pictures() -> None:
    nothing = judge({})
    assert (set(nothing.claims["verdict"]), len(nothing.cases), nothing.pictures()) == ({NOT_MEASURED}, 0, {})
    assert (nothing.claims["takes"].str.len() > 1).all(), "it is said what it would take"
    pictures = judge(as_frames(inference=answers(*[(1.1, 1.2)] * 30))).pictures()
    assert sum(len(one.shown_rows(None)) for one in pictures.values()) == 30
    drawn = [picture.draw(None) for picture in pictures.values()]
    assert all("C10" in caption and figure.get_figheight() < 9 for caption, figure in drawn)


def test_ratios_are_taken_in_the_direction_of_the_claim() -> None:
    threshold = functools.partial(row, "threshold_ratio")
    rows = [threshold((3, 6), on="resnet50 on cifar10"), threshold((3, 6)), threshold((0.4, 0.6), on="seq2seq on x")]
    rows.append(threshold(SLOW, "mindspore eager tuned"))  # eager mode is not what the claim is about
    resnet50, gcn, seq2seq = (found(number, frameworks=rows) for number in ("C1", "C2", "C3"))
    assert (resnet50.verdict, resnet50.cases[0]["published_ratio"]) == (REPRODUCED, 5.03)
    assert (gcn.verdict, len(gcn.cases)) == (NOT_REPRODUCED, 1)
    assert (seq2seq.claimed_ratio_low, seq2seq.cases[0]["measurements"]) == ([pytest.approx(1 / 0.6)], "key2")
    names = ("googlenet on cifar10", "lstm on imdb", "bert on text")
    rows = [row("epoch_ratio", (1.1, 1.2), on=name, batch_size=32, epochs=3) for name in names]
    assert [found("C9", frameworks=rows[:count]).verdict for count in (2, 3)] == [NOT_MEASURED, REPRODUCED]
    assert found("C10", inference=answers(SLOW, subject="mindspore eager tuned")).cases == []
    for baseline, there in ((PYTORCH, True), ("mindspore eager tuned", False)):
        itself = [row("threshold_ratio", FAST, on="resnet50 on cifar10", baseline=baseline)]
        assert bool(found("C1", frameworks=itself).cases) == there, "MindSpore against itself is another thing"
        assert bool(found("C10", inference=answers(FAST, baseline=baseline)).cases) == there


def test_a_ratio_whose_control_is_in_doubt_is_not_believed() -> None:
    rows = [*answers((1.1, 1.2), control=(0.99, 1.01)), *answers((1.1, 1.2), control=(1.02, 1.04))]
    both = found("C10", inference=rows)
    assert (both.bears, both.why) == ([SUPPORTS, OPEN], ["", evidence.RESTLESS])
    assert found("C10", inference=answers((1.01, 1.04), control=(1.02, 1.03))).bears == [OPEN]
    assert found("C10", inference=answers((1.1, 1.2), control=UNKNOWN)).verdict == REPRODUCED, "it was not measured"
    sizes = [row("samples_per_second", (n, n + 1), batch_size=n, **NO_CONTROL) for n in (16, 64)]
    for number in ("C10", "C12"):
        one = found(number, inference=answers((1.1, 1.2), **NO_CONTROL), batch_size=sizes)
        assert (one.bears, one.why) == ([OPEN], [evidence.NOISY]), number


def test_epochs_are_wanted_of_both_frameworks_and_of_two_rates_and_lost_ones_are_missing() -> None:
    def first(*of_both: tuple[str, tuple[float, float]]) -> SimpleNamespace:
        rows = [row("first_epoch_ratio", ends, who, kind="training", epochs=30) for who, ends in of_both]
        return found("C4", frameworks=rows)

    def rate(ends: tuple[float, float], **more: Any) -> SimpleNamespace:
        rates = {"learning_rate": 0.2, "baseline_learning_rate": 0.1, **more}
        return found("C15", learning_rate=[row("epoch_ratio", ends, PYTORCH, PYTORCH, on="cnn on digits", **rates)])

    assert first((PYTORCH, (1.5, 2))).verdict == NOT_MEASURED, "one framework is not both"
    assert first((PYTORCH, (1.5, 2)), (GRAPH, (0.9, 2))).verdict == NO_DIFFERENCE
    lost = first((PYTORCH, (1.5, 2)), (GRAPH, UNKNOWN))
    assert (lost.verdict, len(lost.cases), "no run has two epochs" in lost.missing[0]) == (NOT_MEASURED, 1, True)
    verdicts = [rate(ends).verdict for ends in (NEAR, (0.6, 0.7), (0.7, 1.2))]
    assert verdicts == [REPRODUCED, NOT_REPRODUCED, NO_DIFFERENCE]
    noisy = found("C2", frameworks=[row("threshold_ratio", UNKNOWN, why=DISTURBED)])
    assert (noisy.cases, evidence.NOISY in noisy.missing[0]) == ([], True)
    failed, one = rate(UNKNOWN, why="not measured"), found("C15", learning_rate=[row("epoch_s", (1, 2))])
    assert (failed.cases, "the runs failed" in failed.missing[0]) == ([], True)
    assert "two learning rates" in one.missing[0], "one rate is not flat"


def test_mixed_precision_and_modes() -> None:
    pairs = [
        within((0.8, 0.9), "pytorch graph tuned", "pytorch eager tuned"),
        within((0.8, 0.9), "pytorch graph bf16 tuned", "pytorch eager bf16 tuned"),
        within((0.8, 0.9), "pytorch eager bf16 default", "pytorch eager tuned"),  # two things differ
        within((1.1, 1.3), "pytorch eager bf16 tuned", "pytorch eager tuned"),
        within((1.2, 1.3), "mindspore graph fp16-O2 tuned", "mindspore graph tuned"),
        within(FAST, "mindspore graph tuned", "mindspore eager tuned"),
    ]
    across = [ratio(SLOW, "mindspore eager tuned", who) for who in (PYTORCH, "pytorch graph tuned", GRAPH)]
    mixed, modes = (found(number, modes=[*pairs, *across]) for number in ("C5", "C6"))
    assert (mixed.verdict, mixed.bears) == (REPRODUCED, [SUPPORTS, SUPPORTS])
    assert modes.claimed_ratio_low == pytest.approx([2, 5])
    cpu, cuda = (within(FAST, "pytorch eager bf16 tuned", PYTORCH, task=on, device=on) for on in ("cpu", "cuda"))
    counted = [[case["group"] for case in found("C5", modes=rows).cases] for rows in ([cpu, cuda], [cpu])]
    assert counted == [["cuda"], ["cpu"]], "where there are accelerators, they count"


def test_scaling_combines_independent_intervals_and_wants_more_than_two() -> None:
    def group(who: str, count: int, ends: tuple[float, float], batch: int = 64) -> dict:
        sizes = {"world_size": count, "batch_size": batch, "baseline_batch_size": 64}
        return row("efficiency_percent", ends, who, who, on="cnn on digits", **sizes)

    two = found("C7", scaling=[group(PYTORCH, 2, (50, 55)), group(GRAPH, 2, (80, 90))])
    (case,) = two.cases
    half = math.hypot(math.log(55 / 50), math.log(90 / 80)) / 2
    assert math.log(case["claimed_ratio_high"] / case["claimed_ratio_low"]) / 2 == pytest.approx(half)
    assert (case["measurements"], two.verdict) == ("key1 key0", NOT_MEASURED)
    four = [group(PYTORCH, 4, (50, 55)), group(GRAPH, 4, (80, 90))]
    assert found("C7", scaling=four).verdict == REPRODUCED
    weak = [group(who, 4, (50, 55), 256) for who in (PYTORCH, GRAPH)]
    assert len(found("C7", scaling=[*four, *weak]).cases) == 2, "strong scaling is not set against weak"
    apart = [four[0] | {"host": "n1"}, four[1] | {"host": "n2"}]
    assert not found("C7", scaling=apart).cases, "nothing is divided by what another host measured"
    assert found("C7", scaling=[one | {"host": "n1"} for one in four]).verdict == REPRODUCED
    older = {"subject": "pytorch torch-2.9 eager tuned", "environment": "torch-2.9"}
    every = found("C7", scaling=[*four, group(PYTORCH, 4, (94, 99)) | older])
    assert sorted(every.bears) == [CONTRADICTS, SUPPORTS], "every subject of the two"


def test_operators_cross_with_the_number_of_parameters() -> None:
    def of(convolution: dict[int, Any], normalisation: dict[int, Any] | None = None, **more: Any) -> SimpleNamespace:
        rows = [operator("conv2d", count, ends) for count, ends in convolution.items()]
        rows += [operator("batchnorm2d", count, ends, **more) for count, ends in (normalisation or {}).items()]
        return found("C8", operators=rows)

    convolution, early = {100: FAST, 10: SLOW, 50: (0.5, 2)}, {1: SLOW, 8: FAST}
    alone = of(convolution)
    assert (alone.verdict, alone.bears) == (NOT_MEASURED, [SUPPORTS, SUPPORTS]), "which crosses first is a part of it"
    assert of(convolution, early).verdict == REPRODUCED
    assert of(convolution, {1: SLOW, 20: FAST}).bears[-1] == OPEN, "both cross somewhere between 10 and 20"
    assert of(convolution, {200: SLOW, 400: FAST}).bears[-1] == CONTRADICTS
    doubted = [of(convolution, early, **doubt).bears[-1] for doubt in ({"control": (1.1, 1.2)}, NO_CONTROL)]
    assert doubted == [OPEN, OPEN], "its ratios are not believed"
    same = of({1: SLOW, 10: NEAR, 100: FAST}, {1: SLOW, 10: FAST, 100: FAST})
    assert same.bears[-1] == OPEN, "at 10 the convolution is the same, not slower"
    assert of({1: SLOW, 100: (0.2, 0.3)}).verdict == NOT_REPRODUCED
    assert of({100: SLOW}).cases == [], "one number of parameters crosses nothing"
    default = [operator("conv2d", count, SLOW, subject="mindspore graph default") for count in (1, 100)]
    assert found("C8", operators=default).cases == [], "as installed is not what was compared"


def test_claims_about_gpus_are_judged_on_gpus_and_wanted_of_the_works_frameworks() -> None:
    def of(device: str, *more: str) -> list[SimpleNamespace]:
        gru = [ratio(FAST, who, on="gru on imdb", device=device) for who in (PYTORCH, GRAPH, *more)]
        gains = [ratio(FAST, who, who, on="cnn on digits", device=device) for who in (PYTORCH, TENSORFLOW, *more)]
        tuned = [ratio(FAST, PYTORCH, without="cudnn_benchmark" if device == "cuda" else "", device=device)]
        return [found(n, devices=gains, frameworks=gru, instrument=tuned) for n in ("C11", "C17", "C18")]

    assert [one.cases for one in of("cpu")] == [[], [], []]
    gain, alike, tuned = of("cuda")
    assert (gain.bears, gain.cases[0]["published_ratio"]) == ([SUPPORTS] * 2, 2.843)
    assert (gain.verdict, "MXNet" in gain.missing[0]) == (NOT_MEASURED, True)
    assert alike.bears == [CONTRADICTS], "twice as fast is not alike; PyTorch's modes are one framework"
    assert tuned.claimed_ratio_low == [pytest.approx(1 / 3)]
    assert of("cuda", MXNET)[0].verdict == REPRODUCED


def test_who_is_fastest_by_the_batch_is_asked_of_all_that_were_compared() -> None:
    def of(*ratios: tuple[int, str, tuple[float, float]], **more: Any) -> SimpleNamespace:
        rows = [ratio(ends, who, on="cnn on digits", batch_size=size, **more) for size, who, ends in ratios]
        return found("C16", batch_size=rows)

    small = [(16, who, (0.4, 0.5)) for who in (TENSORFLOW, MXNET, JAX)]
    large = [(128, TENSORFLOW, (1.1, 1.2)), (128, MXNET, (2, 2.2)), (128, JAX, (0.9, 1.1))]
    whole = of(*small, *large)
    assert (whole.verdict, whole.missing, len(whole.cases)) == (REPRODUCED, [], 6)
    cases = dict(zip(whole.case, whole.cases, strict=True))
    assert cases[f"cnn on digits, batch 16, {PYTORCH} over {JAX}"]["claimed_ratio_low"] == pytest.approx(1 / 0.5)
    both = cases[f"cnn on digits, batch 128, {MXNET} over {TENSORFLOW}"]
    assert both["claimed_ratio"] == pytest.approx(math.sqrt(2 * 2.2 / 1.1 / 1.2))
    assert of(*small[:2], (16, JAX, FAST), *large).verdict == NOT_REPRODUCED
    for rows in ([(16, JAX, FAST), (128, JAX, FAST)], small):
        assert (of(*rows).verdict, "MXNet at a batch size above 64" in str(of(*rows).missing)) == (NOT_MEASURED, True)
    assert set(of(*small, *large, control=(1.1, 1.2)).why) == {evidence.RESTLESS}


def test_a_verdict_then_is_of_the_works_versions_and_now_of_the_others() -> None:
    def of(name: str, mode: str, ends: tuple[float, float], **more: Any) -> dict:
        home = {"environment": name or "default", "baseline_mode": "eager"}
        return ratio(ends, f"{name.split('-')[0] or 'mindspore'} {mode} tuned", batch_size=16, **home, **more)

    place = {"on": "resnet50_inference on random", "hyperparameters": '{"image_size": 32}'}
    rows = [of("", "graph", SLOW, **place), of("mindspore-2.0", "graph", (0.8, 0.9), **place)]
    assert judged("C10", inference=rows)["verdict_then"] == "–", "to today's PyTorch alone it says nothing of then"
    both = judged("C10", inference=[*rows, of("pytorch-1.8", "eager", (0.4, 0.5), **place)])
    assert (both["verdict"], both["verdict_then"].split(", ")[0]) == (NOT_REPRODUCED, "Reproduced")
    assert "mindspore-2.0" in both["verdict_then"]
    cases = found("C10", inference=rows).cases
    assert [case["claimed_ratio"] < 0.2 for case in cases] == [True], "now is of today's only"
    old = [
        row("epoch_ratio", ends, PYTORCH, PYTORCH, on="cnn on digits", learning_rate=0.2, baseline_learning_rate=0.1)
        | {"environment": home, "baseline_environment": home}
        for home, ends in (("default", NEAR), ("pytorch-1.4", (0.6, 0.7)))
    ]
    flat = judged("C15", learning_rate=old)
    assert (flat["verdict"], flat["verdict_then"].split()[0]) == (REPRODUCED, "Not"), "each by its own"


def by_rate(values: dict[float, tuple[float, float, float]], **more: Any) -> SimpleNamespace:
    own = {"subject": PYTORCH, "on": "cnn on cifar10", "kind": "training", "epochs": 10, **more}
    ends = {rate: {"lowest": low, "highest": high} for rate, (_, low, high) in values.items()}
    rows = [row("final_metric", learning_rate=rate, **own, **ends[rate]) for rate in values]
    return found("C14", learning_rate=[one | {"estimate": values[one["learning_rate"]][0]} for one in rows])


def test_inner_maximum() -> None:
    low, high, middle = (50, 40, 60), (90, 85, 95), (60, 50, 70)
    for values, bears in (
        ((low, high, middle), [SUPPORTS]),
        ((low, (65, 55, 75), middle), [OPEN]),
        ((low, middle, high), [CONTRADICTS]),
        ((high, middle, low), [OPEN]),  # the works went on to 0.001
        ((low, high), []),
    ):
        rates = {0.01 * 10.0**at: ends for at, ends in enumerate(values)}
        assert by_rate(rates).bears == bears
        assert by_rate(rates).missing, "so coarse a grid does not say whether it is near 0.01"
        assert by_rate(rates, processes=1).why == [evidence.ONE_SEED] * len(bears)


def test_best_near_the_published_best() -> None:
    flat = dict.fromkeys((0.001, 0.005, 0.01, 0.03, 0.05, 0.07), (50.0, 49.0, 51.0))

    def of(best: float, second: float, **more: Any) -> SimpleNamespace:
        return by_rate(flat | {best: (70.0, 69.0, 71.0), second: (60.0, 59.0, 61.0)}, **more)

    verdicts = [of(*pair).verdict for pair in ((0.01, 0.03), (0.05, 0.03), (0.03, 0.01), (0.005, 0.01))]
    assert verdicts == [REPRODUCED, NOT_REPRODUCED, NO_DIFFERENCE, NO_DIFFERENCE]
    assert (of(0.03, 0.01).bears, "10 epochs" in of(0.03, 0.01, epochs=3).missing[0]) == ([SUPPORTS, OPEN], True)
    unclear = by_rate(flat | {0.01: (70.0, 69.0, 71.0), 0.005: (69.5, 68.0, 70.0)})
    assert unclear.bears[1] == OPEN, "seeds do not tell 0.005 from 0.01"


def test_growth_with_the_batch() -> None:
    def of(device: str, **more: Any) -> SimpleNamespace:
        values = {"samples_per_second": 10, "memory_mib": 100}
        values |= {"accelerator_memory_mib": 50, "accelerator_percent": 5} if device == "cuda" else {}
        of_size = functools.partial(row, subject=PYTORCH, on="cnn on digits", device=device, **more)
        rows = [of_size(name, (n * v, 1.1 * n * v), batch_size=n) for n in (4, 16) for name, v in values.items()]
        return found("C12", batch_size=[of_size("memory_mib", (1, 1), kind="training", batch_size=4), *rows])

    cpu, gpu = of("cpu"), of("cuda")
    assert (cpu.verdict, cpu.bears) == (NOT_MEASURED, [SUPPORTS, SUPPORTS]), "a GPU's utilisation is a part of it"
    assert (gpu.verdict, len(gpu.cases)) == (REPRODUCED, 3), "the host's memory is not what it is about"
    assert of("cuda", control=(1.02, 1.03)).why == [evidence.RESTLESS, "", ""], "speed only"


def test_the_notebook_gives_what_the_report_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    glued: dict[str, Any] = {}
    monkeypatch.setattr("scrapbook.glue", glued.__setitem__)
    pytorch = Condition(workload="resnet50_inference", lane="tuned", batch_size=16)
    explored.results(tmp_path, [[pytorch, pytorch.but(framework="mindspore", mode="graph")]], "inference")
    record = tmp_path / "notebooks" / "inference.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"stale": "its text"}))
    variables: dict[str, Any] = {}
    for cell in json.loads((ROOT / "notebooks" / "claims.ipynb").read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]).replace("outputs: Folder = None", f"outputs = {str(tmp_path)!r}"), variables)
    summary = glued["summary"]
    assert (set(summary) >= set(load.KEYS), "inference" in summary["findings"][1]) == (True, True), "what is stale"
    verdicts = pd.DataFrame(**summary["verdicts"]).set_index("claim")
    assert {"says", "published_on", "verdict", "undecided", "here"} <= set(verdicts)
    assert verdicts.loc["C10", "verdict_here"] == "Not reproduced (the same within 5 %), on 2 cores of synthetic"
    assert summary["measurements"] == verdicts.loc["C10", "measurements"].split()
