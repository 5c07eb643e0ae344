"""Simulated comparisons: only where the truth is known can it be seen how often the intervals hold it.

The noise has the levels that were measured: processes that differ from each other, blocks that differ within a process
and remember the one before, a machine that drifts from block to block, whosever turn it is, and now and then a
disturbed block. The planner and the statistics are those of the product; only the workers are made up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import signal, stats

from benchlib.stats.intervals import geometric_interval, log_ratios
from benchlib.stats.planner import PILOT, PILOT_ROUNDS, PRECISION, Paired, plan, rounds_for

TRUTH = 1.04
SPEEDS = {"baseline": 1.0, "control": 1.0, "condition": TRUTH}
ASKED = 0.03  # the precision
START_S, ROUND_S = 9.0, 0.5  # what a repetition costs before its rounds, and a round


@dataclass(frozen=True)
class Noise:
    """Standard deviations of the logarithm of a block's time, unless said otherwise."""

    name: str
    between: float  # of process means
    within: float  # of blocks in a process
    memory: float  # correlation of a block with the one before it in its process
    drift: float  # of the machine, in a round; its blocks come one after the other
    bursts: float  # share of blocks that are disturbed, by half their time


NOISES = (
    Noise("tuned lane, quiet", 0.015, 0.02, 0.3, 0.02, 0.0),
    Noise("tuned lane, restless", 0.02, 0.06, 0.5, 0.10, 0.03),
    Noise("default lane", 0.08, 0.03, 0.3, 0.02, 0.0),
    Noise("default lane, restless", 0.10, 0.06, 0.5, 0.10, 0.03),
    Noise("blocks only", 0.0, 0.08, 0.0, 0.02, 0.0),
)


def coverage(noise: Noise, comparisons: int, budget_s: float = 1200.0, pilot: int = PILOT) -> dict[str, object]:
    """How often the 95 % intervals of so many simulated comparisons hold the truth, in percent; what the
    blocks of all processes give if they are pooled as independent samples, as is usual (in pairs by round, and unpaired
    by Welch's interval); and what the planner took.
    """
    rng = np.random.default_rng(0)
    done = [_comparison(noise, rng, budget_s, pilot) for _ in range(comparisons)]
    share = {name: 100 * np.mean([one[name] for one in done]) for name in NAMES}
    return {
        "noise": noise.name,
        "holds %": share["holds"],
        "A/A holds 1 %": share["control"],
        "pooled rounds hold %": share["paired"],
        "pooled blocks hold %": share["pooled"],
        "precision reached %": share["reached"],
        "processes (median)": np.median([one["processes"] for one in done]),
        "rounds (median)": np.median([one["rounds"] for one in done]),
    }


NAMES = ("holds", "control", "paired", "pooled", "reached")


def _comparison(noise: Noise, rng: np.random.Generator, budget_s: float, pilot: int) -> dict[str, float]:
    """One comparison, planned as the product plans it: does its interval hold the truth?"""
    done: list[Paired] = []
    blocks: dict[str, list[np.ndarray]] = {name: [] for name in SPEEDS}
    while not (step := plan(done, ASKED, budget_s, pilot)).ended:
        paired, seconds = repetition(noise, rng, step.rounds or min(rounds_for(START_S, ROUND_S), PILOT_ROUNDS))
        done.append(paired)
        for name, values in seconds.items():
            blocks[name].append(values)
    intervals = {name: geometric_interval([float(np.mean(one.logs[name])) for one in done]) for name in done[0].logs}
    logs = [np.log(np.concatenate(blocks[name])) for name in ("baseline", "condition")]
    pooled = stats.ttest_ind(*logs, equal_var=False).confidence_interval(0.95)
    paired = stats.ttest_rel(*logs).confidence_interval(0.95)
    return {
        "holds": not intervals["condition"].excludes(TRUTH),
        "control": not intervals["control"].excludes(1),
        "paired": paired.low <= math.log(TRUTH) <= paired.high,
        "pooled": pooled.low <= math.log(TRUTH) <= pooled.high,
        "reached": step.ended == PRECISION,
        "processes": len(done),
        "rounds": step.rounds,
    }


def repetition(noise: Noise, rng: np.random.Generator, rounds: int) -> tuple[Paired, dict[str, np.ndarray]]:
    """What three processes in rounds (baseline, control, condition) give the planner, and the seconds of their blocks:
    a round's blocks in random order, as the machine drifts.
    """
    turns = len(SPEEDS)
    drift = np.cumsum(rng.normal(0, noise.drift / math.sqrt(turns), rounds * turns)).reshape(rounds, turns)
    drift = rng.permuted(drift, axis=1)
    seconds = {}
    for turn, (name, speed) in enumerate(SPEEDS.items()):
        own = rng.normal(0, noise.between) + drift[:, turn] + _blocks(noise, rng, rounds) - math.log(speed)
        seconds[name] = np.exp(own)
    by_round = {name: dict(enumerate(values)) for name, values in seconds.items()}
    logs = {name: log_ratios(by_round["baseline"], by_round[name]) for name in ("control", "condition")}
    return Paired(logs, start_s=START_S, round_s=ROUND_S), seconds


def _blocks(noise: Noise, rng: np.random.Generator, rounds: int) -> np.ndarray:
    fresh = rng.normal(0, noise.within, rounds)
    fresh[1:] *= math.sqrt(1 - noise.memory**2)
    return signal.lfilter([1.0], [1.0, -noise.memory], fresh) + 0.4 * (rng.random(rounds) < noise.bursts)
