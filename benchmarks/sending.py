"""What does it cost to have a comparison measured as a job, against measuring it here?

    .venv/bin/python benchmarks/sending.py --pilot 5 --times 5

Measures PyTorch's ``cnn`` on images of 8x8 in two lanes. Then the same is asked for again, here and as a job, in turns:
all rows are there, so the difference is the cost of a job, without the noise of processes.
"""

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path

from benchlib import Condition, Lab

CNN = {"workload": "cnn", "data": "digits", "hyperparameters": {"image_size": 8}, "batch_size": 64}


def main() -> None:
    """Print the seconds of the comparison and of a job."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pilot", type=int, default=5, help="processes of each condition")
    parser.add_argument("--times", type=int, default=5)
    given = parser.parse_args()
    pair = [Condition(**CNN, lane="tuned"), Condition(**CNN)]
    with tempfile.TemporaryDirectory() as name:

        def seconds(on: str) -> float:
            shutil.rmtree(Path(name, "jobs"), ignore_errors=True)
            lab, started = Lab(outputs=name, on=on), time.monotonic()
            lab.compare(pair, precision=0.9, budget_s=1.0, block_s=0.25, pilot=given.pilot)
            return time.monotonic() - started

        Lab(outputs=name).certify(pair)
        whole = seconds("")
        more = [seconds("local") - seconds("") for _ in range(given.times)]
    each = ", ".join(f"{one:.2f}" for one in more)
    cost = statistics.median(more)
    print(f"the comparison takes {whole:.1f} s; as a job {cost:.2f} s more, {100 * cost / whole:.1f} % ({each})")


if __name__ == "__main__":
    main()
