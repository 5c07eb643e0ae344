"""Where does a step's time go? One profile of each workload's step in each framework.

    [BENCHLIB_DATA=FOLDER] .venv/bin/python benchmarks/profiles.py lstm bert [--frameworks pytorch] [--originals]

A row for each kind of operator that takes 2 % of a step or more, by each framework's own profiler: see
``profiles_worker.py`` for what each of them sees. Above it the time of a step, unprofiled, and beside it what is off
the clock: making a batch and putting it on the device; and of what is on the clock a learning-rate schedule's step.
Frameworks are all that are there for a workload, each in its environment, lane ``tuned``, PyTorch in eager mode and the
others in graph mode; at the workload's own sizes, on embedded data unless ``--originals`` is given. Run it alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import homes
import pandas as pd

from benchlib import environments, workloads
from benchlib.condition import Condition
from benchlib.progress import say
from benchlib.provenance import knobs
from benchlib.runner import processes
from benchlib.runner.jobs import INITIAL_SEED, prepare_job
from benchlib.runner.machine_lock import hold_machine

HERE = Path(__file__).resolve().parent
INPUTS = HERE.parent / "outputs" / "benchmarks" / "profiles"
WORKER = HERE / "profiles_worker.py"
LEAST_SHARE = 0.02
EMBEDDED = {  # sizes that suit what is embedded
    "resnet50": {"image_size": 32},
    "googlenet": {"image_size": 32},
    "resnet50_inference": {"image_size": 32},
}
MODELS = [name for name in workloads.names() if (one := workloads.load(name)).kind == "training" or one.evaluates]


def main() -> None:
    """Print a table for each workload and framework."""
    parser = argparse.ArgumentParser(description="Profiles of training steps.")
    parser.add_argument("workloads", nargs="+", choices=MODELS)
    parser.add_argument("--frameworks", nargs="+", choices=homes.ENVIRONMENTS, help="in place of all that are there")
    parser.add_argument("--originals", action="store_true")
    arguments = parser.parse_args()
    for name in arguments.workloads:
        data = workloads.load(name).data[-1 if arguments.originals else 0]
        for framework in arguments.frameworks or homes.there(name):
            condition = Condition(
                workload=name,
                framework=framework,
                environment=homes.ENVIRONMENTS[framework],
                mode="eager" if framework == "pytorch" else "graph",
                lane="tuned",
                data=data,
                hyperparameters=EMBEDDED.get(name, {}),
            )
            profile = profiled(condition)
            print(f"\n{condition}\n{_above(profile)}")
            print(_table(profile).to_string(index=False), flush=True)


def profiled(condition: Condition) -> dict[str, Any]:
    """What ``profiles_worker.py`` prints, in a fresh process of the condition's environment with all its knobs."""
    given = {
        "open": {
            "framework": condition.framework,
            "device": condition.device,
            "mode": condition.mode,
            "precision": condition.precision,
            "seed": INITIAL_SEED,
            "cpus": None,
            "world_size": 1,
            "communication": True,
            "knobs": knobs.for_session(condition),
        },
        "build": prepare_job(condition, INITIAL_SEED, INPUTS).document(),
    }
    command = [environments.find(condition.environment).python, str(WORKER), json.dumps(given)]
    with hold_machine(say), tempfile.TemporaryDirectory() as scratch:
        environment = processes.environment(condition, Path(scratch))
        done = subprocess.run(command, cwd=scratch, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{condition}: its process failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def _above(profile: dict[str, Any]) -> str:
    step_s, schedule_s = profile["step_s"], profile["schedule_s"]
    parts = [
        f"step {1000 * step_s:.3g} ms",
        f"making and putting a batch {1000 * profile['feeding_s']:.3g} ms, off the clock",
    ]
    if schedule_s is not None:
        parts.append(f"the schedule's step {1000 * schedule_s:.3g} ms, on it ({100 * schedule_s / step_s:.2g} %)")
    together = sum(row["ms a step"] for row in profile["operators"])
    return "; ".join([*parts, f"all operators together {together:.3g} ms"])


def _table(profile: dict[str, Any]) -> pd.DataFrame:
    every = pd.DataFrame(profile["operators"]).sort_values("ms a step", ascending=False)
    every["share of the step (%)"] = every["ms a step"] / (10 * profile["step_s"])
    return every[every["share of the step (%)"] >= 100 * LEAST_SHARE].round(2)


if __name__ == "__main__":
    main()
