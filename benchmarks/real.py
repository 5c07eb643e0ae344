"""Does the instrument call identical things different, and does it see what is really there?

    .venv/bin/python benchmarks/real.py [--comparisons 100] [--minutes 60]

Real comparisons of PyTorch's ``cnn`` (images of 8x8; as the workload ``planted``, with nothing planted) on this machine
with the pilot, blocks and precision of the profile quick, and 25 s for each comparison, where quick's share a clock:
with itself (A/A), in the tuned and in the default lane; and, in the tuned lane, with itself slowed down by 3 % and
10 %, by an optimizer that burns these shares of each step. The
comparisons differ by batch size, and by a number that changes nothing.

At least 90 of 100 intervals of A/A should hold 1, and of the others the planted ratio; a comparison without an interval
is counted apart. What has been measured is kept in outputs/benchmarks/real, so the study can be stopped and goes on;
for it to mean something the machine must be quiet. ``--minutes`` ends it after the comparisons in which they are over.
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import benchlib.workloads
from benchlib import Lab, env_vars
from benchlib.condition import Condition
from benchlib.stats.comparison import Comparison
from benchlib.stats.intervals import Interval
from benchlib.stats.planner import PRECISION

HERE = Path(__file__).resolve().parent
PLANTED = HERE / "planted"
FOLDER = HERE.parent / "outputs" / "benchmarks" / "real"
SLOWER = (0.03, 0.10)
BATCH_SIZES = (4, 16, 64, 128)
IN_A_REPORT = 20  # comparisons of each lane in a folder
ASKED = {"precision": 0.03, "budget_s": 25.0, "block_s": 0.1, "pilot": 3}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Real A/A comparisons, and planted effects.")
    parser.add_argument("--comparisons", type=int, default=100, help="of each kind")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no new comparison begins")
    arguments = parser.parse_args()
    plant()
    end = time.monotonic() + 60 * arguments.minutes
    lab = functools.cache(lambda folder: Lab(outputs=folder))
    tuned: list[Comparison] = []
    default: list[Comparison] = []
    for folder, number, batch_sizes in in_folders(arguments.comparisons):  # in turn: both lanes see the same hours
        for of_lane, made in ((in_tuned_lane, tuned), (in_default_lane, default)):
            if time.monotonic() < end:
                groups = [of_lane(number, batch_size) for batch_size in batch_sizes]
                made += lab(folder).compare_each(groups, **ASKED)
    rows = [row("A/A, tuned lane", tuned, [c.control for c in tuned], 1.0)]
    rows.append(row("A/A, default lane", default, [c.control for c in default], 1.0))
    for place, share in enumerate(SLOWER, start=1):
        ratios = [comparison.ratio(comparison.conditions[place]) for comparison in tuned]
        rows.append(row(f"slower by {share:.0%}, tuned lane", tuned, ratios, 1 / (1 + share)))
    print(pd.DataFrame(rows).to_string(index=False))


def plant() -> None:
    """Put the workload ``planted`` beside benchlib's own, here and in workers."""
    os.environ[env_vars.WORKER_PATH] = str(PLANTED)
    benchlib.workloads.__path__.append(str(PLANTED / "workloads"))


def in_folders(comparisons: int) -> Iterator[tuple[Path, int, tuple[int, ...]]]:
    """The comparisons of one lane: their folder, and their number and batch sizes there."""
    for first in range(0, comparisons, len(BATCH_SIZES)):
        folder = FOLDER / f"report-{first // IN_A_REPORT}"
        yield folder, first % IN_A_REPORT // len(BATCH_SIZES), BATCH_SIZES[: comparisons - first]


def in_tuned_lane(number: int, batch_size: int) -> list[Condition]:
    """With itself, and with itself slowed down."""
    plain = Condition(
        workload="planted", hyperparameters={"image_size": 8, "number": number}, batch_size=batch_size, lane="tuned"
    )
    return [plain, *(plain.but(hyperparameters={**plain.hyperparameters, "slower": share}) for share in SLOWER)]


def in_default_lane(number: int, batch_size: int) -> list[Condition]:
    """With itself."""
    return [in_tuned_lane(number, batch_size)[0].but(lane="default")]


def row(what: str, comparisons: list[Comparison], intervals: list[Interval], truth: float) -> dict[str, object]:
    """Of the table: how many of the intervals hold the truth."""
    known = [interval for interval in intervals if math.isfinite(interval.low)]
    without = len(intervals) - len(known)
    if not known:
        return {"comparison": what, "comparisons": 0, "without interval": without}
    widths = [50 * (interval.high - interval.low) / interval.estimate for interval in known]
    return {
        "comparison": what,
        "comparisons": len(known),
        "truth": f"{truth:.3f}",
        "without interval": without,
        "intervals that hold it": sum(not interval.excludes(truth) for interval in known),
        "that exclude 1": sum(interval.excludes(1) for interval in known),
        "geometric mean": f"{np.exp(np.mean([np.log(interval.estimate) for interval in known])):.4f}",
        "to the precision": sum(comparison.plan.ended == PRECISION for comparison in comparisons),
        "half-width, median %": f"{np.median(widths):.1f}",
        "ninth decile %": f"{np.quantile(widths, 0.9):.1f}",
        "processes, median": int(np.median([interval.processes for interval in known])),
        "seconds, median": round(float(np.median([comparison.plan.spent_s for comparison in comparisons]))),
    }


if __name__ == "__main__":
    main()
