"""The contract of ``Session.synchronize``: what a clock reads after it includes all the work. A self-test that plants
work of known duration, and requires the timer to see it.

How long the work takes is known without ``synchronize``: training steps are queued, and then the model's weights are
read, which are there only when every step has been done. The timer of the measurements, which stops after
``synchronize``, must see the same duration. An adapter that forgets to wait sees less of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from benchlib.condition import Condition
from benchlib.measure.jobs import INITIAL_SEED, prepare_job
from benchlib.measure.processes import WorkerFailed, WorkerProcess, faults

LEAST_SHARE = 0.8
"""Of the known duration that the timer must see; both are the shortest of ``TAKES``."""

TAKES = 5
PLANTED_S = 0.2


@dataclass(frozen=True)
class SyncCheck:
    """What the timer saw of planted work, in seconds; ``failure`` is a worker's."""

    condition: Condition
    known_s: float
    timed_s: float
    failure: str = ""

    @property
    def share(self) -> float:
        """Of the known duration, what the timer saw."""
        return self.timed_s / self.known_s

    @property
    def ok(self) -> bool:
        return not self.failure and self.share >= LEAST_SHARE


def check(condition: Condition, inputs: Path, patience_s: float) -> SyncCheck:
    """Plant work in a fresh worker of ``condition``, whose workload must train something."""
    job = prepare_job(condition, INITIAL_SEED, inputs)
    worker = None
    try:
        with faults(None):
            worker = WorkerProcess(condition, INITIAL_SEED, patience_s)
        with faults(worker):
            worker.opened()
            worker.ask("build", **job.document())
            worker.ask("first_step")
            takes = worker.ask("planted", seconds=PLANTED_S, takes=TAKES)
            return SyncCheck(condition, min(takes["known_s"]), min(takes["timed_s"]))
    except WorkerFailed as failure:
        return SyncCheck(condition, float("nan"), float("nan"), str(failure))
    finally:
        if worker is not None:
            worker.end()
