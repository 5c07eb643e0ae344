"""How long the report takes, and how much memory, from 10,000 stored measurements.

    .venv/bin/python benchmarks/report_speed.py outputs/quick

Multiplies the measurements of a finished run in a temporary copy of its folder, makes the report again from all of
them, and prints seconds, the most memory that the kernel or this process held, and how many measurements there were.
"""

from __future__ import annotations

import argparse
import itertools
import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat

from benchlib import suite
from benchlib.results import Store

LEAST = 10_000
SCRAP = "application/scrapbook.scrap.json+json"


def main() -> None:
    """Print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="the results of a run in which every notebook succeeded")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "results")
        shutil.copytree(given.folder, folder, ignore=shutil.ignore_patterns("inputs"))
        count = multiply(folder)
        command = [sys.executable, "-m", "benchlib", "report", "--outputs", str(folder)]
        subprocess.run(command, check=True, capture_output=True)  # claims and imports: what a second report has not
        suite.record_path(folder, suite.REPORT).unlink()
        started = time.monotonic()
        subprocess.run(command, check=True)
        seconds = time.monotonic() - started
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{count:,} measurements: {seconds:.1f} s, {most:.0f} MiB in the largest process")


def multiply(folder: Path) -> int:
    """Copy the measurements under new keys until there are enough, and name them in a notebook's summary and record."""
    store = Store(folder / "measurements")
    real = [store.load(path.stem) for path in sorted(store.folder.glob("*.parquet"))]
    count, keys = sum(map(len, real)), []
    for number in itertools.count():
        if count >= LEAST:
            break
        key = f"{number:020x}"
        copies = [m.model_copy(update={"file": key, "group": f"{number // 5:020x}"}) for m in real[number % len(real)]]
        store.save(copies)
        keys.append(key)
        count += len(copies)
    name = "devices"
    path = folder / "notebooks" / f"{name}.ipynb"
    notebook = nbformat.read(path, 4)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    summary = next(output.data[SCRAP] for output in outputs if SCRAP in output.get("data", {}))
    summary["data"]["measurements"] += keys
    nbformat.write(notebook, path)
    record = suite.read_record(folder, name)
    files = {f"measurements/{key}.parquet": suite.digest(store.path(key).read_bytes()) for key in keys}
    record["files"] |= files
    suite.record_path(folder, name).write_text(json.dumps(record), encoding="utf-8")
    return count


if __name__ == "__main__":
    main()
