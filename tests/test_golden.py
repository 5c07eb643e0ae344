"""The golden master: the raw measurements of a quick run give exactly these estimates, intervals and verdicts."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import golden
import pandas as pd
import pytest

from benchlib import literature, notebooks, study
from benchlib.equivalence.certificate import Certificate
from benchlib.lab import Lab, Measures
from benchlib.stats.comparison import Comparison
from benchlib.stats.intervals import Interval

ROOT = Path(__file__).resolve().parents[1]
QUICK = ROOT / "parameters" / "quick"
NOTEBOOKS = list(golden.read(golden.EXPECTED)["frames"]) if golden.EXPECTED.exists() else []
IDENTITY = ("part", "quantity", "label", "baseline_label")
NUMBERS = ("estimate", "low", "high", "processes", "failed", "control", "control_low", "control_high", "margin")
WORDS = ("verdict", "why", "control_why")


def frames_of(folder: Path, notebooks: list[str]) -> dict[str, pd.DataFrame]:
    """The frame of each notebook, from a folder in which all of it is measured."""
    lab = Lab(outputs=folder, measures=Measures.NOTHING)
    return {name: measured(name, lab).frame for name in notebooks}


def measured(name: str, lab: Lab) -> study.Study:
    """A notebook's study, measured in a lab."""
    made = notebooks.design(ROOT / "notebooks" / f"{name}.ipynb", QUICK / f"{name}.yaml")
    made.measure(lab)
    return made


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as plain values, in order: identity, numbers, verdicts."""
    chosen = json.loads(frame[[*IDENTITY, *NUMBERS, *WORDS]].to_json(orient="records", double_precision=15))
    return sorted(chosen, key=lambda row: [str(row[name]) for name in IDENTITY])


def expected(folder: Path, notebooks: list[str]) -> dict[str, Any]:
    """All that the golden measurements in a folder give."""
    frames = frames_of(folder, notebooks)
    made = literature.judge(frames)
    cases = {name: rows[["case", "bears"]].values.tolist() for name, rows in made.cases.groupby("claim")}
    return {
        "frames": {name: rows_of(frame) for name, frame in frames.items()},
        "claims": {r.claim: {"verdict": r.verdict, "cases": cases.get(r.claim, [])} for r in made.claims.itertuples()},
    }


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("golden")
    golden.fill(folder)
    return expected(folder, NOTEBOOKS)


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_the_frame_is_the_golden_one(found: dict[str, Any], notebook: str) -> None:
    before, now = golden.read(golden.EXPECTED)["frames"][notebook], found["frames"][notebook]
    words, words_before = ([[row[name] for name in IDENTITY + WORDS] for row in rows] for rows in (now, before))
    assert words == words_before
    for one, other in zip(now, before, strict=True):
        for name in NUMBERS:
            if None in (one[name], other[name]):
                assert one[name] == other[name], (one, name)
            else:
                assert one[name] == pytest.approx(other[name], rel=1e-12), (one, name, other[name])


def test_the_claims_have_the_golden_verdicts(found: dict[str, Any]) -> None:
    assert json.loads(json.dumps(found["claims"])) == golden.read(golden.EXPECTED)["claims"]


def test_the_certificates_have_their_verdicts_by_their_checks() -> None:
    certificates = [Certificate.model_validate(one) for one in golden.read(golden.RAW)["certificates"]]
    assert len(certificates) > 20
    assert {one.verdict for one in certificates} == {"same"}
    worst = [check.worst for one in certificates for check in one.checks]
    assert all(math.isfinite(one) for one in worst)


@pytest.fixture(scope="module")
def compared() -> list[Comparison]:
    return golden.comparisons()


def ends(interval: Interval) -> tuple[float, float, float]:
    return interval.estimate, interval.low, interval.high


def test_of_a_swapped_baseline_every_ratio_is_the_inverse(compared: list[Comparison]) -> None:
    pairs = [(one, other) for one in compared for other in one.conditions[1:]]
    assert len(pairs) > 10
    for one, other in pairs:
        there, back = one.between(one.baseline, other), one.between(other, one.baseline)
        expected = (1 / there.estimate, 1 / there.high, 1 / there.low)
        assert ends(back) == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_where_all_times_are_scaled_every_ratio_is_the_same(compared: list[Comparison]) -> None:
    for one in compared:
        slower = [
            m.model_copy(update={"blocks": [b.model_copy(update={"wall_s": 3 * b.wall_s}) for b in m.blocks]})
            for m in one.measurements
        ]
        scaled = replace(one, measurements=slower)
        for condition in one.conditions[1:]:
            assert ends(scaled.ratio(condition)) == pytest.approx(ends(one.ratio(condition)), rel=1e-12, nan_ok=True)


def test_in_whichever_order_repetitions_come_every_ratio_is_the_same(compared: list[Comparison]) -> None:
    for one in compared:
        turned = replace(one, measurements=list(reversed(one.measurements)))
        for condition in one.conditions[1:]:
            assert ends(turned.ratio(condition)) == pytest.approx(ends(one.ratio(condition)), rel=1e-12, nan_ok=True)
