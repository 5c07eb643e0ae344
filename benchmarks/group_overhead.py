"""What does our harness for several processes cost, against a torchrun script written by hand?

    .venv/bin/python benchmarks/group_overhead.py [--repetitions 10]

Each repetition starts two fresh groups of two processes for the same data-parallel training step (PyTorch ``cnn``,
batch 64 in all, images of 8x8, tuned lane, one core each): ``hand_written_group.py`` under torchrun, and ours. They
take turns in random order, 10 blocks of 20 steps each. The ratio of step times is within rounds, its interval over
repetitions; it should lie within 0.98 to 1.02.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
from pathlib import Path

from benchlib.condition import Condition
from benchlib.provenance import knobs
from benchlib.runner.jobs import INITIAL_SEED, Job, prepare_job
from benchlib.runner.machine_lock import hold_machine
from benchlib.runner.processes import WorkerProcess
from benchlib.stats.intervals import geometric_interval, log_ratios

HERE = Path(__file__).resolve().parent
STEPS, ROUNDS = 20, 10
CONDITION = Condition(
    workload="cnn", batch_size=64, hyperparameters={"image_size": 8}, lane="tuned", world_size=2, threads=1
)


def main() -> None:
    """Print the ratio."""
    parser = argparse.ArgumentParser(description="Overhead of the harness for data-parallel groups.")
    parser.add_argument("--repetitions", type=int, default=10)
    repetitions = parser.parse_args().repetitions
    job = prepare_job(CONDITION, INITIAL_SEED, HERE.parent / "outputs" / "benchmarks" / "inputs")
    with hold_machine(print):
        done = [_repetition(job, random.Random(number)) for number in range(repetitions)]
    found = geometric_interval([statistics.fmean(log_ratios(ours, theirs)) for ours, theirs in done])
    print(f"our time of a step / that of the script: {found.estimate:.4f} [{found.low:.4f}, {found.high:.4f}]")
    print(f"{found.processes} repetitions; the script's step: {1000 * min(min(of.values()) for _, of in done):.3g} ms")


def _repetition(job: Job, chance: random.Random) -> tuple[dict[int, float], dict[int, float]]:
    """Seconds of a step by round, ours and the script's."""
    worker = WorkerProcess(CONDITION, INITIAL_SEED)
    script = _started(worker.scratch, job)
    try:
        worker.finish_open()
        worker.ask("build", **job.document())
        worker.ask("first_step")
        worker.ask("block", steps=2 * STEPS)
        takes = {
            "ours": lambda: worker.ask("block", steps=STEPS)["wall_s"] / STEPS,
            "theirs": lambda: _answer(script),
        }
        for take in takes.values():  # have both come so far?
            take()
        seconds: dict[str, dict[int, float]] = {name: {} for name in takes}
        for number in range(ROUNDS):
            for name in chance.sample(list(takes), len(takes)):
                seconds[name][number] = takes[name]()
        return seconds["ours"], seconds["theirs"]
    finally:
        script.stdin.close()
        script.wait()
        worker.end()


def _started(scratch: Path, job: Job) -> subprocess.Popen:
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {**knobs.environment(CONDITION, scratch), "PYTHONPATH": str(HERE.parent)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    command = [*launcher, str(HERE / "hand_written_group.py"), json.dumps(job.document())]
    return subprocess.Popen(command, env=environment, cwd=scratch, **pipes)


def _answer(process: subprocess.Popen) -> float:
    process.stdin.write("go on\n")
    return float(process.stdout.readline())


if __name__ == "__main__":
    main()
