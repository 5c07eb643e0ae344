"""Does ``benchlib diff`` keep quiet about the same thing, and find what got slower? Simulated from measured noise.

    .venv/bin/python benchmarks/diff_alarms.py [--precision 0.02] [--occasion 0.005] [--pairs 40] [--seed 0]

Nothing is measured here. The noise of processes is that of the golden quick run (``tests/golden``): each of its ratios
gives its own standard deviation over pairs of processes, and as many processes as the precision takes, five at least.
The spread between two occasions of one ratio (``--occasion``, a standard deviation) and the drift of the machine's
speed between them (``--drift``) are assumed. First pairs of runs of the same thing: how many have an alarm? Then runs
in which one condition, or one baseline, is slower by 10 %: how many are found, by the exit code of each ``--fail-on``?
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import special

from benchlib.cluster import diff

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import golden

LEAST, MOST = 5, 300  # processes


def noise() -> list[tuple[diff.Ratio, float]]:
    """The ratios of the golden run, each with its standard deviation over pairs of processes."""
    with tempfile.TemporaryDirectory() as folder:
        golden.fill(Path(folder))
        every = diff.read_side(str(folder))
    return [(one, float(np.std(one.logs, ddof=1))) for one in every if len(one.logs) > 1]


def processes(sd: float, precision: float) -> int:
    """As many as make the half-width of the interval as small as the precision."""
    enough = (n for n in range(LEAST, MOST) if special.stdtrit(n - 1, 0.975) * sd / math.sqrt(n) <= precision)
    return next(enough, MOST)


def occasion(
    rng: np.random.Generator, measured: list[tuple[diff.Ratio, float]], given: argparse.Namespace
) -> list[diff.Ratio]:
    """A run of all ratios on another day."""
    drift, made = rng.normal(0, given.drift), []
    for one, sd in measured:
        n, shift = processes(sd, given.precision), rng.normal(0, given.occasion)
        logs = rng.normal(float(np.mean(one.logs)) + shift, sd, n)
        base = rng.normal(0, sd / math.sqrt(2), n) + drift
        made.append(replace(one, host="one", logs=tuple(logs), seconds=(tuple(base - logs), tuple(base))))
    return made


def slower(one: diff.Ratio, baseline: bool, by: float) -> diff.Ratio:
    """The same where the condition, or its baseline, takes ``by`` longer."""
    log = math.log1p(by)
    own, base = (np.array(each) for each in one.seconds)
    own, base = (own, base + log) if baseline else (own + log, base)
    logs = np.array(one.logs) + (log if baseline else -log)
    return replace(one, logs=tuple(logs), seconds=(tuple(own), tuple(base)))


def main() -> None:
    """Print how many alarms there are, and how many planted slowdowns are found."""
    parser = argparse.ArgumentParser(description="Alarms of benchlib diff, by simulation from measured noise.")
    parser.add_argument("--precision", type=float, default=0.02, help="half-width that the runs have reached")
    parser.add_argument("--occasion", type=float, default=0.005, help="sd of a ratio between occasions; assumed")
    parser.add_argument("--drift", type=float, default=0.03, help="sd of the machine's speed; assumed")
    parser.add_argument("--ratios", type=int, default=20, help="of a run, each with the noise of a measured one")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--planted", type=int, default=20)
    parser.add_argument("--by", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, known = np.random.default_rng(given.seed), noise()
    sds = [sd for _, sd in known]
    measured = []
    for number in range(given.ratios):  # each is another batch of its own
        one, sd = known[number % len(known)]
        conditions = (each.but(batch_size=number + 1) for each in (one.condition, one.baseline))
        measured.append((replace(one, **dict(zip(("condition", "baseline"), conditions, strict=True))), sd))
    print(
        f"{len(known)} measured ratios; sd over pairs of processes: median {np.median(sds):.3f}, largest {max(sds):.3f}"
    )
    print("simulated from that noise; nothing was measured for this")
    pairs = ([occasion(rng, measured, given) for _ in range(2)] for _ in range(given.pairs))
    alarms = [diff.of_ratios(*pair) for pair in pairs]
    for on in ("changed", "slower"):
        print(f"the same thing: {sum(one.fails(on) for one in alarms)} of {given.pairs} pairs fail on {on}")
    for baseline in (False, True):
        found = dict.fromkeys(("changed", "slower", "named"), 0)
        for _ in range(given.planted):
            before, after = occasion(rng, measured, given), occasion(rng, measured, given)
            place = int(rng.integers(len(after)))
            after[place] = slower(after[place], baseline, given.by)
            seen = diff.of_ratios(before, after)
            own = [one for one in seen.changed if one.after is after[place]]
            found["changed"] += bool(own)
            found["slower"] += seen.fails("slower")
            found["named"] += any(one.who[1] == diff.SLOWER for one in own)
        whose = "baseline" if baseline else "condition"
        print(f"a {whose} slower by {100 * given.by:g} %: {found} of {given.planted}")


if __name__ == "__main__":
    main()
