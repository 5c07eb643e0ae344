"""What does it cost to have a comparison measured as a job, against measuring it here?

    .venv/bin/python benchmarks/sending.py --pilot 12 --times 2

PyTorch's ``cnn`` on images of 8x8 against itself as installed: the same processes, once by ``Lab.compare``, once by
``Lab(on="local").compare``, in turns, each in a folder of its own. Certificates are made before.
"""

import argparse
import shutil
import tempfile
import time
from pathlib import Path

from benchlib import Condition, Lab

CNN = {"workload": "cnn", "data": "digits", "hyperparameters": {"image_size": 8}, "batch_size": 64}


def main() -> None:
    """Print seconds of both, and by how much the job takes longer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pilot", type=int, default=12, help="processes of each condition")
    parser.add_argument("--times", type=int, default=2)
    given = parser.parse_args()
    pair = [Condition(**CNN, lane="tuned"), Condition(**CNN)]
    asked = {"precision": 0.9, "budget_s": 1.0, "block_s": 0.25, "pilot": given.pilot}
    seconds: dict[str, list[float]] = {"": [], "local": []}
    with tempfile.TemporaryDirectory() as name:
        Lab(outputs=Path(name, "first")).certify(pair)
        for number in range(given.times):
            for on, taken in seconds.items():
                folder = Path(name, f"{on}{number}")
                shutil.copytree(Path(name, "first", "certificates"), folder / "certificates")
                lab = Lab(outputs=folder, on=on)
                started = time.monotonic()
                measured = lab.compare(pair, **asked)
                taken.append(time.monotonic() - started)
                print(f"{on or 'here'}: {taken[-1]:.1f} s, {len(measured.measurements)} processes", flush=True)
    here, sent = map(sum, seconds.values())
    print(f"as a job it takes {(sent - here) / given.times:.1f} s longer, {100 * (sent / here - 1):.1f} %")


if __name__ == "__main__":
    main()
