"""How long until +-5 % of two identical conditions can be believed? Ours, pyperf and torch.utils.benchmark in one hour.

    .venv/bin/pip install pyperf
    .venv/bin/python benchmarks/versus.py [--times 3]

The step is PyTorch's training step of ``cnn`` (batch 32, images of 8x8), the two conditions are the same: whoever says
that one is faster is wrong. All three measure it in both lanes, with the same knobs. A row is one try: the seconds it
took, the ratio, its 95 % interval over processes where there are several, and what the instrument itself says of it.

- benchlib: a comparison to a precision of 5 %, in an outputs folder of its own. The gate, which the others do not have,
  is done before.
- pyperf: ``pyperf_step.py`` twice with its defaults (20 processes, one after the other), then ``compare_to``. The
  interval is Welch's over the means of its processes; pyperf itself gives none.
- torch.utils.benchmark: ``Timer.adaptive_autorange`` to an interquartile range of 5 % of the median, in one process
  each. From one process no interval follows, and the tool says nothing of a pair but the two medians.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyperf_step
from scipy import stats

from benchlib import Lab
from benchlib.condition import Condition
from benchlib.provenance import knobs
from benchlib.runner.machine_lock import hold_machine
from benchlib.stats.comparison import DISTURBED, verdict_on

HERE = Path(__file__).resolve().parent
CONDITION = Condition(workload="cnn", batch_size=32, hyperparameters={"image_size": 8})
LANES = ("tuned", "default")
ASKED = {"precision": 0.05, "budget_s": 600.0, "block_s": 0.1, "pilot": 3}

_TIMER = """
import json, sys
sys.path.insert(0, {here!r})
import pyperf_step, torch
from torch.utils.benchmark import Timer
step = pyperf_step.make_step()
timer = Timer("step()", globals={{"step": step}}, num_threads=torch.get_num_threads())
timer.timeit(100)  # warm-up
found = timer.adaptive_autorange(threshold={threshold}, min_run_time=0.2)
print(json.dumps([found.median, found.iqr]))
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Seconds to a ratio of two identical conditions.")
    parser.add_argument("--times", type=int, default=3, help="tries of each")
    times = parser.parse_args().times
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(times):
            for lane in LANES:
                condition, place = CONDITION.but(lane=lane), Path(scratch, f"{lane}-{number}")
                place.mkdir()
                rows.append({"lane": lane, **_benchlib(condition, place / "lab", "benchlib")})
                with hold_machine(print):
                    environment = _environment(condition, place)
                    rows.append({"lane": lane, **_pyperf(place, environment)})
                    rows.append({"lane": lane, **_torch(environment)})
            print(f"{number + 1} of {times} done", file=sys.stderr)
    print(pd.DataFrame(rows).sort_values(["lane", "instrument"], kind="stable").to_string(index=False))


def _environment(condition: Condition, folder: Path) -> dict[str, str]:
    layout = {pyperf_step.LAYOUT: "channels_last"} if "channels_last" in knobs.for_session(condition) else {}
    return {**knobs.environment(condition, folder), **layout, "PYTHONPATH": str(HERE.parent)}


def _benchlib(condition: Condition, folder: Path, instrument: str) -> dict[str, object]:
    lab = Lab(outputs=folder)
    lab.certify([condition])
    started = time.monotonic()
    comparison = lab.compare([condition], **ASKED)
    seconds, found = time.monotonic() - started, comparison.control
    disturbed = comparison.disturbed(condition, condition, "control")
    claim = DISTURBED if disturbed else verdict_on(found, ASKED["precision"])
    return _row(instrument, seconds, found.estimate, (found.low, found.high), f"{claim}; {comparison.plan.ended}")


def _pyperf(folder: Path, environment: dict[str, str]) -> dict[str, object]:
    started = time.monotonic()
    files = [folder / f"{name}.json" for name in "ab"]
    inherited = ",".join(sorted({"PYTHONPATH", *(environment.keys() - os.environ.keys())}))
    for file in files:
        command = [sys.executable, HERE / "pyperf_step.py", "-q", "-o", file, f"--inherit-environ={inherited}"]
        subprocess.run(command, check=True, capture_output=True, env=environment)
    command = [sys.executable, "-m", "pyperf", "compare_to", *files]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds = time.monotonic() - started
    first, second = (_logs_of_pyperf(file) for file in files)
    difference = stats.ttest_ind(second, first, equal_var=False).confidence_interval(0.95)
    ratio, ends = math.exp(np.mean(second) - np.mean(first)), (math.exp(difference.low), math.exp(difference.high))
    return _row("pyperf", seconds, ratio, ends, " ".join(told.split())[-70:])


def _logs_of_pyperf(file: Path) -> list[float]:
    """The logarithms of the mean step of each process."""
    runs = json.loads(file.read_text(encoding="utf-8"))["benchmarks"][0]["runs"]
    return [math.log(np.mean(run["values"])) for run in runs if run.get("values")]


def _torch(environment: dict[str, str]) -> dict[str, object]:
    started = time.monotonic()
    found = []
    for _ in range(2):
        command = [sys.executable, "-c", _TIMER.format(here=str(HERE), threshold=ASKED["precision"])]
        out = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        found.append(json.loads(out.splitlines()[-1]))
    (first, spread), (second, other) = found
    widest = 100 * max(spread / first, other / second)
    told = f"two medians, each with an interquartile range of up to {widest:.1f} %"
    return _row("torch.utils.benchmark", time.monotonic() - started, second / first, None, told)


def _row(
    instrument: str, seconds: float, ratio: float, ends: tuple[float, float] | None, told: str
) -> dict[str, object]:
    half = f"{50 * (ends[1] - ends[0]) / ratio:.1f}" if ends else "none"
    interval = f"[{ends[0]:.3f}, {ends[1]:.3f}]" if ends else "none"
    return {
        "instrument": instrument,
        "seconds": round(seconds),
        "ratio": f"{ratio:.3f}",
        "95 % interval": interval,
        "half-width %": half,
        "says": told,
    }


if __name__ == "__main__":
    main()
