"""How long the report takes, and how much memory, from 10,000 stored measurements; how large its page is, and how long
a browser takes to open it.

    .venv/bin/python benchmarks/report_speed.py outputs/quick

Multiplies the measurements of a finished run in a temporary copy of its folder, and has claims rest on all of them.
Then judges the claims and makes the report again, as ``benchlib report`` does after a run, and prints seconds, the most
memory that a kernel or the command held, and how many measurements there were; then, where Chromium is, the size of
``report.html``, and the seconds of three times until its picture can be explored.
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
import pandas as pd

from benchlib import manifest
from benchlib.cache import Store
from benchlib.suite.profile import gathers, notebooks
from benchlib.tables import FILES

LEAST = 10_000
SCRAP = "application/scrapbook.scrap.json+json"
NOTEBOOK, TABLE = "frameworks", "tables/frameworks_first_epochs.csv"  # which claims are judged by


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
        subprocess.run(command, check=True, capture_output=True)  # so that neither disk nor bytecode is cold
        for name in filter(gathers, notebooks()):
            manifest.path_of(folder, name).unlink()
        started = time.monotonic()
        subprocess.run(command, check=True)
        seconds = time.monotonic() - started
        page = folder / "report.html"
        seconds_of = opening_s(page) if shutil.which("chromium") else []
        opened = ", ".join(f"{one:.2f} s" for one in seconds_of) or "not tried, there is no Chromium"
        of_page = f"the page is {page.stat().st_size / 1e6:.1f} MB; opened: {opened}"
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{count:,} measurements: {seconds:.1f} s, {most:.0f} MiB in the largest process")
    print(of_page)


def opening_s(page: Path) -> list[float]:
    """Seconds until the page can be explored, three times, in a browser that is at work already."""
    from playwright.sync_api import sync_playwright

    seconds = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for _ in range(3):
            tab = browser.new_page()
            started = time.monotonic()
            tab.goto(page.as_uri())
            tab.wait_for_selector(".controls")
            seconds.append(time.monotonic() - started)
            tab.close()
        browser.close()
    return seconds


def multiply(folder: Path) -> int:
    """Copy the measurements under new keys until there are enough, and name them in a notebook's summary, record and
    rows of its table.
    """
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
    path = folder / "notebooks" / f"{NOTEBOOK}.ipynb"
    notebook = nbformat.read(path, 4)
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    summary = next(output.data[SCRAP] for output in outputs if SCRAP in output.get("data", {}))
    summary["data"]["measurements"] += keys
    nbformat.write(notebook, path)
    table = pd.read_csv(folder / TABLE)
    table[FILES] = [f"{own} {' '.join(keys[row :: len(table)])}" for row, own in enumerate(table[FILES])]
    table.to_csv(folder / TABLE, index=False)
    record = manifest.read(folder, NOTEBOOK)
    paths = [TABLE, *(f"measurements/{key}.parquet" for key in keys)]
    record["files"] |= {path: manifest.digest((folder / path).read_bytes()) for path in paths}
    manifest.path_of(folder, NOTEBOOK).write_text(json.dumps(record), encoding="utf-8")
    return count


if __name__ == "__main__":
    main()
