"""The margin within which a ratio is the same: what lies in it, and who else says so."""

import math
from pathlib import Path

import pandas as pd
import pytest
from synthetic_lab import SyntheticLab

from benchlib import reprs
from benchlib.condition import Condition
from benchlib.stats.comparison import FASTER, NO_DIFFERENCE, SLOWER, Comparison, is_within, same_within, verdict_on
from benchlib.stats.intervals import Interval

SAME = "the same within 5 %"


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.98, 1.03, SAME),
        (1.01, 1.04, SAME),  # it excludes 1: so small a difference matters to nobody who chose the margin
        (0.96, 0.99, SAME),
        (0.95, 1.05, SAME),  # the ends belong to it
        (0.9499, 1.0, NO_DIFFERENCE),
        (1.0, 1.0501, NO_DIFFERENCE),
        (0.9499, 0.99, SLOWER),
        (1.01, 1.0501, FASTER),
        (1.06, 1.2, FASTER),
        (0.5, 0.9, SLOWER),
        (0.9, 1.1, NO_DIFFERENCE),
        (math.nan, math.nan, NO_DIFFERENCE),
    ],
)
def test_verdict_on_an_interval(low: float, high: float, verdict: str) -> None:
    assert verdict_on(Interval((low + high) / 2, low, high, 5), 0.05) == verdict


def test_the_verdict_names_the_margin() -> None:
    for margin, words in ((0.05, "5 %"), (0.07, "7 %"), (0.025, "2.5 %"), (0.001, "0.1 %")):
        assert same_within(margin) == f"the same within {words}"
        for edge in (1 - margin, 1 + margin):
            assert verdict_on(Interval(edge, edge, edge, 5), margin) == same_within(margin)
    frame = pd.DataFrame({"low": [0.95, 0.94, math.nan], "high": [1.05, 1.0, math.nan]})
    assert is_within(frame["low"], frame["high"], 0.05).tolist() == [True, False, False], "columns as one by one"


def compared(folder: Path, margin: float) -> Comparison:
    torch = Condition(workload="cnn")
    lab = SyntheticLab(folder, step=lambda condition: 0.01, spread=0.002)
    given = {"precision": 0.03, "budget_s": 60, "block_s": 0.1, "margin": margin}
    return lab.compare([torch, torch.but(framework="mindspore")], **given)


def test_a_comparison_has_a_margin_of_its_own(tmp_path: Path) -> None:
    assert compared(tmp_path, 0.05).ratios()["verdict"].tolist() == [SAME, SAME]
    assert SAME not in compared(tmp_path, 0.0001).ratios()["verdict"].tolist()
    assert f">{SAME}<" in reprs.html(compared(tmp_path, 0.05))
