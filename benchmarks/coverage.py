"""Do the intervals hold the truth as often as they say, although the planner decides itself when to stop?

    .venv/bin/python benchmarks/coverage.py [--comparisons 2000] [--budget 1200] [--pilot 5] [--minutes 22] [--seed 1]

A row is a kind of noise (``benchlib.measure.simulation``). The 95 % intervals of the ratio and of the A/A control
should hold the truth in 93 to 97 % of the comparisons. The first table is of comparisons by themselves: Student's
intervals. Pooled blocks are what the same measurements give as independent samples, as is usual in the field: intervals
too narrow to be believed.

The others are of moderated intervals, of comparisons of which 20 lie in a folder, 4 hosted by the same processes: of
these one lends its variance to those of other processes. The last kinds of noise are of processes that are fast or slow
whatever they host. In the second table they are brought to 3 processes each and share a clock of so many minutes:
"with 4 to 5 %" is how often those hold the truth that had 4 or 5 processes when it stopped, "of 4 to 5" how many those
were. In the third all have so many processes; widths are the median of half-widths over those of Student's intervals of
the same processes. The fourth is the third in folders of 12 comparisons: with the fewest lenders there can be, 2.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor

import pandas as pd

from benchlib.measure.moderation import LEAST_PEERS
from benchlib.measure.planner import PILOT
from benchlib.measure.simulation import (
    CLOCK_MINUTES,
    FOLDERS,
    HOSTED,
    HOSTED_FOLDERS,
    NOISES,
    TOGETHER,
    Folder,
    coverage,
    moderated_coverage,
    moderated_row,
)

PROCESSES = (3, 5, 8)
KINDS = (*FOLDERS, *HOSTED_FOLDERS)
FEWEST = HOSTED * (LEAST_PEERS + 1)
"""Comparisons in a folder that have so many to borrow from."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Coverage of the intervals, by simulation.")
    parser.add_argument("--comparisons", type=int, default=2000, help="of each kind of noise")
    parser.add_argument("--budget", type=float, default=1200.0, help="seconds of each by itself")
    parser.add_argument("--pilot", type=int, default=PILOT, help="processes of each condition at least, by itself")
    parser.add_argument("--minutes", type=float, default=CLOCK_MINUTES, help="of the clock that a folder shares")
    parser.add_argument("--seed", type=int, default=1, help="of the folders' (the intervals were made with 0)")
    asked = parser.parse_args()
    number = asked.comparisons
    with ProcessPoolExecutor(2) as pool:
        alone = [pool.submit(coverage, noise, number, asked.budget, asked.pilot) for noise in NOISES]
        clock = [pool.submit(_with_a_clock, folder, number, asked.minutes, asked.seed) for folder in KINDS]
        fixed = [pool.submit(_with_so_many, folder, number, asked.seed) for folder in KINDS]
        few = [pool.submit(_with_so_many, folder, number, asked.seed, FEWEST) for folder in KINDS]
        print(f"{number} simulated comparisons of each kind, {asked.pilot} processes at least, {asked.budget:g} s")
        _show([row.result() for row in alone])
        print(f"\n{number} of each kind in folders, a clock of {asked.minutes:g} minutes for each folder")
        _show([row.result() for row in clock])
        print(f"\n{number} of each kind in folders, all with so many processes")
        _show([row.result() for row in fixed])
        print(f"\n{number} of each kind in folders of {FEWEST}, all with so many processes")
        _show([row.result() for row in few])


def _with_a_clock(folder: Folder, comparisons: int, minutes: float, seed: int) -> dict[str, object]:
    return moderated_row(folder, moderated_coverage(folder, comparisons, minutes, seed=seed))


def _with_so_many(folder: Folder, comparisons: int, seed: int, together: int = TOGETHER) -> dict[str, object]:
    asked = {"minutes": 0, "seed": seed, "together": together}
    rows = {
        number: moderated_row(folder, moderated_coverage(folder, comparisons, pilot=number, **asked))
        for number in PROCESSES
    }
    return {
        "noise": folder.name,
        **{f"{number} hold %": row["holds %"] for number, row in rows.items()},
        **{f"restless {number} %": row["restless hold %"] for number, row in rows.items()},
        **{f"width {number}": row["half-width over Student's"] for number, row in rows.items()},
    }


def _show(rows: list[dict[str, object]]) -> None:
    print(pd.DataFrame(rows).to_string(index=False, float_format="{:.2f}".format, na_rep=""), flush=True)


if __name__ == "__main__":
    main()
