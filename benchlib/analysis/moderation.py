"""Intervals whose variance is borrowed: from few processes a variance is hardly known, from those of other comparisons
it is.

The moderated t of Smyth ("Linear models and empirical Bayes methods", 2004): the variances of comparisons of one kind
are taken to come from one distribution, a scaled inverse chi-square with a typical variance and with so many degrees of
freedom, and a comparison's own variance is shrunk towards it. What comparisons have in common may be the variance
itself, or its ratio to what the scatter of rounds within their processes would give: the data say which. After Phipson
and others ("Robust hyperparameter estimation", 2016) a share of the comparisons may be restless, with a far larger
variance, so that these are not taken for the others. How much larger is next to unknown, so a restless one borrows
little: were it drawn towards a certain multiple, one beyond that would be believed too calm. With few comparisons all
this is itself not well known; so it is not fitted but averaged over, each possibility by how well it explains the
variances seen: the more it takes to know a variance, the nearer the interval is to Student's. Ratios are never shrunk.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from benchlib.analysis.statistics import CONFIDENCE, Interval, geometric_interval, half_width

LEAST_PEERS = 2
"""Other comparisons of the same kind, below which nothing is borrowed: the interval is then Student's."""

FREEDOMS = np.array([0.5, 2.0, 8.0, 32.0])
"""What the comparisons' variances may have in common, as degrees of freedom: from next to nothing to nearly all."""

RESTLESS_SHARES = np.array([0.1, 0.2, 0.3])
RESTLESS_VARIANCE, RESTLESS_FREEDOM = 25.0, np.array([2.0])
"""Times the typical variance: about that of a restless comparison, whose standard deviation is 5 times as large. It is
next to unknown how restless one is, so little is borrowed for it.
"""

_MOST_STEPS = 100
_NOTHING = 1e-300
_STEP = 0.25
_TYPICAL = _STEP * np.arange(-14, 15)  # logarithms of the typical variance, around the median of those seen


@dataclass(frozen=True)
class Spread:
    """How far the processes of one comparison lie from each other: the variance of their means, its degrees of freedom,
    and the variance that the scatter of the rounds within them would give alone.
    """

    variance: float
    freedom: int
    within: float

    @classmethod
    def of(cls, logs: Sequence[Sequence[float]]) -> Spread:
        """Of the logarithms of a ratio by round, for two processes or more."""
        means = [float(np.mean(rounds)) for rounds in logs]
        return cls.of_means(means, [float(np.var(rounds, ddof=1)) / len(rounds) for rounds in logs if len(rounds) > 1])

    @classmethod
    def of_means(cls, means: Sequence[float], scatters: Sequence[float]) -> Spread:
        """Of the processes' means, and what the scatter of the rounds of each would give for their variance."""
        within = statistics.fmean(scatters) if scatters else 0.0
        mean, freedom = statistics.fmean(means), len(means) - 1
        return cls(math.fsum((float(one) - mean) ** 2 for one in means) / freedom, freedom, within)


@dataclass(frozen=True)
class Moderated:
    """What is known of the variance of one mean over ``processes``: a mixture of scaled inverse chi-squares."""

    processes: int
    weights: np.ndarray
    variances: np.ndarray  # of one process
    freedoms: np.ndarray

    def half_width(self, processes: int, caution: float = 1.0) -> float:
        """Of the interval for a mean over ``processes``, should the variance of those that are still to come be as
        expected, times ``caution``.
        """
        scales = np.sqrt(self.variances * caution / processes)
        freedoms = self.freedoms + (processes - self.processes)
        wanted = (1 + CONFIDENCE) / 2
        constants = np.exp(special.gammaln((freedoms + 1) / 2) - special.gammaln(freedoms / 2))
        heights = self.weights * constants / np.sqrt(freedoms * math.pi) / scales
        low, high = 0.0, math.inf
        half = special.stdtrit(freedoms.min(), wanted) * math.sqrt(self.weights @ scales**2)
        # Newton's method on the normal scale, on which this is nearly a straight line.
        for _ in range(_MOST_STEPS):
            away = half / scales
            below = min(float(self.weights @ special.stdtr(freedoms, away)), 1 - 1e-12)
            density = heights @ np.exp(-(freedoms + 1) / 2 * np.log1p(away**2 / freedoms))
            low, high = (half, high) if below < wanted else (low, half)
            normal = float(special.ndtri(below))
            slope = float(density) * math.sqrt(2 * math.pi) * math.exp(normal**2 / 2)
            step = (float(special.ndtri(wanted)) - normal) / slope
            before, half = half, half + step
            if not low < half < high:
                half = (low + high) / 2 if high < math.inf else 2 * low
            if abs(half - before) <= 1e-4 * half:  # the error is of the order of its square
                break
        return half


def moderated_interval(logs: Sequence[Sequence[float]], peers: Sequence[Spread]) -> Interval:
    """exp of the mean of the means of ``logs`` (by round, for each process), with an interval on the logarithm's scale
    whose variance is moderated by the ``peers``: other comparisons of its kind. With fewer than ``LEAST_PEERS`` it is
    Student's.
    """
    means = [float(np.mean(rounds)) for rounds in logs]
    if len(means) < 2:
        return geometric_interval(means)
    mean, half = float(np.mean(means)), width(Spread.of(logs), peers)
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half), len(means))


