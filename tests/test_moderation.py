"""Borrowed variances: what few peers, many, alike and wild ones make of an interval, and that it is the mixture that it
says it is.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize, stats

from benchlib.analysis import moderation
from benchlib.analysis.moderation import Spread, moderated, moderated_interval, width
from benchlib.analysis.statistics import geometric_interval

NORMAL = 1.959964


def rounds_of_processes(means, rounds=6, within=0.01, seed=0):
    """Logarithms by process and round, with exactly these means."""
    noise = np.random.default_rng(seed).normal(0, within, (len(means), rounds))
    return [list(mean + values - values.mean()) for mean, values in zip(means, noise, strict=True)]


def peers(count, sd=0.02, freedom=9, within=0.0, seed=1):
    """Spreads of comparisons whose processes have this standard deviation."""
    random = np.random.default_rng(seed)
    return [Spread(sd**2 * random.chisquare(freedom) / freedom, freedom, within) for _ in range(count)]


LOGS = rounds_of_processes([0.30, 0.33, 0.31])


def test_a_spread_is_the_variance_of_means_and_what_the_rounds_would_give_alone():
    spread = Spread.of([[1.0, 3.0], [2.0, 6.0], [7.0]])
    assert spread.variance == pytest.approx(np.var([2.0, 4.0, 7.0], ddof=1))
    assert spread.freedom == 2
    assert spread.within == pytest.approx((2.0 / 2 + 8.0 / 2) / 2), "of the processes that have two rounds"


@pytest.mark.parametrize("lenders", [[], peers(1), [*peers(1), Spread(0.0, 4, 0.0), Spread(0.01, 0, 0.0)]])
def test_with_fewer_than_two_peers_it_is_students(lenders):
    expected = geometric_interval([float(np.mean(rounds)) for rounds in LOGS])
    assert moderated_interval(LOGS, lenders) == expected
    assert moderated_interval(LOGS, peers(2)) != expected


def test_one_process_and_none_show_no_interval():
    assert moderated_interval([], peers(5)).processes == 0
    one = moderated_interval(LOGS[:1], peers(5))
    assert one.estimate == pytest.approx(math.exp(0.30))
    assert math.isnan(one.low)


def test_the_order_of_the_peers_changes_nothing():
    some = [*peers(6), *peers(4, sd=0.1, freedom=2)]
    forwards, backwards = (moderated_interval(LOGS, lenders) for lenders in (some, some[::-1]))
    assert forwards == backwards


@pytest.mark.parametrize("lenders", [peers(40), peers(10, sd=1.0), peers(10, sd=0.001)])
def test_a_ratio_is_never_shrunk(lenders):
    plain = geometric_interval([float(np.mean(rounds)) for rounds in LOGS])
    interval = moderated_interval(LOGS, lenders)
    assert interval.estimate == plain.estimate
    assert math.log(interval.high / interval.estimate) == pytest.approx(math.log(interval.estimate / interval.low))


def test_of_many_peers_that_are_alike_their_pooled_variance_is_borrowed():
    own = Spread(0.02**2, 2, 0.0)
    half = width(own, peers(60, sd=0.02))
    assert half == pytest.approx(NORMAL * 0.02 / math.sqrt(3), rel=0.1), "nearly as if the variance were known"
    lucky = width(Spread(0.002**2, 2, 0.0), peers(60, sd=0.02))
    assert lucky > 0.85 * half, "a variance that happens to look small is not believed"


def test_of_peers_that_differ_wildly_little_is_borrowed():
    own = Spread(0.02**2, 2, 0.0)
    wild = [Spread(0.02**2 * 10 ** (number - 3.5), 9, 0.0) for number in range(8)]
    assert width(own, wild) == pytest.approx(width(own, ()), rel=0.35)
    assert width(own, peers(8)) < 0.6 * width(own, ())


def test_a_restless_comparison_among_calm_ones_is_not_believed_calm():
    calm = width(Spread(0.02**2, 2, 0.0), peers(20))
    for sd in (0.1, 0.2, 1.0):
        restless = width(Spread(sd**2, 2, 0.0), peers(20))
        assert restless > 0.8 * NORMAL * sd / math.sqrt(3)
        assert restless > 3 * calm


def test_one_restless_peer_costs_the_calm_ones_little():
    own = Spread(0.02**2, 2, 0.0)
    assert width(own, [*peers(20), Spread(0.15**2, 4, 0.0)]) < 1.15 * width(own, peers(20))


def test_what_is_alike_may_be_the_ratio_to_the_scatter_within_processes():
    """Comparisons that differ by their rounds' scatter, whose processes differ in proportion."""
    random = np.random.default_rng(3)
    scales = 20 ** random.uniform(-1, 1, 20)
    lenders = [Spread(scale * 1e-4 * random.chisquare(9) / 9, 9, scale * 0.5e-4) for scale in scales]
    own = Spread(1e-4, 2, 0.5e-4)
    blind = [Spread(one.variance, one.freedom, 0.0) for one in lenders]
    assert width(own, lenders) == pytest.approx(NORMAL * 0.01 / math.sqrt(3), rel=0.2)
    assert width(own, blind) > 1.25 * width(own, lenders)
    ten_times = Spread(1e-4, 2, 100 * 0.5e-4)
    assert width(ten_times, lenders) > 2 * width(own, lenders), "its rounds say that it is a restless one"


