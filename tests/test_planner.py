"""The plan: how many blocks and processes, when it ends, and that the intervals still hold the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchlib.errors import BenchlibError
from benchlib.measure import planner
from benchlib.measure.planner import BUDGET, FAILED, PILOT, PRECISION, Paired, best_rounds, plan
from benchlib.measure.simulation import NOISES, Noise, coverage, repetition


def repetitions(n, between, within, rounds=5, start_s=9.0, round_s=0.5, seed=0):
    rng = np.random.default_rng(seed)
    return [
        Paired({"control": list(rng.normal(rng.normal(0, between), within, rounds))}, start_s, round_s)
        for _ in range(n)
    ]


def test_a_pilot_comes_first():
    assert plan([], 0.03, 600).ended is None
    assert plan([], 0.03, 600).rounds == planner.PILOT_ROUNDS
    done = repetitions(PILOT - 1, 0.0001, 0.0001)
    assert plan(done, 0.03, 600).ended is None, "however narrow it looks"
    assert plan(done, 0.03, 1).ended is None, "and whatever it costs: less says nothing"
    assert plan(done, 0.03, 600).more_processes == 1


def test_it_ends_at_the_precision_or_at_the_budget_and_says_what_more_it_would_have_taken():
    assert plan(repetitions(PILOT, 0.001, 0.002), 0.03, 600, PILOT + 1).more_processes == 1
    assert plan(repetitions(PILOT - 1, 0.001, 0.002), 0.03, 600, PILOT - 1).ended == PRECISION
    quiet = plan(repetitions(PILOT, 0.001, 0.002), 0.03, 600)
    assert (quiet.ended, quiet.more_processes) == (PRECISION, 0)
    assert quiet.half_width < 0.03
    noisy = repetitions(PILOT, 0.1, 0.02)
    assert plan(noisy, 0.03, 600).ended is None
    spent = plan(noisy, 0.03, 60)
    assert spent.ended == BUDGET
    assert spent.spent_s == pytest.approx(PILOT * 11.5)
    assert spent.more_processes > 20
    assert spent.more_s == pytest.approx(spent.more_processes * (9 + 0.5 * spent.rounds), rel=0.01)


def test_what_always_fails_does_not_keep_the_others_waiting():
    done = [Paired({**one.logs, "condition x": []}, 9.0, 0.5) for one in repetitions(PILOT, 0.001, 0.002)]
    assert plan(done, 0.03, 600).ended == PRECISION
    nothing = [Paired({}, 9.0, 0.5)] * PILOT
    assert plan(nothing, 0.03, 600).ended == FAILED


def test_a_process_that_failed_in_the_pilot_costs_its_own_measurement_only():
    done = repetitions(PILOT, 0.01, 0.02)
    both = [Paired({**one.logs, "condition x": one.logs["control"]}, 9.0, 0.5) for one in done]
    lacking = [Paired({"control": both[0].logs["control"]}, 9.0, 0.5), *both[1:]]
    assert plan(lacking, 0.03, 600).rounds >= 2
    late = [Paired({}, 9.0, 0.5)] * PILOT + done  # the whole pilot failed, and then it worked
    assert plan(late, 0.03, 600).ended is None or plan(late, 0.03, 600).ended == PRECISION


def test_a_ratio_of_few_processes_is_not_done_because_others_have_many():
    done = repetitions(2 * PILOT, 0.0001, 0.0001)
    assert plan(done, 0.03, 6000).ended == PRECISION
    values = iter(0.019 * np.arange(PILOT))  # these need 10 processes
    some = [Paired({**one.logs, "x": [next(values)] * 2 if n % 2 else []}, 9.0, 0.5) for n, one in enumerate(done)]
    step = plan(some, 0.03, 6000)
    assert step.half_width > 0.03
    assert (step.ended, step.more_processes) == (None, 5)


def test_blocks_of_a_process_balance_cost_against_variance():
    """Kalibera and Jones (2013): the square root of (cost ratio) x (variance within / between)."""

    def exactly(between, within):
        # two rounds above and below the process's mean, means above and below 0: variances are what they should be
        wave = within * np.array([1, -1] * 3) * math.sqrt(5 / 6)
        means = [between * sign for sign in (1, -1, 1, -1, 0)]
        return [Paired({"control": list(mean + wave)}, 9.0, 0.5) for mean in means]

    pilot = exactly(0.05, 0.10)
    within, between = 0.1**2, 0.05**2 * 4 / 4 - 0.1**2 / 6
    assert best_rounds(pilot) == round(math.sqrt(18 * within / between))
    assert best_rounds(exactly(0.2, 0.02)) == 2, "processes differ: many of them, short ones"
    assert best_rounds(exactly(0.0, 0.1)) == planner.MOST_ROUNDS, "processes do not differ: few of them, long ones"


def test_bad_requests_are_refused():
    for precision in (0, 1, -0.1, math.nan):
        with pytest.raises(BenchlibError, match="precision"):
            planner.require(precision, 600, 0.2, PILOT, 3)
    with pytest.raises(BenchlibError, match="block_s"):
        planner.require(0.03, 600, 0, PILOT, 3)
    with pytest.raises(BenchlibError, match=r"pilot 2: give 3 processes of each condition or more"):
        planner.require(0.03, 600, 0.2, 2, 3)
    with pytest.raises(BenchlibError, match=r"budget_s nan"):
        planner.require(0.03, math.nan, 0.2, PILOT, 3)


def test_a_plan_ends_whatever_precision_is_asked_for():
    noisy = repetitions(PILOT, 0.3, 0.1)
    step = plan(noisy, 1e-12, 1e300)
    assert step.ended is None
    assert planner.MOST_PROCESSES - PILOT <= step.more_processes < 1.1 * planner.MOST_PROCESSES


def test_what_no_plan_can_meet_is_refused():
    with pytest.raises(BenchlibError, match=r"precision 1e-12: a half-width below 0\.1 % cannot be resolved"):
        planner.require(1e-12, 600, 0.2, PILOT, 3)
    with pytest.raises(
        BenchlibError, match=r"block_s 1000\.0: give the seconds of a block, such as 0\.25, 300 at most"
    ):
        planner.require(0.03, 600, 1000.0, PILOT, 3)
    with pytest.raises(BenchlibError, match=r"budget_s 1e\+300: give the seconds of a comparison"):
        planner.require(0.03, 1e300, 0.2, PILOT, 3)
    with pytest.raises(BenchlibError, match=r"pilot 10*\.\.\. \(401 characters\): give 3"):
        planner.require(0.03, 600, 0.2, 10**400, 3)


def test_a_machine_that_drifts_is_no_longer_the_same_at_the_next_turn():
    drift = Noise("drift only", between=0.0, within=0.0, memory=0.0, drift=0.1, bursts=0.0)
    paired, _ = repetition(drift, np.random.default_rng(0), 1000)
    turns_apart = 4 / 3  # of three turns in random order, on the average
    assert np.std(paired.logs["control"]) == pytest.approx(0.1 * math.sqrt(turns_apart / 3), rel=0.1)
    assert np.mean(paired.logs["control"]) == pytest.approx(0, abs=0.01), "but in any order, so that nobody gains"


@pytest.mark.parametrize("noise", [NOISES[0], NOISES[2]], ids=lambda noise: noise.name)
def test_intervals_hold_the_truth_although_the_plan_stops_by_itself(noise: Noise):
    """A short form of benchmarks/coverage.py: with 300 comparisons 95 % is known to +-2.5 %."""
    found = coverage(noise, 300)
    assert 92 <= found["holds %"] <= 99
    assert found["pooled rounds hold %"] < 85, "rounds of a process are no independent samples"
    quick = coverage(noise, 300, budget_s=25, pilot=3)
    assert quick["processes (median)"] == 3
    assert 92 <= quick["holds %"] <= 99
