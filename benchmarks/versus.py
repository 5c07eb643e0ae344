"""How long until +-3 % of two identical conditions can be believed? Ours, pyperf and torch.utils.benchmark in one hour.

    .venv/bin/pip install pyperf
    .venv/bin/python benchmarks/versus.py [--times 3]

The step is PyTorch's training step of ``cnn`` (batch 32, images of 8x8, as installed), the two conditions are the same:
whoever says that one is faster is wrong. A row is one try: the seconds it took, the ratio and what is claimed of it.

- benchlib: a comparison to a precision of 3 %, in the tuned lane and in the default one.
- pyperf: ``pyperf_step.py`` twice with its defaults (20 processes, one after the other), then ``compare_to``.
- torch.utils.benchmark: ``Timer.adaptive_autorange`` (its own rule for stopping, in one process each); different are
  medians that are further apart than the wider of the interquartile ranges.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd

from benchlib.condition import Condition
from benchlib.lab import Lab

HERE = Path(__file__).resolve().parent
CONDITION = Condition(workload="cnn", batch_size=32, hyperparameters={"image_size": 8})

_TIMER = """
import json, sys
sys.path.insert(0, {here!r})
import pyperf_step, torch
from torch.utils.benchmark import Timer
step = pyperf_step.make_step()
found = Timer("step()", globals={{"step": step}}, num_threads=torch.get_num_threads()).adaptive_autorange()
print(json.dumps([found.median, found.iqr]))
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Seconds to a ratio of two identical conditions.")
    parser.add_argument("--times", type=int, default=3, help="tries of each")
    times = parser.parse_args().times
    rows = []
    for number in range(times):
        with tempfile.TemporaryDirectory() as folder:
            rows += [_benchlib(lane, Path(folder)) for lane in ("tuned", "default")]
            rows += [_pyperf(Path(folder)), _torch()]
        print(f"{number + 1} of {times} done", file=sys.stderr)
    print(pd.DataFrame(rows).sort_values("instrument", kind="stable").to_string(index=False))


def _benchlib(lane: str, folder: Path) -> dict[str, object]:
    lab = Lab(outputs=folder / lane)
    condition = CONDITION.but(lane=lane)
    lab.certify([condition])  # the gate is no part of timing, and the others have none
    started = time.monotonic()
    comparison = lab.compare([condition], precision=0.03, budget_s=600, block_s=0.15)
    seconds, control = time.monotonic() - started, comparison.control
    claim = "different" if control.excludes(1) else "no difference shown"
    half = f"+-{100 * control.half_width:.1f} % (95 %), {comparison.plan.ended}"
    return {
        "instrument": f"benchlib, {lane}",
        "seconds": round(seconds),
        "ratio": str(control),
        "claims": f"{claim}; {half}",
    }


def _pyperf(folder: Path) -> dict[str, object]:
    started = time.monotonic()
    files = [folder / f"{name}.json" for name in "ab"]
    for file in files:
        subprocess.run([sys.executable, HERE / "pyperf_step.py", "-q", "-o", file], check=True, capture_output=True)
    command = [sys.executable, "-m", "pyperf", "compare_to", "--table-format", "md", *files]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds = time.monotonic() - started
    means = [_mean_of_pyperf(file) for file in files]
    claim = " ".join(told.split())
    return {
        "instrument": "pyperf",
        "seconds": round(seconds),
        "ratio": f"{means[0] / means[1]:.3f}",
        "claims": claim[-60:],
    }


def _mean_of_pyperf(file: Path) -> float:
    runs = json.loads(file.read_text(encoding="utf-8"))["benchmarks"][0]["runs"]
    values = [value for run in runs for value in run.get("values", [])]
    return sum(values) / len(values)


def _torch() -> dict[str, object]:
    started = time.monotonic()
    found = []
    for _ in range(2):
        command = [sys.executable, "-c", _TIMER.format(here=str(HERE))]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found.append(json.loads(out.splitlines()[-1]))
    (first, spread), (second, other) = found
    seconds = time.monotonic() - started
    apart = abs(first - second) > max(spread, other)
    widest = 100 * max(spread / first, other / second)
    claim = f"{'different' if apart else 'not told apart'}; interquartile range {widest:.1f} %"
    return {
        "instrument": "torch.utils.benchmark",
        "seconds": round(seconds),
        "ratio": f"{first / second:.3f}",
        "claims": claim,
    }


if __name__ == "__main__":
    main()
