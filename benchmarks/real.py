"""Does the instrument call identical things different, and does it see what is really there?

    .venv/bin/python benchmarks/real.py [--comparisons 40] [--minutes 60]

Real comparisons of PyTorch's ``cnn`` (batch 32, images of 8x8; as the workload ``planted``, with nothing planted) on
this machine: with itself (A/A), in the tuned and in the default lane; and, in the tuned lane, with itself slowed down
by 3 % and 10 %, by an optimizer that burns these shares of each step. At most 4 of 40 A/A intervals should exclude 1,
and at least 90 % of the others hold the planted ratio; a comparison without an interval is counted apart. What has been
measured is kept in outputs/benchmarks/real, so the study can be stopped and goes on; for it to mean something the
machine must be quiet. ``--minutes`` ends it after the comparison in which they are over.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from pathlib import Path

import numpy as np
import pandas as pd

import benchlib.workloads
from benchlib import variables
from benchlib.condition import Condition
from benchlib.lab import Lab
from benchlib.measure.comparison import Comparison
from benchlib.measure.planner import PRECISION
from benchlib.measure.statistics import Interval

HERE = Path(__file__).resolve().parent
PLANTED = HERE / "planted"
FOLDER = HERE.parent / "outputs" / "benchmarks" / "real"
SLOWER = (0.03, 0.10)
ASKED = {"precision": 0.03, "budget_s": 30.0, "block_s": 0.15}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Real A/A comparisons, and planted effects.")
    parser.add_argument("--comparisons", type=int, default=40, help="of each kind")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="after which no new comparison begins")
    arguments = parser.parse_args()
    os.environ[variables.WORKER_PATH] = str(PLANTED)
    benchlib.workloads.__path__.append(str(PLANTED / "workloads"))
    plain = Condition(workload="planted", hyperparameters={"image_size": 8}, batch_size=32, lane="tuned")
    slowed = [plain.but(hyperparameters={**plain.hyperparameters, "slower": share}) for share in SLOWER]
    end = time.monotonic() + 60 * arguments.minutes
    tuned, default = [], []
    for number in range(arguments.comparisons):  # in turn, so that both lanes see the same hours
        if time.monotonic() < end:
            tuned.append(Lab(outputs=FOLDER / f"tuned-{number}").compare([plain, *slowed], **ASKED))
        if time.monotonic() < end:
            default.append(Lab(outputs=FOLDER / f"default-{number}").compare([plain.but(lane="default")], **ASKED))
    rows = [_row("A/A, tuned lane", tuned, [c.control for c in tuned], 1.0)]
    rows.append(_row("A/A, default lane", default, [c.control for c in default], 1.0))
    for condition, share in zip(slowed, SLOWER, strict=True):
        ratios = [comparison.ratio(condition) for comparison in tuned]
        rows.append(_row(f"slower by {share:.0%}, tuned lane", tuned, ratios, 1 / (1 + share)))
    print(pd.DataFrame(rows).to_string(index=False))


def _row(what: str, comparisons: list[Comparison], intervals: list[Interval], truth: float) -> dict[str, object]:
    without = len(intervals)
    intervals = [interval for interval in intervals if math.isfinite(interval.low)]
    without -= len(intervals)
    if not intervals:
        return {"comparison": what, "comparisons": 0, "without interval": without}
    return {
        "comparison": what,
        "comparisons": len(intervals),
        "truth": f"{truth:.3f}",
        "without interval": without,
        "intervals that hold it": sum(not interval.excludes(truth) for interval in intervals),
        "that exclude 1": sum(interval.excludes(1) for interval in intervals),
        "geometric mean": f"{np.exp(np.mean([np.log(interval.estimate) for interval in intervals])):.4f}",
        "to the precision": sum(comparison.plan.ended == PRECISION for comparison in comparisons),
        "half-width, median %": f"{100 * np.median([interval.half_width for interval in intervals]):.1f}",
        "processes, median": int(np.median([interval.processes for interval in intervals])),
        "seconds, median": round(float(np.median([comparison.plan.spent_s for comparison in comparisons]))),
    }


if __name__ == "__main__":
    main()
