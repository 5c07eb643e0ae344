"""How long does a ratio of +-5 % take? One checkout of benchlib against another, by turns.

    git worktree add ../older 10590f7
    .venv/bin/python benchmarks/seconds.py ../older . [--times 3]

Two ratios, as in the quick report: PyTorch's ``cnn`` with itself (A/A; batch 64, images of 8x8), and MindSpore (graph)
over PyTorch ``gcn``, in the tuned lane. Each is asked for in a folder that holds the pilots of four other comparisons,
as a report's does (``neighbours.py``): who borrows variances borrows theirs. They are measured once for each checkout,
off the clock, and so is the gate. A row is one try: seconds, half-width of the interval, processes of each condition,
and the share of the comparison's time that was rounds. Without a checkout it is this one.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pandas as pd

HERE = Path(__file__).resolve()
PYTORCH = {"framework": "pytorch", "mode": "eager", "lane": "tuned"}
MINDSPORE = {"framework": "mindspore", "mode": "graph", "lane": "tuned"}
RATIOS: dict[str, tuple[dict[str, Any], list[dict[str, str]]]] = {
    "cnn, A/A": ({"workload": "cnn", "batch_size": 64, "hyperparameters": {"image_size": 8}}, [PYTORCH]),
    "gcn, MindSpore / PyTorch": ({"workload": "gcn"}, [PYTORCH, MINDSPORE]),
}
ASKED = {"precision": 0.05, "budget_s": 600.0, "block_s": 0.1, "pilot": 3}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Seconds to a ratio of +-5 %.")
    parser.add_argument("checkouts", nargs="*", type=Path, default=[HERE.parents[1]], help="of benchlib")
    parser.add_argument("--times", type=int, default=3, help="tries of each")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        what, folder = given.child
        print(json.dumps(lent(Path(folder)) if what == "lend" else measured(what, Path(folder))))
        return
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        lenders = {checkout: Path(scratch, str(number)) for number, checkout in enumerate(given.checkouts)}
        for checkout, folder in lenders.items():
            asked(checkout, "lend", folder)
        for number in range(given.times):
            for name in RATIOS:
                for checkout, lender in lenders.items():
                    folder = Path(scratch, "try")
                    shutil.copytree(lender, folder)
                    rows.append({"ratio": name, "checkout": str(checkout), **asked(checkout, name, folder)})
                    shutil.rmtree(folder)
            print(f"{number + 1} of {given.times} done", file=sys.stderr)
    print(pd.DataFrame(rows).sort_values(["ratio", "checkout"], kind="stable").to_string(index=False))


def asked(checkout: Path, what: str, folder: Path) -> dict[str, Any]:
    """What this script says as a child that imports the benchlib of ``checkout``."""
    checkout = checkout.resolve()
    if not (checkout / "benchlib").is_dir():
        raise SystemExit(f"{checkout}: no checkout of benchlib: give the folder that holds benchlib/")
    command = [sys.executable, str(HERE), "--child", what, str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    done = subprocess.run(command, cwd=checkout, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    if Path(answer.pop("benchlib")).resolve() != checkout:
        raise SystemExit(f"{checkout}: another benchlib was imported than that of this checkout")
    return answer


def lent(folder: Path) -> dict[str, Any]:
    """In a child: fill a folder with the comparisons that lend their variances, and with the certificates of others."""
    import neighbours

    lab = _lab(folder)
    lab.certify([condition for name in RATIOS for condition in _conditions(name)])
    neighbours.lend(lab, [PYTORCH, MINDSPORE])
    return {"benchlib": _checkout()}


def measured(name: str, folder: Path) -> dict[str, Any]:
    """In a child: a row of the table."""
    conditions, lab = _conditions(name), _lab(folder)
    lab.certify(conditions)
    started = time.monotonic()
    comparison = lab.compare(conditions, **ASKED)
    seconds = time.monotonic() - started
    ratio = comparison.ratio(conditions[1]) if len(conditions) > 1 else comparison.control
    return {
        "benchlib": _checkout(),
        "seconds": round(seconds, 1),
        "estimate": round(ratio.estimate, 3),
        "half-width %": round(100 * ratio.half_width, 1),
        "processes": ratio.processes,
        "rounds %": round(100 * share_of_rounds(comparison.measurements)),
        "says": comparison.plan.ended,
    }


def share_of_rounds(measurements: list[Any]) -> float:
    """Of the time of a comparison; those measured together have both times of all of them."""
    files = {m.file: m for m in measurements if m.repetition_s}.values()
    return sum(m.rounds_s for m in files) / sum(m.repetition_s for m in files)


def _conditions(name: str) -> list[Any]:
    from benchlib.condition import Condition

    task, subjects = RATIOS[name]
    return [Condition(**task, **subject) for subject in subjects]


def _lab(folder: Path) -> Any:
    from benchlib.lab import Lab

    return Lab(outputs=folder)


def _checkout() -> str:
    import benchlib

    return str(Path(benchlib.__file__).resolve().parents[1])


if __name__ == "__main__":
    main()
