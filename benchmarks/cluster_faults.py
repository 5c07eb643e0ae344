"""Kills nodes, jobs and drivers at random moments: is anything finished lost, changed, or there twice?

    .venv/bin/python benchmarks/cluster_faults.py --on slurm --trials 20 --seed 0    # or --on ray

Two nodes of Debian's Slurm, or of Ray, on this machine measure two comparisons of the tests' framework; one thing is
killed at a moment drawn at random, and what the driver needs to come to its end is started again. Slurm takes root,
slurm-wlm and munge, Ray the environment ``ray``, whose head is not killed: a driver cannot do without it.
"""

import argparse
import contextlib
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import clusters  # noqa: E402
import psutil  # noqa: E402
from patience import until  # noqa: E402
from test_jobs import DOUBLES, DRIVER  # noqa: E402

from benchlib import environments, plugins  # noqa: E402
from benchlib.cache import Store  # noqa: E402

KILLED = ("the driver", "a node", "a job")
LONGEST_S = 14.0  # a run takes longer


def finished(folder: Path) -> dict[str, str]:
    """The measurements that are kept, with hashes."""
    every = folder.glob("measurements/[!.]*.parquet")
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in every}


def trial(cluster: clusters.Cluster, folder: Path, what: str, after_s: float) -> tuple[int, list[str]]:
    """Kill once; the files that were kept at that moment, and all that went wrong."""
    command = [sys.executable, "-c", DRIVER.format(folder=str(folder), doubles=str(DOUBLES), on=cluster.on)]
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    time.sleep(after_s)
    if what == "the driver":
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    elif what == "a node":
        nodes = [name for name in cluster.commands if name.startswith("n")]
        node = random.choice(nodes[1:] if cluster.on.startswith("ray") else nodes)
        cluster.kill(node)
        cluster.start(node)
    elif running := [one for one in psutil.process_iter() if _is_job(one, (str(folder), *cluster.commands))]:
        random.choice(running).kill()
    before = finished(folder)
    if what == "the driver":
        driver = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        said, _ = driver.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        os.killpg(driver.pid, signal.SIGKILL)
        return len(before), ["it did not come to its end"]
    wrong = [] if said == "[16, 16]\n" else [f"the driver said {said!r}"]
    now = finished(folder)
    wrong += [f"{name} is gone, or changed" for name, digest in before.items() if now.get(name) != digest]
    rows = Store(folder / "measurements").all()
    twice = Counter((m.group, m.machine["host"], m.repetition, m.role) for m in rows)
    wrong += [f"{row} is there {count} times" for row, count in twice.items() if count > 1]
    return len(before), wrong


def is_idle(cluster: clusters.Cluster) -> bool:
    """Are both nodes there, and is no job on them?"""
    if cluster.on.startswith("slurm"):
        return clusters.asked("sinfo", "-h", "-N", "-o", "%t").split() == ["idle", "idle"]
    status = [str(Path(environments.find("ray").python).with_name("ray")), "status", f"--address={cluster.on[4:]}"]
    return "0.0/2.0 benchlib" in clusters.asked(*status)


def _is_job(process: psutil.Process, places: tuple[str, ...]) -> bool:
    """Is it the command ``benchlib job``, for a document in this folder, or in one of a node of Ray?"""
    with contextlib.suppress(psutil.Error):
        line = process.cmdline()
        return line[1:4] == ["-m", "benchlib", "job"] and any(f"{one}/" in line[4] for one in places)
    return False


def main() -> None:
    """Print a row for each kind of kill."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--on", choices=("slurm", "ray"), default="slurm")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    random.seed(given.seed)
    plugins.use([DOUBLES])
    print("| killed | times | files kept then | what went wrong |\n|---|---:|---:|---|")
    made: dict[str, list[tuple[int, list[str]]]] = {what: [] for what in KILLED}
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder, patch = Path(name), stack.enter_context(pytest.MonkeyPatch.context())
        lock = f"import pathlib, benchlib.runner.machine_lock as of; of.LOCK = pathlib.Path({str(folder / 'lock')!r})"
        (folder / "sitecustomize.py").write_text(lock)
        patch.setenv("PYTHONPATH", name)
        cluster = stack.enter_context(getattr(clusters, given.on)(folder, patch))
        for number in range(given.trials):
            what = KILLED[number % len(KILLED)]
            until(lambda: is_idle(cluster), 90)
            made[what].append(trial(cluster, folder / f"out{number}", what, random.uniform(0.5, LONGEST_S)))
            print(f"{number}: {what}: {made[what][-1]}", file=sys.stderr, flush=True)
    for what, of in made.items():
        wrong = "; ".join(one for _, some in of for one in some) or "nothing"
        print(f"| {what} | {len(of)} | {sum(kept for kept, _ in of)} | {wrong} |")


if __name__ == "__main__":
    main()
