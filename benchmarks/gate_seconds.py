"""Which check costs the gate its seconds? Certifies quick's twelve models in an empty folder, and adds up its requests.

    .venv/bin/python benchmarks/gate_seconds.py [--framework mindspore] [--mode eager] [--lane tuned]

A line for each request to a worker: of the condition, of the reference, and of the reference in double precision, in
seconds. Workers run beside each other, so the sum is more than the clock's seconds, which the last line has.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from unittest.mock import patch

import pandas as pd

from benchlib import Lab
from benchlib.condition import Condition
from benchlib.equivalence.compare import BATCH, FAR
from benchlib.parameter_types import read
from benchlib.runner.processes import WorkerProcess

SIZES = Path(__file__).resolve().parent.parent / "parameters" / "quick" / "equivalence.yaml"
NAMES = {BATCH: "the largest batch, with masks", FAR: "large weights and predictions", "0": "small trial 1, made twice"}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Seconds of each check of the gate.")
    parser.add_argument("--framework", default="mindspore")
    parser.add_argument("--mode", default="eager")
    parser.add_argument("--lane", default="tuned")
    named = vars(parser.parse_args())
    conditions = [Condition(**model, **named) for model in read(SIZES)["models"]]
    seconds: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    ask, open_ = WorkerProcess.ask, WorkerProcess.finish_open

    def timed(worker: WorkerProcess, do: str, *given, call, **asked):
        started = time.perf_counter()
        try:
            return call(worker, *([do] if do != "import" else []), *given, **asked)
        finally:
            condition = worker.condition
            whose = named["framework"] if condition.framework == named["framework"] else condition.precision
            seconds[NAMES.get(str(asked["trial"]), "small trials 2, 3") if "trial" in asked else do][whose] += (
                time.perf_counter() - started
            )

    def opened(worker: WorkerProcess):
        return timed(worker, "import", call=open_)

    def asking(worker: WorkerProcess, do: str, *given, **asked):
        return timed(worker, do, *given, call=ask, **asked)

    started = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(WorkerProcess, "ask", asking),
        patch.object(WorkerProcess, "finish_open", opened),
    ):
        found = Lab(outputs=Path(folder)).certify(conditions)
    took = time.perf_counter() - started
    frame = pd.DataFrame(seconds).T.fillna(0.0)
    frame.loc["all"] = frame.sum()
    print(frame.round(1).to_string())
    print(f"{sum(one.same for one in found.values())} of {len(found)} the same, in {took:.0f} s by the clock")


if __name__ == "__main__":
    main()
