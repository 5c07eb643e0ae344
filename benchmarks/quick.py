"""How precise is a finished report, and what became of its time?

    .venv/bin/python benchmarks/quick.py outputs/quick [OTHER_FOLDER ...]

A column for each folder of results, also of one that an older benchlib has measured: half-widths of the 95 % intervals
of its ratios and of its A/A controls, as its tables have them (relative to the ratio); of the time of its comparisons
the share that is rounds, by what was measured; its processes; and the minutes that it took after set-up by its records
(the clock, and each notebook, also of those that were executed at once).
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from benchlib.errors import BenchlibError

ENDS = ["ratio", "ratio_low", "ratio_high"]
CONTROL = ["control", "control_low", "control_high"]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Precision and time of finished reports.")
    parser.add_argument("folders", nargs="+", type=Path, help="the results of a run")
    folders = parser.parse_args().folders
    frame = pd.DataFrame({str(folder): rows(folder) for folder in folders})
    print(frame.to_string())


def rows(folder: Path) -> dict[str, str]:
    """Of the table, by what they tell."""
    if not (folder / "tables").is_dir():
        raise BenchlibError(f"{folder}: there are no tables of a run; give a folder such as outputs/quick")
    ratios, controls = half_widths(folder)
    files = comparison_files(folder)
    total_s, rounds_s = (sum(file[0].get(name) or 0.0 for file in files) for name in ("repetition_s", "rounds_s"))
    return {
        "ratios": str(len(ratios)),
        "half-width of ratios %: median": percent(ratios, 0.5),
        "ninth decile": percent(ratios, 0.9),
        "worst": percent(ratios, 1.0),
        "A/A controls": str(len(controls)),
        "half-width of A/A %: median": percent(controls, 0.5),
        "worst of A/A": percent(controls, 1.0),
        "minutes": f"{seconds(folder) / 60:.1f}",
        "minutes of comparisons": f"{total_s / 60:.1f}",
        "of that rounds %": f"{100 * rounds_s / total_s:.0f}" if total_s else "-",
        "processes in comparisons": str(sum(map(len, files))),
    }


def half_widths(folder: Path) -> tuple[list[float], list[float]]:
    """Of the ratios of all tables, and of the comparisons' controls, which stand beside each ratio of a comparison."""
    ratios: list[float] = []
    controls: set[tuple[float, ...]] = set()
    for path in sorted((folder / "tables").glob("*.csv")):
        table = pd.read_csv(path)
        if {*ENDS, *CONTROL} <= {*table.columns}:
            ratios += [relative(*ends) for ends in known(table, ENDS)]
            controls |= set(known(table, CONTROL))
    return ratios, [relative(*ends) for ends in sorted(controls)]


def known(table: pd.DataFrame, columns: list[str]) -> list[tuple[float, ...]]:
    """The rows of these columns that have all of them."""
    return list(table[columns].dropna().itertuples(index=False, name=None))


def relative(estimate: float, low: float, high: float) -> float:
    """Half the interval's width."""
    return (high - low) / 2 / estimate


def comparison_files(folder: Path) -> list[list[dict[str, Any]]]:
    """What was measured in comparisons, by file: those measured together. Whatever the format, unchecked."""
    files = []
    for path in sorted((folder / "measurements").glob("*.parquet")):
        texts = pq.ParquetFile(path).read(columns=["measurement"])["measurement"].to_pylist()
        together = [json.loads(text) for text in texts]
        if together[0]["kind"] == "comparison":
            files.append(together)
    return files


def seconds(folder: Path) -> float:
    """Of all notebooks, by their records; and of the clock that they share, where there is one."""
    return sum(json.loads(path.read_text(encoding="utf-8")).get("seconds", 0.0) for path in records(folder))


def records(folder: Path) -> Iterator[Path]:
    """Files that say how many seconds something took."""
    yield from sorted((folder / "notebooks").glob("*.json"))
    if (folder / "clock.json").exists():
        yield folder / "clock.json"


def percent(values: list[float], quantile: float) -> str:
    """A quantile of shares."""
    return f"{100 * np.quantile(values, quantile):.1f}" if values else "-"


if __name__ == "__main__":
    main()