def width(own: Spread, peers: Sequence[Spread], processes: int | None = None, caution: float = 1.0) -> float:
    """Half the width of the moderated interval for the mean of processes with this spread; of one over more
    ``processes``, should their variance be as expected, times ``caution``.
    """
    processes = processes or own.freedom + 1
    known = moderated(own, peers)
    if known is None:
        return half_width(math.sqrt(own.variance * caution), processes)
    return known.half_width(processes, caution)


def moderated(own: Spread, peers: Sequence[Spread]) -> Moderated | None:
    """What is known of a variance, with the ``peers``; None where they are too few, or where there is none at all."""
    lenders = usable(peers)
    return _moderated(own, lenders) if lenders and own.variance > 0 else None


def usable(peers: Sequence[Spread]) -> tuple[Spread, ...]:
    """The peers from whom something can be borrowed, in an order that does not depend on theirs; none, where they are
    too few.
    """
    lenders = [peer for peer in peers if peer.variance > 0 and peer.freedom > 0]
    lenders.sort(key=operator.attrgetter("variance", "freedom", "within"))
    return tuple(lenders) if len(lenders) >= LEAST_PEERS else ()


@functools.lru_cache(maxsize=1024)
def _moderated(own: Spread, peers: tuple[Spread, ...]) -> Moderated:
    relative = [False, True] if min(one.within for one in (own, *peers)) > 0 else [False]
    parts = [_part(own, peers, of_within) for of_within in relative]
    logs, variances, freedoms = (np.concatenate(values) for values in zip(*parts, strict=True))
    weights = np.exp(logs - logs.max())
    heavy = weights > 1e-4 * weights.max()
    return Moderated(own.freedom + 1, weights[heavy] / weights[heavy].sum(), variances[heavy], freedoms[heavy])


def _part(own: Spread, peers: tuple[Spread, ...], of_within: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """If it is the variances that are alike, or (``of_within``) their ratios to what the scatter within processes would
    give: logarithms of weights, the variances, and the degrees of freedom that these mean.
    """
    centre, if_calm, if_restless = _of_peers(peers, of_within)
    typical = np.exp(centre + _TYPICAL)[:, None] * (own.within if of_within else 1.0)
    weights, variances, borrowed = [], [], []
    for likelihood, level, freedom in (
        (if_calm, typical, FREEDOMS),
        (if_restless, RESTLESS_VARIANCE * typical, RESTLESS_FREEDOM),
    ):
        weights.append((likelihood + _density(own.variance / level, own.freedom, freedom)).ravel())
        variances.append(((freedom * level + own.freedom * own.variance) / (freedom + own.freedom)).ravel())
        borrowed.append(np.broadcast_to(freedom, likelihood.shape).ravel())
    return np.concatenate(weights), np.concatenate(variances), np.concatenate(borrowed) + own.freedom


@functools.lru_cache(maxsize=1024)
def _of_peers(peers: tuple[Spread, ...], of_within: bool) -> tuple[float, np.ndarray, np.ndarray]:
    """Where the typical variances are centred (a logarithm), and the logarithms of how likely they make the peers'
    variances and that another comparison is calm, by typical variance and degrees of freedom; or that it is restless.
    """
    seen = [(peer.variance / (peer.within if of_within else 1.0), peer.freedom) for peer in peers]
    centre = _STEP * round(statistics.median(itertools.starmap(_unbiased, seen)) / _STEP)
    each = [_of_peer(variance, freedom, centre) for variance, freedom in seen]
    likelihood = np.sum(each, axis=0)
    most = likelihood.max()
    likely = np.exp(likelihood - most)
    if_calm, if_restless = likely @ (1 - RESTLESS_SHARES), (likely @ RESTLESS_SHARES).sum(axis=-1, keepdims=True)
    return centre, *(most + np.log(np.maximum(values, _NOTHING)) for values in (if_calm, if_restless))


@functools.lru_cache(maxsize=2048)  # of 5 KiB each
def _of_peer(variance: float, freedom: int, centre: float) -> np.ndarray:
    """The logarithm of the likelihood of a peer's variance, by typical variance, degrees of freedom and share of the
    restless. When one of the peers gets another process, the others stay as they are.
    """
    relative = variance / np.exp(centre + _TYPICAL)[:, None]
    calm = _density(relative, freedom, FREEDOMS)[..., None]
    restless = _density(relative / RESTLESS_VARIANCE, freedom, RESTLESS_FREEDOM)[..., None]
    return np.logaddexp(np.log1p(-RESTLESS_SHARES) + calm, np.log(RESTLESS_SHARES) + restless)


@functools.lru_cache(maxsize=2048)
def _unbiased(variance: float, freedom: int) -> float:
    """The logarithm of a variance, less what it is on average too low."""
    return math.log(variance) - float(special.digamma(freedom / 2)) + math.log(freedom / 2)


def _density(ratio: np.ndarray, freedom: np.ndarray | float, borrowed: np.ndarray) -> np.ndarray:
    """The logarithm of the density of the logarithm of an F-distributed ``ratio`` of variances."""
    return (
        freedom / 2 * np.log(freedom * ratio)
        + borrowed / 2 * np.log(borrowed)
        - (freedom + borrowed) / 2 * np.log(freedom * ratio + borrowed)
        - special.betaln(freedom / 2, borrowed / 2)
    )
