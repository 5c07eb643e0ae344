"""Do the intervals hold the truth as often as they say, although the planner decides itself when to stop?

    .venv/bin/python benchmarks/coverage.py [--comparisons 2000] [--budget 1200] [--pilot 5]

A row is a kind of noise (``benchlib.measure.simulation``). The 95 % intervals of the ratio and of the A/A control
should hold the truth in 93 to 97 % of the comparisons. Pooled blocks are what the same measurements give as independent
samples, as is usual in the field: intervals too narrow to be believed.
"""

from __future__ import annotations

import argparse

import pandas as pd

from benchlib.measure.planner import PILOT
from benchlib.measure.simulation import NOISES, coverage


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Coverage of the intervals, by simulation.")
    parser.add_argument("--comparisons", type=int, default=2000, help="of each kind of noise")
    parser.add_argument("--budget", type=float, default=1200.0, help="seconds of each")
    parser.add_argument("--pilot", type=int, default=PILOT, help="processes of each condition at least")
    told = parser.parse_args()
    print(f"{told.comparisons} simulated comparisons of each kind, {told.pilot} processes at least, {told.budget:g} s")
    frame = pd.DataFrame([coverage(noise, told.comparisons, told.budget, told.pilot) for noise in NOISES])
    print(frame.to_string(index=False, float_format="{:.1f}".format))


if __name__ == "__main__":
    main()
