"""Do the intervals hold the truth as often as they say, although the planner decides itself when to stop?

    .venv/bin/python benchmarks/coverage.py [--comparisons 2000] [--budget 1200] [--pilot 5]

A row is a kind of noise (``simulation.py``). The 95 % intervals of the ratio and of the A/A control should hold the
truth in 93 to 97 % of the comparisons. Pooled blocks are what the same measurements give as independent samples, as is
usual in the field: intervals too narrow to be believed.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import pandas as pd
import simulation

from benchlib.stats.planner import PILOT


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Coverage of the intervals, by simulation.")
    parser.add_argument("--comparisons", type=int, default=2000, help="of each kind of noise")
    parser.add_argument("--budget", type=float, default=1200.0, help="seconds of each")
    parser.add_argument("--pilot", type=int, default=PILOT, help="processes of each condition at least")
    asked = parser.parse_args()
    simulate = partial(simulation.coverage, comparisons=asked.comparisons, budget_s=asked.budget, pilot=asked.pilot)
    with ProcessPoolExecutor(2) as pool:
        rows = list(pool.map(simulate, simulation.NOISES))
    print(
        f"{asked.comparisons} simulated comparisons of each kind, {asked.pilot} processes at least, {asked.budget:g} s"
    )
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.2f}".format))


if __name__ == "__main__":
    main()
