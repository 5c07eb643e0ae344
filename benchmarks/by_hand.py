"""Does a session hold its framework back? Sessions beside loops written by hand, in any environment, its own version.

    .venv/bin/python benchmarks/by_hand.py ENVIRONMENT ... [--lane LANE] [--repetitions 5] [--to FILE]

An ENVIRONMENT that is none, such as mindspore, is that framework in the default environment.

Each repetition starts two fresh processes for the ``cnn`` on images of 8x8, batch 64: a worker, and the loop of
``by_hand_loops.py``, which is written as the framework's own documentation does and has nothing of benchlib. Both have
the lane's variables and as many threads, and take turns in random order, 10 blocks each. The ratio is the session's
throughput over the loop's, within rounds, its interval over repetitions: 0.97 at least is asked for.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import time
from pathlib import Path

import pandas as pd

from benchlib import environments, frameworks
from benchlib.condition import Condition
from benchlib.provenance import installed, knobs
from benchlib.runner.jobs import INITIAL_SEED, Job, prepare_job
from benchlib.runner.machine_lock import hold_machine
from benchlib.runner.processes import WorkerProcess
from benchlib.stats.intervals import geometric_interval, log_ratios

HERE = Path(__file__).resolve().parent
EAGER = ("pytorch", "chainer", "paddle")  # the modes that the notebook then_and_now compares
ROUNDS, BLOCK_S, REST_S = 10, 0.4, 0.25  # the rest is for threads that go on waiting after their work


def main() -> None:
    """Print the table, a line for each environment."""
    parser = argparse.ArgumentParser(description="Sessions beside loops written by hand.")
    parser.add_argument("environments", nargs="+", metavar="ENVIRONMENT")
    parser.add_argument("--lane", default="tuned")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--to", type=Path, default=HERE.parent / "outputs" / "benchmarks" / "by_hand.csv")
    given = parser.parse_args()
    rows = []
    with hold_machine(print):
        for name in given.environments:
            rows.append({"environment": name, **_compared(name, given.lane, given.repetitions)})
            print(rows[-1], flush=True)
            given.to.parent.mkdir(parents=True, exist_ok=True)
            pd.DataFrame(rows).to_csv(given.to, index=False)
    print(pd.DataFrame(rows).to_string(index=False))


def _compared(environment: str, lane: str, repetitions: int) -> dict[str, str | float]:
    home = environment if environment in environments.registry() else environments.DEFAULT
    framework = next(one for one in frameworks.names() if installed.offers(home, one) and one in environment)
    condition = Condition(
        workload="cnn", framework=framework, environment=home, batch_size=64, lane=lane,
        mode="eager" if framework in EAGER else "graph", hyperparameters={"image_size": 8},
    )  # fmt: skip
    job = prepare_job(condition, INITIAL_SEED, HERE.parent / "outputs" / "benchmarks" / "inputs")
    done = [_repetition(condition, job, random.Random(number)) for number in range(repetitions)]
    ratio = geometric_interval([statistics.fmean(log_ratios(one["loop"], one["session"])) for one in done])
    steps = {name: statistics.median(x for one in done for x in one[name].values()) for name in ("session", "loop")}
    return {
        "mode": condition.mode,
        "lane": lane,
        "session / loop": f"{ratio.estimate:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]",
        "session, ms": round(1000 * steps["session"], 2),
        "loop, ms": round(1000 * steps["loop"], 2),
    }


def _repetition(condition: Condition, job: Job, chance: random.Random) -> dict[str, dict[int, float]]:
    """Seconds of a step, of both processes, by round."""
    with WorkerProcess(condition, INITIAL_SEED) as worker:
        values = {**job.document()["values"], "learning_rate": job.document()["learning_rate"]}
        python = environments.find(condition.environment).python
        command = [python, str(HERE / "by_hand_loops.py"), condition.framework, json.dumps(values)]
        variables = {**knobs.environment(condition, worker.scratch), **_libraries(condition.framework, worker.scratch)}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
        printed = Path(worker.scratch, "loop.txt")
        with printed.open("w") as stderr:
            loop = subprocess.Popen(command, env=variables, cwd=worker.scratch, stderr=stderr, **pipes)
        try:
            worker.finish_open()
            worker.ask("build", **job.document())
            worker.ask("first_step")
            takes = {
                "session": lambda steps: worker.ask("block", steps=steps)["wall_s"] / steps,
                "loop": lambda steps: _answer(loop, steps, printed),
            }
            steps = {}
            for name, take in takes.items():
                take(10)
                steps[name] = max(5, round(BLOCK_S / take(10)))
                take(steps[name])
            seconds: dict[str, dict[int, float]] = {name: {} for name in takes}
            for number in range(ROUNDS):
                for name in chance.sample(list(takes), len(takes)):
                    time.sleep(REST_S)
                    seconds[name][number] = takes[name](steps[name])
            return seconds
        finally:
            loop.kill()
            loop.wait()


def _libraries(framework: str, folder: Path) -> dict[str, str]:
    """CNTK is linked to Open MPI of 2015: it finds today's by the old names, as in the session (docs/cntk.md)."""
    if framework != "cntk":
        return {}
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout.splitlines()
    for old, new in {"libmpi.so.12": "libmpi.so.40", "libmpi_cxx.so.1": "libmpi_cxx.so.40"}.items():
        Path(folder, old).symlink_to(next(line.split()[-1] for line in listed if line.split()[:1] == [new]))
    return {"LD_LIBRARY_PATH": str(folder)}


def _answer(loop: subprocess.Popen, steps: int, printed: Path) -> float:
    """Seconds of a step; a framework may print lines of its own before."""
    loop.stdin.write(f"{steps}\n")
    for line in loop.stdout:
        if line.startswith("seconds "):
            return float(line.split()[1])
    raise SystemExit(f"the loop has ended, with {loop.wait()}:\n{printed.read_text(errors='replace')}")


if __name__ == "__main__":
    main()