@pytest.mark.parametrize("scale", [2.0, 0.013])
def test_it_is_the_same_in_other_units(scale):
    own, lenders = Spread(0.03**2, 3, 0.01**2), peers(7, within=0.01**2)
    scaled = [Spread(scale**2 * one.variance, one.freedom, scale**2 * one.within) for one in (own, *lenders)]
    assert width(scaled[0], scaled[1:]) == pytest.approx(scale * width(own, lenders), rel=0.01)


def test_more_processes_narrow_it_by_more_than_their_root():
    own, lenders = Spread(0.03**2, 2, 0.0), peers(4, freedom=2)
    now, then = width(own, lenders), width(own, lenders, 12)
    assert then < now / 2, "each brings a degree of freedom, too"
    assert width(own, lenders, 12, caution=4.0) == pytest.approx(2 * then)


def test_of_what_does_not_vary_at_all_nothing_is_known():
    assert moderated(Spread(0.0, 2, 0.0), peers(9)) is None
    assert width(Spread(0.0, 2, 0.0), peers(9)) == 0


@pytest.mark.parametrize(
    ("own", "lenders"),
    [
        (Spread(0.02**2, 2, 0.0), peers(4, freedom=2)),
        (Spread(0.05**2, 2, 0.0), peers(12, freedom=4)),
        (Spread(0.004**2, 4, 0.0), [*peers(8, freedom=2, seed=5), Spread(0.1**2, 3, 0.0)]),
    ],
    ids=["few", "wide", "narrow, one restless"],
)
def test_its_numbers_are_those_of_the_model_drawn_at_random(own, lenders):
    """Typical variances, degrees of freedom and shares drawn as the peers' variances make them likely, then variances
    of this comparison, weighted by how likely they make the one that was seen.
    """
    random = np.random.default_rng(0)
    middle = np.median([math.log(one.variance * one.freedom / stats.chi2.ppf(0.5, one.freedom)) for one in lenders])
    typical = np.exp(middle + np.linspace(-4, 4, 161))[:, None, None]
    freedoms, shares = moderation.FREEDOMS[:, None], moderation.RESTLESS_SHARES
    times = moderation.RESTLESS_VARIANCE
    likely = np.ones(np.broadcast_shapes(typical.shape, freedoms.shape, shares.shape))
    for one in lenders:
        calm, restless = (
            one.variance / level * stats.f.pdf(one.variance / level, one.freedom, borrowed)
            for level, borrowed in ((typical, freedoms), (times * typical, moderation.RESTLESS_FREEDOM))
        )
        likely = likely * ((1 - shares) * calm + shares * restless)
    drawn = random.choice(likely.size, 400_000, p=(likely / likely.sum()).ravel())
    at, by, share = (place for place in np.unravel_index(drawn, likely.shape))
    restless = random.random(len(drawn)) < shares[share]
    level = typical.ravel()[at] * np.where(restless, times, 1.0)
    freedom = np.where(restless, moderation.RESTLESS_FREEDOM, moderation.FREEDOMS[by])
    variances = level * freedom / random.chisquare(freedom)
    weights = stats.chi2.pdf(own.variance * own.freedom / variances, own.freedom) / variances
    errors = np.sqrt(variances / (own.freedom + 1))
    half = optimize.brentq(lambda h: np.average(stats.norm.cdf(h / errors), weights=weights) - 0.975, 1e-6, 10.0)
    assert width(own, lenders) == pytest.approx(half, rel=0.02)


def test_what_no_model_explains_still_gives_an_interval():
    """Peers of which each is well known, and which have nothing in common."""
    lenders = [Spread(10.0**power, 5000, 0.0) for power in (-14, -13, -2, -1, 8)]
    for own in (Spread(1e-20, 2, 0.0), Spread(1e-4, 2, 0.0), Spread(1e6, 3000, 0.0)):
        assert 0 < width(own, lenders) < 1e6
    assert width(own, lenders) == pytest.approx(width(own, ()), rel=0.01), "it is known well enough by itself"
