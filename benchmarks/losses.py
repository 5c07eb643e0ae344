"""Do two frameworks stay together beyond the gate's few steps? Losses from the same weights and batches.

    [BENCHLIB_DATA=FOLDER] .venv/bin/python benchmarks/losses.py resnet50 googlenet bert [--steps 50] [--originals]
        [--learning-rate 0.0001]

PyTorch eager in the lane ``default`` is the reference, as in the gate. Compared with it are PyTorch in the lane
``tuned``, which computes the same with other instructions and so shows what rounding alone does, and MindSpore. The
largest relative difference of a loss so far is printed beside the gate's tolerance. Each step has a batch of its own,
of the size that the gate takes. Dropout is off; biases of batch normalisation, Adam's epsilon and the rate are the
gate's, which keep rounding small; weight decay and warm-up are the workload's own. ``--originals`` takes CIFAR-10 where
the workload has it, else digits.
"""

from __future__ import annotations

import argparse
import json
import sys
from itertools import count, islice
from pathlib import Path
from typing import Any

import alone
import numpy as np
import pandas as pd

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.equivalence import TOLERANCES
from benchlib.measure import gate

INPUTS = Path(__file__).resolve().parent.parent / "outputs" / "benchmarks" / "losses"
SUBJECTS = (("pytorch", "eager"), ("mindspore", "eager"), ("mindspore", "graph"))
SIZES = {"resnet50": {"image_size": 32}, "googlenet": {"image_size": 32}, "bert": {}}
THEIR_OWN = ("weight_decay", "warm_up")  # set in the gate only because three steps would not show them


def main() -> None:
    """Print the table: a row for each workload, framework and mode."""
    parser = argparse.ArgumentParser(description="Losses of two frameworks, step by step.")
    parser.add_argument("workloads", nargs="+", choices=SIZES)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--originals", action="store_true")
    parser.add_argument("--learning-rate", type=float, help="in place of the gate's")
    arguments = parser.parse_args()
    rows = []
    for name in arguments.workloads:
        subjects = [_condition(name, framework, mode, arguments) for framework, mode in SUBJECTS]
        expected = losses(gate.reference(subjects[0]), arguments.steps)
        for condition in subjects:
            apart = np.abs(losses(condition, arguments.steps) - expected) / np.abs(expected)
            rows.append(_row(condition, apart, expected))
            print(pd.DataFrame(rows).to_string(index=False), flush=True)


def losses(condition: Condition, steps: int) -> np.ndarray:
    """The losses (steps,) of a condition in a fresh process."""
    return np.array(alone.asked(__file__, condition, INPUTS, steps=steps))


def _condition(name: str, framework: str, mode: str, arguments: argparse.Namespace) -> Condition:
    offered = workloads.load(name).data
    data = "cifar10" if arguments.originals and "cifar10" in offered else offered[0]
    sizes, lane = SIZES[name], "tuned"
    asked = Condition(workload=name, framework=framework, mode=mode, lane=lane, data=data, hyperparameters=sizes)
    own = {key: value for key, value in asked.hyperparameters.items() if key in THEIR_OWN}
    gated = gate.gated(asked)
    rate = arguments.learning_rate or gated.learning_rate
    return gated.but(hyperparameters={**gated.hyperparameters, **own}, learning_rate=rate)


def _child(given: dict[str, Any]) -> list[float]:
    worker = alone.worker(given)
    batches = (arrays for epoch in count(1) for arrays in worker.batches.epoch(epoch))
    results = [worker.session.step(worker.session.put(arrays)) for arrays in islice(batches, given["steps"])]
    return [float(worker.session.to_numpy(loss)) for loss in results]


def _row(condition: Condition, apart: np.ndarray, expected: np.ndarray) -> dict[str, object]:
    beyond = np.flatnonzero(apart > TOLERANCES["losses"])
    places = sorted({min(step, len(apart)) for step in (3, 10, 25, len(apart))})
    return {
        "workload": condition.workload,
        "data": condition.data,
        "subject": f"{condition.framework} {condition.mode} {condition.lane}",
        "rate": condition.learning_rate,
        "loss": f"{expected[0]:.3f} to {expected[-1]:.3f}",
        **{f"to step {step}": f"{apart[:step].max():.1e}" for step in places},
        "tolerance": f"{TOLERANCES['losses']:.0e}",
        "first step beyond": int(beyond[0]) + 1 if len(beyond) else "-",
    }


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(_child(json.loads(sys.argv[2]))))
    else:
        main()
