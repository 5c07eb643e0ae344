"""What does it cost to have a comparison measured as a job, against measuring it here?

    .venv/bin/python benchmarks/sending.py --pilot 5 --times 5
    .venv/bin/python benchmarks/sending.py --pilot 5 --on "ray 127.0.0.1:6379"    # a node of this machine alone

Measures PyTorch's ``cnn`` on images of 8x8 in two lanes. Then the same is asked for again, here and as a job, in turns:
all rows are there, so the difference is the cost of a job, without the noise of processes. With ``--on`` the engine
measures anew, and the cores are counted that Ray's own processes take meanwhile, but for those that have ended.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from benchlib import Condition, Lab
from benchlib.environments import root

CNN = {"workload": "cnn", "data": "digits", "hyperparameters": {"image_size": 8}, "batch_size": 64}


def main() -> None:
    """Print the seconds of the comparison and of a job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pilot", type=int, default=5, help="processes of each condition")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--on", default="", metavar="ENGINE")
    given = parser.parse_args()
    pair = [Condition(**CNN, lane="tuned"), Condition(**CNN)]
    labs: list[Lab] = []
    with tempfile.TemporaryDirectory() as name:

        def seconds(on: str) -> float:
            shutil.rmtree(Path(name, "jobs"), ignore_errors=True)
            labs.append(lab := Lab(outputs=name, on=on))  # its agent goes on to the end
            started = time.monotonic()
            lab.compare(pair, precision=0.9, budget_s=1.0, block_s=0.25, pilot=given.pilot)
            return time.monotonic() - started

        if given.on:
            before, whole = cpu_seconds(), seconds(given.on)
            cost = sum(now - before.get(number, 0.0) for number, now in cpu_seconds().items())
            print(f"the comparison takes {whole:.1f} s, and Ray's own processes {cost / whole:.3f} cores of that time")
            return
        Lab(outputs=name).certify(pair)
        whole = seconds("")
        more = [seconds("local") - seconds("") for _ in range(given.times)]
    each = ", ".join(f"{one:.2f}" for one in more)
    cost = statistics.median(more)
    print(f"the comparison takes {whole:.1f} s; as a job {cost:.2f} s more, {100 * cost / whole:.1f} % ({each})")


def cpu_seconds() -> dict[int, float]:
    """The CPU seconds of Ray's processes so far, by number; those of what a job measures are not among them."""
    found, ray = {}, str(root() / ".environments" / "ray")
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            called = " ".join(process.cmdline())
            if ray in called or called.startswith("ray::"):
                found[process.pid] = sum(process.cpu_times()[:2])
    return found


if __name__ == "__main__":
    main()
