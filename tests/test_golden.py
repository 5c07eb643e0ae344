"""The golden master: the raw measurements of a quick run give exactly these estimates, intervals and verdicts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import golden
import pandas as pd
import pytest

from benchlib.analysis.certificates import Certificate
from benchlib.lab import Lab, Measures
from benchlib.suite import claims, experiments

QUICK = Path(__file__).resolve().parents[1] / "parameters" / "quick"
NOTEBOOKS = [
    name for name in experiments.NOTEBOOKS if (QUICK / f"{name}.yaml").exists() and name not in ("claims", "report")
]
IDENTITY = ("part", "quantity", "label", "baseline_label")
NUMBERS = ("estimate", "low", "high", "processes", "failed", "control", "control_low", "control_high", "margin")
WORDS = ("verdict", "why", "control_why")


class Frames:
    """What the claims' rules ask for, from frames in memory."""

    def __init__(self, frames: dict[str, pd.DataFrame]) -> None:
        self.frames, self.stale = frames, {}

    def rows(self, notebook: str, quantity: str) -> pd.DataFrame:
        frame = self.frames.get(notebook, next(iter(self.frames.values())).iloc[:0])
        return frame[frame["quantity"] == quantity]


def frames_of(folder: Path) -> dict[str, pd.DataFrame]:
    """The frame of each notebook, from a folder in which all is measured."""
    lab = Lab(outputs=folder, measures=Measures.NOTHING)
    return {
        name: experiments.module(name).measure(experiments.load(name, QUICK / f"{name}.yaml"), lab).frame
        for name in NOTEBOOKS
    }


def rows_of(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a frame as plain values, in order: identity, numbers, verdicts."""
    chosen = json.loads(frame[[*IDENTITY, *NUMBERS, *WORDS]].to_json(orient="records", double_precision=15))
    return sorted(chosen, key=lambda row: [str(row[name]) for name in IDENTITY])


def expected(folder: Path) -> dict[str, Any]:
    """All that the golden measurements in a folder give."""
    frames = frames_of(folder)
    return {
        "frames": {name: rows_of(frame) for name, frame in frames.items()},
        "claims": {
            one.claim.id: {"verdict": one.verdict, "cases": [(case.of, case.bears) for case in one.outcome.cases]}
            for one in claims.judged(Frames(frames))
        },
    }


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("golden")
    golden.fill(folder)
    return expected(folder)


@pytest.mark.parametrize("notebook", NOTEBOOKS)
def test_the_frame_is_the_golden_one(found: dict[str, Any], notebook: str) -> None:
    before, now = golden.read(golden.EXPECTED)["frames"][notebook], found["frames"][notebook]
    assert [[row[name] for name in IDENTITY + WORDS] for row in now] == [
        [row[name] for name in IDENTITY + WORDS] for row in before
    ]
    for one, other in zip(now, before, strict=True):
        for name in NUMBERS:
            assert one[name] == pytest.approx(other[name], rel=1e-12, nan_ok=True), (one, name, other[name])


def test_the_claims_have_the_golden_verdicts(found: dict[str, Any]) -> None:
    assert json.loads(json.dumps(found["claims"])) == golden.read(golden.EXPECTED)["claims"]


def test_the_certificates_have_their_verdicts_by_their_checks() -> None:
    certificates = [Certificate.model_validate(one) for one in golden.read(golden.RAW)["certificates"]]
    assert len(certificates) > 30
    assert {one.verdict for one in certificates} == {"same"}
    worst = [check.worst for one in certificates for check in one.checks]
    assert all(math.isfinite(one) for one in worst)
