"""The plan: how many blocks and processes, when it ends, and that the intervals still hold the truth."""

import math

import numpy as np
import pytest

from benchlib.errors import BenchlibError
from benchlib.stats import planner
from benchlib.stats.planner import (
    BUDGET,
    FAILED,
    LEAST_PILOT,
    LEAST_ROUNDS,
    MOST_ROUNDS,
    PILOT,
    PRECISION,
    Paired,
    best_rounds,
    gain,
    is_settled,
    plan,
    rounds_for,
)

NOTHING = [Paired({}, 9.0, 0.5)] * PILOT


def repetitions(n, between, within, seed=0):
    rng = np.random.default_rng(seed)
    return [Paired({"control": list(rng.normal(rng.normal(0, between), within, 5))}, 9.0, 0.5) for _ in range(n)]


def test_a_pilot_comes_first():
    assert (plan([], 0.03, 600).ended, plan([], 0.03, 600).rounds) == (None, None)
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


def test_what_fails_does_not_keep_the_others_waiting():
    done = [Paired({**one.logs, "condition x": []}, 9.0, 0.5) for one in repetitions(PILOT, 0.001, 0.002)]
    assert plan(done, 0.03, 600).ended == PRECISION
    assert plan(NOTHING, 0.03, 600).ended == FAILED
    late = NOTHING + repetitions(PILOT, 0.001, 0.002)  # the whole pilot failed, and then it worked
    assert plan(late, 0.03, 600).ended == PRECISION
    once = [Paired({**one.logs, **({"x": [0.0, 0.01]} if n else {})}, 9.0, 0.5) for n, one in enumerate(done)]
    assert plan(once, 0.03, 600).rounds >= LEAST_ROUNDS


def test_a_ratio_of_few_processes_is_not_done_because_others_have_many():
    done = repetitions(2 * PILOT, 0.0001, 0.0001)
    assert plan(done, 0.03, 6000).ended == PRECISION
    values = iter(0.019 * np.arange(PILOT))  # these need 10 processes
    some = [Paired({**one.logs, "x": [next(values)] * 2 if n % 2 else []}, 9.0, 0.5) for n, one in enumerate(done)]
    step = plan(some, 0.03, 6000)
    assert step.half_width > 0.03
    assert (step.ended, step.more_processes) == (None, 5)


def test_a_process_is_measured_about_as_long_as_it_took_to_start():
    assert rounds_for(9.0, 0.5) == 18
    assert rounds_for(0.1, 0.5) == LEAST_ROUNDS
    assert rounds_for(600.0, 0.5) == MOST_ROUNDS
    assert rounds_for(9.0, 0.0) == MOST_ROUNDS


def exactly(between, within, start_s=9.0, round_s=0.5):
    """Two rounds above and below each process's mean, means above and below 0: variances are what they should be."""
    wave = within * np.array([1, -1] * 3) * math.sqrt(5 / 6)
    means = [between * sign for sign in (1, -1, 1, -1, 0)]
    return [Paired({"control": list(mean + wave)}, start_s, round_s) for mean in means]


def test_blocks_of_a_process_balance_cost_against_variance():
    """Kalibera and Jones (2013): the square root of (cost ratio) x (variance within / between)."""
    within, between = 0.1**2, 0.05**2 * 4 / 4 - 0.1**2 / 6
    assert best_rounds(exactly(0.05, 0.10)) == round(math.sqrt(18 * within / between))


def test_blocks_of_a_process_stay_near_the_length_of_its_start():
    """Variances of a few processes are not well known."""
    usual = rounds_for(9.0, 0.5)
    assert best_rounds(exactly(0.2, 0.02)) == usual / planner.LEANING, "processes differ: many of them, short ones"
    assert best_rounds(exactly(0.0, 0.1)) == usual * planner.LEANING, "they do not differ: few of them, long ones"
    assert best_rounds(exactly(0.2, 0.02, start_s=2.0)) == LEAST_ROUNDS
    assert best_rounds(exactly(0.0, 0.1, start_s=40.0)) == MOST_ROUNDS
    assert best_rounds(NOTHING) == usual, "nothing is known of what has always failed"


@pytest.mark.parametrize("precision", [0.003, 0.01, 0.03, 0.1])
def test_settled_is_a_plan_that_ends_whatever_the_budget(precision):
    for between in (0.002, 0.01, 0.05):
        for count in (LEAST_PILOT, 6, 12):
            done = repetitions(count, between, 0.01, seed=count)
            ended = plan(done, precision, math.inf, LEAST_PILOT).ended
            assert is_settled(done, precision) == (ended == PRECISION)
    assert is_settled(NOTHING, precision), "there is nothing to be had"


def test_it_does_not_end_where_an_interval_is_only_just_narrow_enough():
    """Looked at after every process, it would end where the variance happens to look small."""
    done = repetitions(2 * PILOT, 0.01, 0.01)
    half = plan(done, 0.5, math.inf).half_width
    assert plan(done, 1.01 * half, math.inf).ended is None
    assert plan(done, 1.01 * half, math.inf).more_processes >= 1
    assert plan(done, 2 * half, math.inf).ended == PRECISION


def test_the_gain_of_another_repetition_is_more_than_nothing_and_falls():
    done = exactly(0.05, 0.01) * 4
    gains = [gain(done[:count]) for count in (5, 10, 15, 20)]
    assert gains == sorted(gains, reverse=True)
    assert gains[-1] > 0
    assert gain(NOTHING) == 0
    calm, restless = exactly(0.01, 0.01), exactly(0.05, 0.01)
    both = [Paired({"calm": a.logs["control"], **b.logs}, 9.0, 0.5) for a, b in zip(calm, restless, strict=True)]
    assert gain(both) == pytest.approx(gain(restless)), "of the widest interval"


def test_while_a_ratio_is_disturbed_it_goes_on_up_to_the_budget():
    done = exactly(0.001, 0.001)
    assert plan(done, 0.03, 600).ended == PRECISION
    waiting = plan(done, 0.03, 600, disturbed=True)
    assert (waiting.ended, waiting.more_processes) == (None, 1)
    assert plan(done, 0.03, 60, disturbed=True).ended == BUDGET
    assert plan(NOTHING, 0.03, 600, disturbed=True).ended is None
    assert plan(NOTHING, 0.03, 40, disturbed=True).ended == BUDGET


def test_a_plan_ends_whatever_precision_is_asked_for():
    step = plan(repetitions(PILOT, 0.3, 0.1), 1e-12, 1e300)
    assert (step.ended, step.more_processes) == (None, planner.MOST_PROCESSES - PILOT)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("precision", [0, 1, -0.1, math.nan, 1e-12]),
        ("block_s", [0, 1000.0]),
        ("pilot", [2, 10**400]),
        ("margin", [0, 1, -0.1, math.nan]),
        ("budget_s", [math.nan, 1e300]),
    ],
)
def test_what_no_plan_can_meet_is_refused_by_name(name, values):
    asked = {"precision": 0.03, "budget_s": 600, "block_s": 0.2, "pilot": PILOT, "margin": 0.05}
    planner.require(**asked)
    for value in values:
        with pytest.raises(BenchlibError, match=rf"^{name} .+: ."):
            planner.require(**{**asked, name: value})
