"""Verdicts: the published claims are whole, and each rule finds what was planted, by its interval."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
import yaml
from synthetic_lab import SyntheticLab

from benchlib import claims, experiments, published, suite, workloads
from benchlib.claims import (
    CONTRADICTS,
    NO_DIFFERENCE,
    NOT_MEASURED,
    NOT_REPRODUCED,
    OPEN,
    REPRODUCED,
    SUPPORTS,
    Case,
    Outcome,
)
from benchlib.condition import Condition
from benchlib.measure.statistics import Interval

SHARED = Path(__file__).parents[2] / "shared" / "published.yaml"


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., None]:
    """Writes a table of a notebook that has succeeded; rows that say no measurements get some."""

    def inner(notebook: str, name: str, rows: list[dict], status: str = "succeeded", **parameters: str) -> None:
        for folder in ("tables", "notebooks"):
            (tmp_path / folder).mkdir(exist_ok=True)
        frame = pd.DataFrame([{"measurements": f"key{number}", **row} for number, row in enumerate(rows)])
        frame.to_csv(tmp_path / "tables" / f"{notebook}_{name}.csv", index=False)
        path = tmp_path / "notebooks" / f"{notebook}.json"
        files = json.loads(path.read_text())["files"] if path.exists() else {}
        table = f"tables/{notebook}_{name}.csv"
        files[table] = suite.digest((tmp_path / table).read_bytes())
        path.write_text(json.dumps({"status": status, "parameters": parameters, "files": files}))

    return inner


def found(folder: Path, number: str) -> claims.Judged:
    return next(one for one in claims.judged(folder) if one.claim.id == number)


def interval(name: str, low: float, high: float) -> dict[str, float]:
    return {name: math.sqrt(low * high), f"{name}_low": low, f"{name}_high": high}


def test_every_claim_has_a_source_a_rule_that_says_itself_and_known_workloads() -> None:
    every = published.claims()
    assert [one.id for one in every] == [f"C{number}" for number in range(1, 19)]
    for claim in every:
        assert claim.source in published.sources()
        rule = claims.RULES[claim.rule["name"]]
        assert len(rule.__doc__) > 30
        for name in claim.rule.get("names", []):
            workloads.load(name)


@pytest.mark.skipif(not SHARED.is_file(), reason="THE COLLECTED FIGURES ARE ABSENT: ours are not compared with them")
def test_figures_are_those_that_were_collected() -> None:
    theirs = yaml.safe_load(SHARED.read_text(encoding="utf-8"))
    ours = published.works()
    assert {one["id"]: one["source"] for one in theirs["claims"]} == {c.id: c.source for c in published.claims()}
    for one in theirs["claims"]:
        claim = next(claim for claim in published.claims() if claim.id == one["id"])
        values = list(one["published"].values()) if "published" in one else [one["ratio"]] if "ratio" in one else []
        assert list(claim.published.values()) == values
        assert bool(claim.doubt) >= ("doubt" in one)
    for name in ("learning_rate", "batch_accuracy"):
        key = {"learning_rate": "learning_rate", "batch_accuracy": "batch_size"}[name]
        table = theirs[name]
        assert ours["accuracy"][key]["accuracy"] == table.get("accuracy", table.get("accuracy_after_10_epochs"))
    for mine, their in zip(ours["training"], theirs["training"], strict=True):
        assert (mine["loss"], mine["accuracy"], mine["framework"]) == (
            their["loss"],
            their["accuracy"],
            their["framework"],
        )
        number = float(mine["takes"].split()[0])
        assert number in (their.get("minutes"), their.get("seconds"), their.get("hours"))
    for mine, their in zip(ours["inference"], theirs["inference"], strict=True):
        assert mine["images_per_second"] == their["images_per_second"]
    for mine, their in zip(ours["cpu_gpu"], theirs["cpu_gpu"], strict=True):
        assert mine["steps_per_second"] == their["steps_per_second"]
    assert ours["rosetta"]["GRU, training on IMDB"]["pytorch"] == theirs["rosetta"]["gru_imdb_training"]["pytorch"]


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
    assert claims.judge(Outcome([Case("x", one, "1", "") for one in bears], missing)) == verdict


@pytest.mark.parametrize(
    ("low", "high", "bears"),
    [(1.01, 1.2, SUPPORTS), (0.8, 0.99, CONTRADICTS), (0.9, 1.1, OPEN), (math.nan, math.nan, OPEN)],
)
def test_a_ratio_bears_by_the_side_that_its_interval_is_on(low: float, high: float, bears: str) -> None:
    assert claims.bearing(Interval((low + high) / 2, low, high, 5)) == bears


def test_nothing_measured_is_no_verdict(tmp_path: Path) -> None:
    every = claims.judged(tmp_path)
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


def test_first_epoch_in_both_frameworks_and_all_settings(tmp_path: Path, write: Callable) -> None:
    rows = [{"task": "gcn on cora", "subject": "pytorch eager tuned", **interval("first_epoch", 1.5, 2)}]
    write("frameworks", "first_epochs", rows)
    assert found(tmp_path, "C4").verdict == NOT_MEASURED, "one framework is not both"
    rows.append({"task": "gcn on cora", "subject": "mindspore graph tuned", **interval("first_epoch", 0.9, 2)})
    write("frameworks", "first_epochs", rows)
    assert found(tmp_path, "C4").verdict == NO_DIFFERENCE


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
    def row(count: int, low: float, high: float, work: float = 1, lane: str = "tuned") -> dict:
        named = {"subject": f"mindspore graph {lane}", "framework": "mindspore", "workload": "conv2d", "lane": lane}
        return {**named, "passes": "forward", "parameters": count, "million_multiply_adds": work} | interval(
            "ratio", low, high
        )

    write("operators", "ratios", [row(100, 1.2, 1.3), row(1, 0.1, 0.2, work=999), row(10, 0.5, 2)])
    crossed = found(tmp_path, "C8")
    assert crossed.verdict == REPRODUCED, "more work with as few parameters is not what it is about"
    assert [case.files for case in crossed.outcome.cases] == ["key1", "key0"]
    write("operators", "ratios", [row(100, 0.2, 0.3), row(1, 0.1, 0.2)])
    assert found(tmp_path, "C8").verdict == NOT_REPRODUCED
    write("operators", "ratios", [row(100, 0.2, 0.3, work=1), row(100, 0.1, 0.2, work=9)])
    assert found(tmp_path, "C8").outcome.cases == [], "one number of parameters crosses nothing"
    write("operators", "ratios", [row(100, 0.2, 0.3, lane="default"), row(1, 0.1, 0.2, lane="default")])
    assert found(tmp_path, "C8").verdict == NOT_MEASURED, "as installed its convolutions are not what was compared"


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

    for device in ("cpu", "cuda"):
        write("devices", "ratios", [row(device)], workload="cnn", data="digits")
        write("frameworks", "ratios", [row(device)])
        change = "without cudnn_benchmark" if device == "cuda" else "lane default"
        write("instrument", "knobs", [row(device, change=change)])
        verdicts = [found(tmp_path, number).outcome.cases for number in ("C11", "C17", "C18")]
        if device == "cpu":
            assert verdicts == [[], [], []]
    gpu, gru, autotuned = verdicts
    assert (gpu[0].bears, gpu[0].published) == (SUPPORTS, 2.843)
    assert gru[0].bears == CONTRADICTS, "twice as fast is not about equally fast"
    assert autotuned[0].bears == CONTRADICTS, "faster without it"
    assert autotuned[0].ratio.low == pytest.approx(1 / 3)


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


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([(50, 40, 60), (90, 85, 95), (60, 50, 70)], REPRODUCED),
        ([(50, 40, 60), (65, 55, 75), (60, 50, 70)], NO_DIFFERENCE),
        ([(50, 40, 60), (60, 50, 70), (90, 85, 95)], NOT_REPRODUCED),
        ([(62, 55, 69), (60, 50, 70), (50, 40, 60)], NO_DIFFERENCE),
        ([(90, 85, 95), (60, 50, 70), (50, 40, 60)], NO_DIFFERENCE),  # the works went on to 0.001
        ([(50, 40, 60), (90, 85, 95)], NOT_MEASURED),
    ],
)
def test_inner_maximum(tmp_path: Path, write: Callable, values: list, verdict: str) -> None:
    rows = [
        {
            "subject": "pytorch eager tuned",
            "learning_rate": 0.01 * 10.0**at,
            "accuracy_percent": mean,
            "lowest": low,
            "highest": high,
        }
        for at, (mean, low, high) in enumerate(values)
    ]
    rows = [{**row, "runs": 3, "failed": 0} for row in rows]
    if verdict == REPRODUCED:
        write("learning_rate", "metric", [{**row, "runs": 1} for row in rows], workload="cnn", data="digits")
        assert found(tmp_path, "C14").verdict == NO_DIFFERENCE, "one seed shows nothing"
    write("learning_rate", "metric", rows, workload="cnn", data="digits")
    write(
        "learning_rate",
        "runs",
        [{"subject": "x", "learning_rate": 1, "seed": 0, "epoch_s": 1}],
        workload="cnn",
        data="digits",
    )
    assert found(tmp_path, "C14").verdict == verdict


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
    assert found(tmp_path, "C15").verdict == verdict


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


def _around(name: str, value: float) -> dict[str, float]:
    return {name: value, f"{name}_low": 0.95 * value, f"{name}_high": 1.05 * value}


def test_sentence_has_the_hardware_in_its_verdict(tmp_path: Path, write: Callable) -> None:
    row = {"task": "gcn on cora", "subject": "mindspore graph tuned", **interval("threshold_ratio", 0.4, 0.6)}
    lab = SyntheticLab(tmp_path)
    files = lab.compare([Condition(workload="gcn")], precision=0.03, budget_s=1, block_s=0.1).files()
    write("frameworks", "learned", [{**row, "measurements": " ".join(files)}])
    result = experiments.module("claims").measure(None, lab)
    sentence = next(text for text in result.findings() if text.startswith("C2"))
    assert "published on Ascend 910" in sentence
    assert "Reproduced, in direction, on 2 cores of synthetic: gcn on cora, mindspore graph tuned: 2.04" in sentence
    summary = result.summary()
    assert summary["measurements"] == sorted(files)
    verdicts = pd.read_csv(tmp_path / "tables" / "claims_verdicts.csv").set_index("claim")
    assert verdicts.loc["C2", "measurements"].split() == files
    assert verdicts.loc["C2", "measured_here"].startswith("2.04 [1.67")
    assert "3.222" in verdicts.loc["C11", "doubt"]
    cases = pd.read_csv(tmp_path / "tables" / "claims_cases.csv")
    assert cases["claimed_ratio_low"].tolist() == pytest.approx([1 / 0.6])
    assert "ClaimsCasesCTwoGcn" in (tmp_path / "tables" / "claims_macros.tex").read_text()
    assert "claims_ratios.svg" in " ".join(summary["figures"])
