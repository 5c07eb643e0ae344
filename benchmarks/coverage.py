"""Do the intervals hold the truth as often as they say, although the planner decides itself when to stop?

    .venv/bin/python benchmarks/coverage.py [--comparisons 2000]

A row is a kind of noise (``benchlib.measure.simulation``). The 95 % intervals of the ratio and of the A/A control
should hold the truth in 93 to 97 % of the comparisons. Pooled blocks are what the same measurements give as independent
samples, as is usual in the field: intervals too narrow to be believed.
"""

from __future__ import annotations

import argparse

import pandas as pd

from benchlib.measure.simulation import NOISES, coverage


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Coverage of the intervals, by simulation.")
    parser.add_argument("--comparisons", type=int, default=2000, help="of each kind of noise")
    comparisons = parser.parse_args().comparisons
    print(f"{comparisons} simulated comparisons of each kind")
    frame = pd.DataFrame([coverage(noise, comparisons) for noise in NOISES])
    print(frame.to_string(index=False, float_format="{:.1f}".format))


if __name__ == "__main__":
    main()
