"""Simulated comparisons: only where the truth is known can it be seen how often the intervals hold it.

The noise has the levels that were measured: processes that differ from each other, blocks that differ within a process
and remember the one before, a machine that drifts from block to block, whosever turn it is, and now and then a
disturbed block. The planner and the statistics are those of the product; only the workers are made up.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from scipy import signal, stats

from benchlib.analysis.length import pilot_rounds
from benchlib.analysis.moderation import moderated_interval
from benchlib.analysis.planner import (
    LEAST_PILOT,
    PILOT,
    PRECISION,
    Paired,
    Peers,
    best_rounds,
    gain,
    plan,
    settled,
    spreads,
)
from benchlib.analysis.sharing import Worth, best_together
from benchlib.analysis.statistics import geometric_interval, rounds_of

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
    common: float = 0.0  # share of the variance between processes that is the same in all that a process hosts


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
        paired, seconds = repetition(noise, rng, step.rounds or pilot_rounds(START_S, ROUND_S))
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


NO_HOSTS = np.zeros(len(SPEEDS))


def repetition(
    noise: Noise, rng: np.random.Generator, rounds: int, hosts: np.ndarray = NO_HOSTS
) -> tuple[Paired, dict[str, np.ndarray]]:
    """What three processes in rounds (baseline, control, condition) give the planner, and the seconds of their blocks:
    a round's blocks in random order, as the machine drifts. ``hosts`` are how these processes differ from others, in
    standard deviations, whatever they host.
    """
    turns = len(SPEEDS)
    alone, common = math.sqrt(1 - noise.common) * noise.between, math.sqrt(noise.common) * noise.between
    drift = np.cumsum(rng.normal(0, noise.drift / math.sqrt(turns), rounds * turns)).reshape(rounds, turns)
    drift = rng.permuted(drift, axis=1)
    seconds = {}
    for turn, (name, speed) in enumerate(SPEEDS.items()):
        of_process = rng.normal(0, alone) + common * hosts[turn]
        own = of_process + drift[:, turn] + _blocks(noise, rng, rounds) - math.log(speed)
        seconds[name] = np.exp(own)
    by_round = {name: dict(enumerate(values)) for name, values in seconds.items()}
    logs = {name: rounds_of(by_round["baseline"], by_round[name]) for name in ("control", "condition")}
    return Paired(logs, start_s=START_S, round_s=ROUND_S), seconds


def _blocks(noise: Noise, rng: np.random.Generator, rounds: int) -> np.ndarray:
    fresh = rng.normal(0, noise.within, rounds)
    fresh[1:] *= math.sqrt(1 - noise.memory**2)
    return signal.lfilter([1.0], [1.0, -noise.memory], fresh) + 0.4 * (rng.random(rounds) < noise.bursts)


@dataclass(frozen=True)
class Folder:
    """A kind of noise, and how the comparisons of an outputs folder differ: in each the standard deviations, but for
    the machine's drift, are so many times larger.
    """

    name: str
    noise: Noise
    factors: Callable[[np.random.Generator, int], np.ndarray]
    of_blocks: bool = True  # of the blocks in a process, too; else of the process means only

    def scaled(self, factor: float) -> Noise:
        within = self.noise.within * (factor if self.of_blocks else 1.0)
        return replace(self.noise, between=factor * self.noise.between, within=within)

    @property
    def some_restless(self) -> bool:
        return self.factors is _restless


def _alike(rng: np.random.Generator, comparisons: int) -> np.ndarray:
    return np.ones(comparisons)


def _restless(rng: np.random.Generator, comparisons: int) -> np.ndarray:
    return np.where(rng.random(comparisons) < 0.1, 5.0, 1.0)


def _spread(rng: np.random.Generator, comparisons: int) -> np.ndarray:
    return 20 ** rng.uniform(-0.5, 0.5, comparisons)


FOLDERS = (
    *(Folder(noise.name, noise, _alike) for noise in NOISES),
    Folder("one in ten restless", NOISES[0], _restless),
    Folder("one in ten restless, processes only", NOISES[0], _restless, of_blocks=False),
    Folder("sds that differ 20 times", NOISES[0], _spread),
)
HOSTED_FOLDERS = (
    Folder("hosted, half in common", replace(NOISES[0], common=0.5), _alike),
    Folder("hosted, all in common", replace(NOISES[0], common=1.0), _alike),
    Folder("default lane, hosted, all in common", replace(NOISES[2], common=1.0), _alike),
)
"""Where comparisons that are hosted by the same processes are fast or slow with these."""

TOGETHER, HOSTED = 20, 4  # comparisons in a folder, and of these in the same processes
OPENING_S = 5.0  # of START_S: what those that are hosted together share
CLOCK_MINUTES = 22.0  # of a folder: most comparisons end with 3 to 8 processes


def moderated_coverage(
    folder: Folder,
    comparisons: int,
    minutes: float = CLOCK_MINUTES,
    pilot: int = LEAST_PILOT,
    seed: int = 0,
    together: int = TOGETHER,
) -> pd.DataFrame:
    """Simulated comparisons, a row each: does the moderated interval hold the truth, and how wide is it? So many
    ``together`` lie in a folder, are brought to their pilots, and share a clock as in ``Lab.sharpen``.
    """
    rng = np.random.default_rng(seed)
    folders = (_folder(folder, rng, 60 * minutes, pilot, together) for _ in range(math.ceil(comparisons / together)))
    return pd.DataFrame([one for done in folders for one in done])


def moderated_row(folder: Folder, frame: pd.DataFrame) -> dict[str, object]:
    """What :func:`moderated_coverage` gave, in a row: how often intervals hold the truth, in percent, of all, of the
    restless, and by the processes that they had when the clock stopped (and how many had so many).
    """
    restless = frame[(frame["factor"] > 1) & folder.some_restless]
    by_processes = {
        f"{low} to {high}" if low < high else f"{low}": frame["processes"].between(low, high)
        for low, high in ((LEAST_PILOT, LEAST_PILOT), (4, 5), (6, 8))
    }
    return {
        "noise": folder.name,
        "holds %": 100 * frame["holds"].mean(),
        "A/A holds 1 %": 100 * frame["control"].mean(),
        "restless hold %": 100 * restless["holds"].mean(),
        **{f"with {name} %": 100 * frame.loc[those, "holds"].mean() for name, those in by_processes.items()},
        **{f"of {name}": int(those.sum()) for name, those in by_processes.items()},
        "Student's holds %": 100 * frame["student"].mean(),
        "half-width over Student's": (frame["half_width"] / frame["student_half_width"]).median(),
        "processes (median)": frame["processes"].median(),
        "precision reached %": 100 * frame["reached"].mean(),
    }


def coverages(comparisons: int, budget_s: float, pilot: int) -> pd.DataFrame:
    """By kind of noise :func:`coverage`, of the kinds in which comparisons are alike, and how often the moderated
    intervals of so many comparisons or a few more hold the truth over the pilot's processes alone.
    """
    alone = pd.DataFrame([coverage(noise, comparisons, budget_s, pilot) for noise in NOISES])
    rows = [moderated_row(folder, moderated_coverage(folder, comparisons, 0.0, pilot)) for folder in FOLDERS]
    names = {
        "noise": "noise",
        "holds %": "moderated hold %",
        "A/A holds 1 %": "moderated A/A hold 1 %",
        "half-width over Student's": "their half-widths over Student's",
    }
    return alone.merge(pd.DataFrame(rows)[list(names)].rename(columns=names), on="noise", how="right")


@dataclass
class _Member:
    """A simulated comparison of a folder, and what the others lend it."""

    noise: Noise
    factor: float
    done: list[Paired] = field(default_factory=list)
    peers: Peers = field(default_factory=dict)

    def repeat(self, rng: np.random.Generator, rounds: int, hosts: np.ndarray) -> float:
        """Another repetition; the seconds that it takes, but for the opening of its processes."""
        self.done.append(repetition(self.noise, rng, rounds, hosts)[0])
        return START_S - OPENING_S + rounds * ROUND_S

    @property
    def worth(self) -> Worth:
        own_s = START_S - OPENING_S + best_rounds(self.done) * ROUND_S
        return Worth(gain(self.done, self.peers), OPENING_S, own_s)

    @property
    def outcome(self) -> dict[str, float]:
        intervals = {
            name: moderated_interval([paired.logs[name] for paired in self.done], lenders)
            for name, lenders in self.peers.items()
        }
        student = geometric_interval([paired.means["condition"] for paired in self.done])
        return {
            "factor": self.factor,
            "holds": not intervals["condition"].excludes(TRUTH),
            "control": not intervals["control"].excludes(1),
            "student": not student.excludes(TRUTH),
            "half_width": intervals["condition"].half_width,
            "student_half_width": student.half_width,
            "processes": len(self.done),
            "reached": settled(self.done, ASKED, self.peers),
        }


def _folder(
    folder: Folder, rng: np.random.Generator, clock_s: float, pilot: int, together: int
) -> list[dict[str, float]]:
    members = [_Member(folder.scaled(factor), factor) for factor in folder.factors(rng, together)]
    hosts = [members[first : first + HOSTED] for first in range(0, together, HOSTED)]
    spent_s = 0.0
    for host in hosts * pilot:
        opened = rng.normal(size=len(SPEEDS))
        spent_s += OPENING_S + sum(one.repeat(rng, pilot_rounds(START_S, ROUND_S), opened) for one in host)
    _lend(hosts)
    while spent_s < clock_s and (repeated := _best(hosts, clock_s - spent_s)):
        opened = rng.normal(size=len(SPEEDS))
        spent_s += OPENING_S + sum(one.repeat(rng, best_rounds(one.done), opened) for one in repeated)
        _lend(hosts)
    return [one.outcome for one in members]


def _best(hosts: list[list[_Member]], left_s: float) -> list[_Member]:
    """Whom to repeat next in the same processes; nobody, if all have the precision, or it would take too long."""
    due = [[one for one in host if not settled(one.done, ASKED, one.peers)] for host in hosts]
    choices = [best_together([one.worth for one in host], left_s) for host in due]
    members, best = max(zip(due, choices, strict=True), key=lambda pair: pair[1].gain_per_s)
    return [members[place] for place in best.members]


def _lend(hosts: list[list[_Member]]) -> None:
    """What comparisons in other processes have shown, to each: of those that share theirs, one (see ``peers``)."""
    seen = [spreads(host[0].done) for host in hosts]
    for number, host in enumerate(hosts):
        others = [*seen[:number], *seen[number + 1 :]]
        for one in host:
            one.peers = {name: [other[name] for other in others] for name in seen[number]}
