"""What does being measured cost? Our worker against a loop as anybody would write it, and the sampler against none.

    .venv/bin/python benchmarks/overhead.py [--repetitions 20]

Each repetition starts fresh processes for the same training step (PyTorch ``cnn``, batch 32, images of 8x8, tuned
lane): the hand-written loop of ``hand_written.py``, a worker, and one process that is both, in which the loop runs over
the worker's own model and batches, so that no luck of one process stands between the two. They take turns in random
order, 10 blocks of 40 steps each; the worker takes two, one with the sampler reading beside it. Ratios of step times
are within rounds, intervals over repetitions. All should lie within 0.99 to 1.01.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from benchlib.condition import Condition
from benchlib.provenance import knobs
from benchlib.runner.jobs import INITIAL_SEED, Job, prepare_job
from benchlib.runner.machine_lock import hold_machine
from benchlib.runner.processes import WorkerProcess
from benchlib.runner.worker_sessions import Sampler
from benchlib.stats.intervals import geometric_interval, log_ratios

HERE = Path(__file__).resolve().parent
STEPS, ROUNDS = 40, 10
CONDITION = Condition(workload="cnn", batch_size=32, hyperparameters={"image_size": 8}, lane="tuned")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Overhead of the worker and of the sampler.")
    parser.add_argument("--repetitions", type=int, default=20)
    repetitions = parser.parse_args().repetitions
    job = prepare_job(CONDITION, INITIAL_SEED, HERE.parent / "outputs" / "benchmarks" / "inputs")
    with hold_machine(print):
        done = [_repetition(job, random.Random(number)) for number in range(repetitions)]
    rows = []
    for what, of, to in (
        ("worker / hand-written loop, a process each", "worker", "hand-written"),
        ("worker / hand-written loop, in one process", "worker beside", "hand-written beside"),
        ("worker with sampler / the same worker without", "sampled", "worker"),
    ):
        interval = geometric_interval([statistics.fmean(log_ratios(one[of], one[to])) for one in done])
        ratio = f"{interval.estimate:.4f} [{interval.low:.4f}, {interval.high:.4f}]"
        rows.append({"time of a step": what, "ratio": ratio, "repetitions": interval.processes})
    print(pd.DataFrame(rows).to_string(index=False))


def _repetition(job: Job, chance: random.Random) -> dict[str, dict[int, float]]:
    """Seconds of a step by kind of process and round."""
    worker = WorkerProcess(CONDITION, INITIAL_SEED)
    loop, beside = (_started(worker.scratch, name, job) for name in ("hand_written.py", "beside.py"))
    try:
        worker.finish_open()
        worker.ask("build", **job.document())
        worker.ask("first_step")
        worker.ask("block", steps=2 * STEPS)
        takes: dict[str, Callable[[], float]] = {
            "hand-written": lambda: _answer(loop, "loop"),
            "worker": lambda: worker.ask("block", steps=STEPS)["wall_s"] / STEPS,
            "sampled": lambda: _sampled(worker),
            "hand-written beside": lambda: _answer(beside, "loop"),
            "worker beside": lambda: _answer(beside, "worker"),
        }
        for name in takes:  # have they all come so far, and are they warm?
            takes[name]()
        seconds: dict[str, dict[int, float]] = {name: {} for name in takes}
        for number in range(ROUNDS):
            for name in chance.sample(list(takes), len(takes)):
                seconds[name][number] = takes[name]()
        return seconds
    finally:
        loop.kill()
        beside.kill()
        worker.end()


def _started(scratch: Path, script: str, job: Job) -> subprocess.Popen:
    command = [sys.executable, str(HERE / script), json.dumps(job.document())]
    environment = {**knobs.environment(CONDITION, scratch), "PYTHONPATH": str(HERE.parent)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    return subprocess.Popen(command, env=environment, cwd=scratch, **pipes)


def _answer(process: subprocess.Popen, which: str) -> float:
    process.stdin.write(f"{which}\n")
    return float(process.stdout.readline())


def _sampled(worker: WorkerProcess) -> float:
    sampler = Sampler(worker)
    sampler.start()
    block = worker.ask("block", tick=sampler.tick, steps=STEPS)
    sampler.tick()
    return block["wall_s"] / STEPS


if __name__ == "__main__":
    main()
