"""Simulated comparisons: the noise is what it says it is, and the intervals hold the truth in it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchlib.measure.planner import LEAST_PILOT, best_rounds
from benchlib.measure.simulation import (
    FOLDERS,
    HOSTED,
    HOSTED_FOLDERS,
    NO_HOSTS,
    NOISES,
    OPENING_S,
    ROUND_S,
    START_S,
    TOGETHER,
    TRUTH,
    Noise,
    _Member,
    coverage,
    coverages,
    moderated_coverage,
    moderated_row,
    repetition,
)


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


@pytest.mark.parametrize("noise", [NOISES[0], NOISES[2]], ids=lambda noise: noise.name)
def test_intervals_hold_the_truth_although_the_plan_stops_by_itself(noise: Noise):
    """A short form of benchmarks/coverage.py: with 300 comparisons 95 % is known to +-2.5 %."""
    row = coverage(noise, 300)
    assert 92 <= row["holds %"] <= 99
    assert row["pooled rounds hold %"] < 85, "rounds of a process are no independent samples"
    quick = coverage(noise, 300, budget_s=25, pilot=3)
    assert quick["processes (median)"] == 3
    assert 92 <= quick["holds %"] <= 99


RESTLESS = next(folder for folder in FOLDERS if folder.some_restless)


@pytest.mark.parametrize("folder", [FOLDERS[0], FOLDERS[2], RESTLESS], ids=lambda folder: folder.name)
def test_moderated_intervals_of_few_processes_hold_the_truth_and_are_narrower(folder):
    """A short form of benchmarks/coverage.py: with 400 comparisons 95 % is known to +-2.2 %."""
    row = moderated_row(folder, moderated_coverage(folder, 400, minutes=0))
    assert row["processes (median)"] == LEAST_PILOT
    assert 92 <= row["holds %"] <= 98.5
    assert 92 <= row["A/A holds 1 %"] <= 98.5
    assert row["half-width over Student's"] < 0.75


def test_a_shared_clock_gives_the_restless_more_and_ends_in_time():
    frame = moderated_coverage(RESTLESS, 3 * TOGETHER)
    restless = frame["factor"] > 1
    assert 0 < restless.sum() < 15
    assert frame.loc[restless, "processes"].mean() > 1.5 * frame.loc[~restless, "processes"].mean()
    assert frame["processes"].min() >= LEAST_PILOT
    pilots = moderated_coverage(RESTLESS, TOGETHER, minutes=0)
    assert set(pilots["processes"]) == {LEAST_PILOT}, "they are finished, whatever the clock says"
    quiet = moderated_coverage(FOLDERS[0], TOGETHER, minutes=1e6)
    assert quiet["reached"].all(), "all the time there is: it ends by itself"
    assert quiet["processes"].max() < 20


def test_comparisons_of_a_folder_differ_as_it_says():
    random = np.random.default_rng(0)
    spread = FOLDERS[-1].factors(random, 10_000)
    assert spread.max() / spread.min() == pytest.approx(20, rel=0.01)
    assert np.mean(RESTLESS.factors(random, 10_000) == 5) == pytest.approx(0.1, abs=0.02)
    noise = RESTLESS.scaled(5.0)
    assert (noise.between, noise.within) == (5 * RESTLESS.noise.between, 5 * RESTLESS.noise.within)


def test_a_table_of_all_kinds_has_students_and_moderated_intervals():
    table = coverages(20, 25.0, LEAST_PILOT)
    assert list(table["noise"]) == [folder.name for folder in FOLDERS]
    assert table["holds %"].count() == len(NOISES), "those whose comparisons are alike"
    assert table["moderated hold %"].between(50, 100).all()
    assert (table["their half-widths over Student's"] < 1).all()


def test_what_a_process_hosts_has_in_common_what_the_process_is():
    noise = Noise("hosts", between=0.1, within=0.0, memory=0.0, drift=0.0, bursts=0.0, common=0.75)
    rng = np.random.default_rng(0)
    pairs = []
    for _ in range(2000):
        hosts = rng.normal(size=3)
        pairs.append([repetition(noise, rng, 2, hosts)[0].means["condition"] for _ in range(2)])
    one, other = np.transpose(pairs)
    assert np.std(one) == pytest.approx(0.1 * math.sqrt(2), rel=0.05)
    assert np.corrcoef(one, other)[0, 1] == pytest.approx(0.75, abs=0.03)


def test_comparisons_in_common_processes_borrow_from_others_and_hold_the_truth():
    """All of a folder in the same processes, which are fast or slow whatever they host: none can lend to another."""
    common = next(folder for folder in HOSTED_FOLDERS if folder.noise.common == 1)
    row = moderated_row(common, moderated_coverage(common, 800, minutes=0, together=HOSTED))
    assert row["half-width over Student's"] == pytest.approx(1)
    assert row["holds %"] >= 92.5
    row = moderated_row(common, moderated_coverage(common, 400, minutes=0))
    assert row["half-width over Student's"] < 0.75
    assert row["holds %"] >= 92


def test_a_repetition_is_priced_as_the_product_prices_it():
    member = _Member(NOISES[0], 1.0)
    rng = np.random.default_rng(0)
    for rounds in (40, 40, 40):
        member.repeat(rng, rounds, NO_HOSTS)
    assert best_rounds(member.done) != 40
    assert member.worth.own_s == START_S - OPENING_S + best_rounds(member.done) * ROUND_S
