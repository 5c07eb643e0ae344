"""Simulated comparisons: the noise is what it says it is, and the intervals hold the truth in it."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

from simulation import NOISES, TRUTH, Noise, coverage, repetition  # noqa: E402


def test_a_machine_that_drifts_is_no_longer_the_same_at_the_next_turn():
    drift = Noise("drift only", between=0.0, within=0.0, memory=0.0, drift=0.1, bursts=0.0)
    paired, _ = repetition(drift, np.random.default_rng(0), 1000)
    turns_apart = 4 / 3  # of three turns in random order, on the average
    assert np.std(paired.logs["control"]) == pytest.approx(0.1 * math.sqrt(turns_apart / 3), rel=0.1)
    assert np.mean(paired.logs["control"]) == pytest.approx(0, abs=0.01), "but in any order, so that nobody gains"


def test_blocks_remember_the_one_before_and_scatter_as_much_as_they_are_told_to():
    noise = Noise("blocks", between=0.0, within=0.1, memory=0.6, drift=0.0, bursts=0.0)
    paired, seconds = repetition(noise, np.random.default_rng(0), 20_000)
    logs = np.log(seconds["baseline"])
    assert np.std(logs) == pytest.approx(0.1, rel=0.05)
    assert np.corrcoef(logs[1:], logs[:-1])[0, 1] == pytest.approx(0.6, abs=0.03)
    assert np.mean(paired.logs["condition"]) == pytest.approx(math.log(TRUTH), abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("noise", [NOISES[0], NOISES[2]], ids=lambda noise: noise.name)
def test_intervals_hold_the_truth_although_the_plan_stops_by_itself(noise: Noise):
    """A short form of benchmarks/coverage.py: with 300 comparisons 95 % is known to +-2.5 %."""
    row = coverage(noise, 300)
    assert 92 <= row["holds %"] <= 99
    assert row["pooled rounds hold %"] < 85, "rounds of a process are no independent samples"
    quick = coverage(noise, 300, budget_s=25, pilot=3)
    assert quick["processes (median)"] == 3
    assert 92 <= quick["holds %"] <= 99
