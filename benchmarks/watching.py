"""What does it cost that training can be watched? Milliseconds of the process that asks the worker, between epochs.

    .venv/bin/python benchmarks/watching.py

An epoch's loss and metric are added to the file that TensorBoard reads, of eight runs of ten epochs that are made up.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchlib import tensorboard
from benchlib.cache import Epoch, Measurement
from benchlib.condition import Condition
from benchlib.runner import recording

TIMES = 10


def main() -> None:
    """Print the time."""
    condition = Condition(workload="cnn")
    runs = [_run(condition, seed) for seed in range(8)]
    with tempfile.TemporaryDirectory() as folder:
        parts = [run.model_copy(update={"epochs": run.epochs[:n]}) for run in runs for n in range(1, TIMES + 1)]
        _tell("an epoch in its file", [_ms(lambda p=part: tensorboard.write(Path(folder), p)) for part in parts])


def _run(condition: Condition, seed: int) -> Measurement:
    epochs = [Epoch(epoch=n, wall_s=1.0, loss=2.3 / n, metric=1 - 1 / n) for n in range(1, TIMES + 1)]
    about = {"kind": "training", "role": "condition", "repetition": 0, "started_utc": recording.utc_now()}
    return Measurement(condition=condition, seed=seed, group="", file=f"{seed}", epochs=epochs, **about)


def _ms(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - started)


def _tell(what: str, took_ms: list[float]) -> None:
    print(f"{what}: {statistics.median(took_ms):.2f} ms (median of {len(took_ms)}), {max(took_ms):.2f} at most")


if __name__ == "__main__":
    main()
