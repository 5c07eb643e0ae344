"""What does the analysis cost? It should grow with the number of blocks and no faster.

    .venv/bin/python benchmarks/analysis.py

Makes up comparisons of 3 conditions (and the A/A) in more and more processes of 25 blocks, and times what follows from
them: ratios, throughput, and the plan; beside it, reading them from disk. 100,000 blocks should be summarised in less
than 5 s and 1 GB.
"""

from __future__ import annotations

import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from benchlib.cache import Block, Measurement, Store
from benchlib.condition import Condition
from benchlib.equivalence.certificate import Certificate, Check
from benchlib.stats.comparison import MARGIN, Comparison
from benchlib.stats.planner import PILOT

ROUNDS = 25


def main() -> None:
    """Print the table."""
    print(pd.DataFrame([_row(blocks) for blocks in (1_000, 10_000, 100_000, 200_000)]).to_string(index=False))


def _row(blocks: int) -> dict[str, object]:
    comparison = _made_up(blocks)
    started = time.perf_counter()
    comparison.ratios()
    comparison.throughput()
    assert comparison.plan.spent_s > 0
    seconds = time.perf_counter() - started
    return {
        "blocks": blocks,
        "processes": len(comparison.measurements),
        "seconds": f"{seconds:.2f}",
        "seconds to read them": f"{_reading(comparison):.2f}",
        "peak memory of the process, MiB": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10),
    }


def _reading(comparison: Comparison) -> float:
    """From files as they lie on disk, one a repetition."""
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder))
        files: dict[str, list[Measurement]] = {}
        for m in comparison.measurements:
            files.setdefault(m.file, []).append(m)
        for together in files.values():
            store.save(together)
        started = time.perf_counter()
        assert len(store.all()) == len(comparison.measurements)
        return time.perf_counter() - started


def _made_up(blocks: int) -> Comparison:
    rng = np.random.default_rng(0)
    base = Condition(workload="cnn")
    conditions = [base, base.but(framework="mindspore"), base.but(framework="mindspore", mode="graph")]
    members = [("baseline", base), ("control", base), *(("condition", condition) for condition in conditions[1:])]
    repetitions = blocks // (ROUNDS * len(members))
    measurements = [
        Measurement(
            kind="comparison",
            group="made up",
            file=str(repetition),
            repetition=repetition,
            role=role,
            condition=condition,
            seed=repetition,
            started_utc="2026-01-01T00:00:00+00:00",
            machine={"cores": 2},
            memory=dict.fromkeys(("peak", "steady", "private", "after_import", "children"), 100.0),
            first_step_s=1.0,
            warm_up_s=1.0,
            repetition_s=10.0,
            rounds_s=8.0,
            blocks=[
                Block(round=i, position=0, steps=1, samples=64, started_s=0.0, wall_s=wall, cpu_s=wall)
                for i, wall in enumerate(np.exp(rng.normal(0, 0.05, ROUNDS)))
            ],
        )
        for repetition in range(repetitions)
        for role, condition in members
    ]
    check = Check(name="outputs", difference=0.0, worst=0.0, at="outputs", tolerance=1e-5, ok=True)
    same = {one.key: Certificate(condition=one, reference=base, checks=[check]) for one in conditions}
    return Comparison(conditions, measurements, same, 0.03, 600.0, PILOT, MARGIN)


if __name__ == "__main__":
    main()
