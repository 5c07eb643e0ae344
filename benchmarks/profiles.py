"""Where does a step's time go? One profile of each workload's step in each framework.

    [BENCHLIB_DATA=FOLDER] .venv/bin/python benchmarks/profiles.py lstm bert [--frameworks pytorch] [--originals]

A row for each kind of operator that takes 2 % of a step or more: PyTorch's by torch.profiler (self time), MindSpore's
by its own profiler, which sees operators only: what is left of a step is Python and dispatch. Above it the time of a
step, unprofiled, and beside it what is off the clock: making a batch and putting it on the device; and of what is on
the clock a learning-rate schedule's step. Lane ``tuned``, PyTorch eager, MindSpore graph; at the workload's own sizes,
on embedded data unless ``--originals`` is given. Run it alone.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import alone
import pandas as pd

from benchlib import workloads
from benchlib.condition import Condition

INPUTS = Path(__file__).resolve().parent.parent / "outputs" / "benchmarks" / "profiles"
MODES = {"pytorch": "eager", "mindspore": "graph"}
STEPS = 5  # that are profiled
TIMED_S = 3.0
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
    parser.add_argument("--frameworks", nargs="+", choices=MODES, default=list(MODES))
    parser.add_argument("--originals", action="store_true")
    arguments = parser.parse_args()
    for name in arguments.workloads:
        data = workloads.load(name).data[-1 if arguments.originals else 0]
        for framework in arguments.frameworks:
            condition = Condition(
                workload=name,
                framework=framework,
                mode=MODES[framework],
                lane="tuned",
                data=data,
                hyperparameters=EMBEDDED.get(name, {}),
            )
            found = alone.asked(__file__, condition, INPUTS)
            print(f"\n{condition}\n{found['told']}")
            print(pd.DataFrame(found["rows"]).to_string(index=False), flush=True)


def _child(given: dict[str, Any]) -> dict[str, Any]:
    worker = alone.worker(given)
    worker.do_warm_up(limit_s=20.0)
    step_s = _seconds(lambda: worker.do_block(steps=1))
    if worker.workload.kind == "training":
        feeding_s = _seconds(lambda: worker.session.put(worker.batches.batch(1, 0)))
    else:
        feeding_s = _seconds(lambda: worker.session.put(worker.batches.operator_batches()[0]))
    told = f"step {1000 * step_s:.3g} ms; making and putting a batch {1000 * feeding_s:.3g} ms, off the clock"
    if getattr(worker.session, "_schedule", None):
        schedule_s = _seconds(worker.session._schedule.step)
        told += f"; the schedule's step {1000 * schedule_s:.3g} ms, on it ({100 * schedule_s / step_s:.2g} %)"
    rows = (_pytorch if worker.framework == "pytorch" else _mindspore)(lambda: worker.do_block(steps=STEPS))
    every = pd.DataFrame(rows).sort_values("ms a step", ascending=False)
    every["share of the step (%)"] = 100 * every["ms a step"] / (1000 * step_s)
    shown = every[every["share of the step (%)"] >= 100 * LEAST_SHARE].round(2)
    told += f"; all operators together {every['ms a step'].sum():.3g} ms"
    return {"told": told, "rows": shown.to_dict("records")}


def _seconds(action: Callable[[], object]) -> float:
    """The median time of an action, repeated for a while."""
    times: list[float] = []
    while sum(times) < TIMED_S and len(times) < 200:
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return sorted(times)[len(times) // 2]


def _pytorch(run: Callable[[], object]) -> list[dict[str, Any]]:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as found:
        run()
    return [
        {"operator": one.key, "calls a step": one.count / STEPS, "ms a step": one.self_cpu_time_total / 1000 / STEPS}
        for one in found.key_averages()
    ]


def _mindspore(run: Callable[[], object]) -> list[dict[str, Any]]:
    from mindspore.profiler import ProfilerActivity, profile

    found = profile(activities=[ProfilerActivity.CPU], start_profile=False)
    found.start()
    run()
    found.stop()
    (file,) = Path.cwd().glob("data/*/FRAMEWORK/cpu_op_type_info_0.csv")
    table = pd.read_csv(file)
    return [
        {"operator": row.op_type, "calls a step": row.type_occurrences / STEPS, "ms a step": row.total / STEPS}
        for row in table.rename(columns={"total_compute_time": "total"}).itertuples()
    ]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(_child(json.loads(sys.argv[2]))))
    else:
        main()
