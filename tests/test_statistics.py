"""Intervals hold the truth as often as they say, and the process is the unit."""

import math

import numpy as np
import pytest

from benchlib.stats.intervals import Interval, geometric_interval, log_ratios, mean_interval
from benchlib.worker import warmup


def test_an_interval_is_students_on_the_logarithm():
    logs = np.log([1.0, 1.1, 1.2])
    interval, t = geometric_interval(logs), 4.302652729911275  # its 97.5 % point with 2 degrees of freedom
    ends = np.exp(logs.mean() + np.array([0, -1, 1]) * t * logs.std(ddof=1) / math.sqrt(3))
    assert (interval.estimate, interval.low, interval.high, interval.processes) == pytest.approx((*ends, 3))
    inverse = interval.map(lambda value: 1 / value)
    assert (inverse.estimate, inverse.low, inverse.high) == pytest.approx(tuple(1 / ends[[0, 2, 1]]))


def test_the_interval_over_processes_holds_the_truth_where_pooled_blocks_do_not():
    random = np.random.default_rng(1)
    held, pooled = 0, 0
    for _ in range(1000):
        process = random.normal(0, 0.05, size=5)  # FACTS: processes differ by 5 % and more, blocks within one by less
        blocks = process[:, None] + random.normal(0, 0.02, size=(5, 10))
        held += not geometric_interval(blocks.mean(axis=1)).excludes(1)
        pooled += not geometric_interval(blocks.ravel()).excludes(1)
    assert 930 <= held <= 970
    assert pooled < 700, "pooled blocks claim to know far more than they do"


def test_too_few_processes_show_nothing():
    assert not geometric_interval([]).excludes(1)
    one = geometric_interval([math.log(2)])
    assert one.estimate == pytest.approx(2)
    assert not one.excludes(1)
    assert "no interval: 1 process" in str(one)
    assert Interval(2.0, 1.5, 2.5, 5).excludes(1)
    assert not Interval(1.2, 0.9, 1.5, 5).excludes(1)


def test_ratios_are_taken_within_rounds():
    drift = {0: 1.0, 1: 2.0, 2: 4.0}  # the machine slows down from round to round, for both alike
    assert log_ratios(drift, {r: s / 2 for r, s in drift.items()}) == pytest.approx([math.log(2)] * 3)
    assert log_ratios({0: 1.0, 1: 5.0}, {0: 2.0}) == pytest.approx([math.log(0.5)]), "only the rounds that both have"


def test_steady_is_when_steps_get_neither_faster_nor_slower():
    falling = [10.0 * 0.8**i for i in range(20)]
    assert not any(warmup.is_steady(falling[:n]) for n in range(20))
    assert not warmup.is_steady([1.0] * 8), "too few to tell twice"
    assert warmup.is_steady([1.0] * 9)
    assert warmup.is_steady([9.0, 5.0, 2.0, 1.0, *[1.0] * 9])
    assert warmup.is_steady([1.0] * 9 + [5.0]), "one disturbed chunk does not undo it"
    assert not warmup.is_steady([2.0] * 5 + [1.0, 2.0, 2.0, 1.0]), "once is not twice"
    assert not any(warmup.is_steady([1.02**i for i in range(n)]) for n in range(40))


def warmed(step_times, limit_s):
    times = iter(step_times)
    return warmup.warm_up(lambda steps: steps * next(times), limit_s)


def test_warm_up_ends_by_rule_or_by_its_limit():
    done = warmed([5.0, 3.0, 2.0, 1.5, *[1.0] * 50], 100)
    assert done.verdict == warmup.STEADY
    assert 9 <= done.steps == len(done.times) <= 13
    done = warmed((100 * 0.5**i for i in range(1000)), 120)
    assert (done.verdict, done.times, done.seconds) == (warmup.TOO_FEW, [100, 50], 150)
    assert warmed((10 * 0.8**i for i in range(1000)), 47).verdict == warmup.NOT_STEADY


def test_a_process_that_gets_slower_is_told_at_once_and_a_rise_that_ends_is_waited_for():
    done = warmed((0.03 * 1.02**i for i in range(1000)), 100)
    assert (done.verdict, done.seconds < 3) == (warmup.SLOWING, True)
    done = warmed((0.03 * min(1.02**i, 1.5) for i in range(1000)), 100)
    assert (done.verdict, done.times[-1]) == (warmup.STEADY, pytest.approx(0.045))


def test_steps_of_microseconds_are_timed_in_chunks_and_for_long_enough():
    asked = []

    def timed(steps):
        asked.append(steps)
        return 2e-6 * steps

    done = warmup.warm_up(timed, limit_s=20)
    assert asked[0] == 1
    assert asked[-1] == pytest.approx(10_000, rel=0.01)
    assert warmup.LEAST_S <= done.seconds < 2 * warmup.LEAST_S
    assert done.steps == sum(asked)
    with pytest.raises(ValueError, match="impossible"):
        warmup.warm_up(lambda steps: -1.0, limit_s=1)


def test_growth_is_that_of_the_last_third_over_the_first():
    assert warmup.growth([0.0, 0.0, 5.0, 5.0, 0.3, 0.3]) == pytest.approx(0.3)
    assert warmup.growth([0.0, 0.1, 0.2, 0.3, 0.4]) is None, "too few blocks to tell it from noise"


def test_an_interval_of_a_mean_ends_where_the_mean_cannot_be():
    shares = [0.97, 0.99]  # Student's interval of two goes from 0.85 to 1.11
    assert mean_interval(shares).high > 1
    cut = mean_interval(shares, 0.0, 1.0)
    assert (cut.estimate, cut.low, cut.high) == (pytest.approx(0.98), mean_interval(shares).low, 1.0)
    assert mean_interval([0.1, 0.5], least=0).low == 0
    assert math.isnan(mean_interval([0.5], 0.0, 1.0).high)  # one shows no interval, and no edge makes one
