"""Is our model code a handicap? PyTorch's bert and gcn against those of transformers and torch_geometric, same sizes.

    .venv/bin/pip install transformers torch_geometric
    BENCHLIB_DATA=FOLDER .venv/bin/python benchmarks/libraries.py

Comparisons as any other, to 2 % or 5 minutes: a training step of ``bert`` (its tiny size, and 4 layers of 256) and of
``gcn`` on Cora, in the tuned lane. A ratio is our throughput over the library's; at least 0.97 is asked for.
"""

from __future__ import annotations

import os
from pathlib import Path

import pandas as pd

import benchlib.workloads
from benchlib import variables
from benchlib.condition import Condition
from benchlib.lab import Lab

HERE = Path(__file__).resolve().parent
REFERENCES = HERE / "references"
FOLDER = HERE.parent / "outputs" / "benchmarks" / "libraries"
LARGER = {"layers": 4, "hidden": 256, "heads": 4, "intermediate": 1024}
CASES = (("bert", {}), ("bert", {"hyperparameters": LARGER}), ("gcn", {"data": "cora"}))


def main() -> None:
    """Print the table."""
    os.environ[variables.WORKER_PATH] = str(REFERENCES)
    benchlib.workloads.__path__.append(str(REFERENCES / "workloads"))
    rows = []
    for name, choices in CASES:
        library, ours = (Condition(workload=one, lane="tuned", **choices) for one in (f"{name}_library", name))
        comparison = Lab(outputs=FOLDER).compare([library, ours], precision=0.02, budget_s=300, block_s=0.3)
        ratio, control = comparison.ratio(ours), comparison.control
        rows.append(
            {
                "model": str(ours),
                "ours / the library's": f"{ratio.estimate:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]",
                "A/A": f"{control.estimate:.3f} [{control.low:.3f}, {control.high:.3f}]",
                "processes": ratio.processes,
            }
        )
        print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
