"""Do two frameworks stay together beyond the gate's few steps? Losses from the same weights and batches.

    [BENCHLIB_DATA=FOLDER] .venv/bin/python benchmarks/losses.py resnet50 googlenet bert [--steps 50] [--originals]

Every condition runs as the gate runs it (what cannot agree is off, small steps) and is compared with the gate's
reference, PyTorch eager in the lane ``default``: PyTorch in the lane ``tuned``, which computes the same with other
instructions and so shows what rounding alone does, and MindSpore. The largest relative difference of a loss so far is
printed beside the gate's tolerance. ``--originals`` takes CIFAR-10 where the workload has it, else digits.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.equivalence import TOLERANCES
from benchlib.measure import gate
from benchlib.measure.jobs import INITIAL_SEED, prepare_job
from benchlib.measure.processes import WorkerProcess
from benchlib.measure.turn import turn
from benchlib.progress import say

INPUTS = Path(__file__).resolve().parent.parent / "outputs" / "benchmarks" / "losses"
SUBJECTS = (("pytorch", "eager"), ("mindspore", "eager"), ("mindspore", "graph"))
SIZES = {"resnet50": {"image_size": 32}, "googlenet": {"image_size": 32}, "bert": {"length": 64}}


def main() -> None:
    """Print the table: a row for each workload, framework and mode."""
    parser = argparse.ArgumentParser(description="Losses of two frameworks, step by step.")
    parser.add_argument("workloads", nargs="+", choices=SIZES)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--originals", action="store_true")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.workloads:
        offered = workloads.load(name).data
        data = "cifar10" if arguments.originals and "cifar10" in offered else offered[0]
        asked = {"workload": name, "data": data, "hyperparameters": SIZES[name], "lane": "tuned"}
        gated = [gate.gated(Condition(framework=one, mode=mode, **asked)) for one, mode in SUBJECTS]
        expected = losses(gate.reference(gated[0]), arguments.steps)
        for condition in gated:
            apart = np.abs(losses(condition, arguments.steps) - expected) / np.abs(expected)
            rows.append(_row(condition, apart, expected))
            print(pd.DataFrame(rows).to_string(index=False), flush=True)


def losses(condition: Condition, steps: int) -> np.ndarray:
    """The losses (steps,) of a gated condition in a fresh process."""
    job = prepare_job(condition, INITIAL_SEED, INPUTS)
    with turn(say):
        worker = WorkerProcess(condition, INITIAL_SEED)
        try:
            worker.opened()
            worker.ask("build", **job.document())
            file = worker.scratch / "computed.npz"
            worker.ask("check", steps=steps, trials=1, file=str(file))
            with np.load(file) as computed:
                return computed["0/losses"]
        finally:
            worker.end()


def _row(condition: Condition, apart: np.ndarray, expected: np.ndarray) -> dict[str, object]:
    beyond = np.flatnonzero(apart > TOLERANCES["losses"])
    places = sorted({min(step, len(apart)) for step in (3, 10, 25, len(apart))})
    return {
        "workload": condition.workload,
        "data": condition.data,
        "subject": f"{condition.framework} {condition.mode} {condition.lane}",
        "loss": f"{expected[0]:.3f} to {expected[-1]:.3f}",
        **{f"to step {step}": f"{apart[:step].max():.1e}" for step in places},
        "tolerance": f"{TOLERANCES['losses']:.0e}",
        "first step beyond": int(beyond[0]) + 1 if len(beyond) else "-",
    }


if __name__ == "__main__":
    main()
