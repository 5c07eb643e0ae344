"""A test of the timer, which stops after ``Session.synchronize``. It plants work of known duration: steps until weights
can be read that are there only when all is done. An adapter that forgets to wait sees less of it.
"""

from __future__ import annotations

import math
from pathlib import Path

from benchlib.cache import Result
from benchlib.condition import Condition
from benchlib.provenance import fingerprint
from benchlib.runner import recording
from benchlib.runner.jobs import INITIAL_SEED, prepare_job
from benchlib.runner.processes import WorkerFailed, WorkerProcess

PLANTED_S, PLANTED_FEW_S = 0.2, 0.01
"""Many steps, and a few. An adapter that waits for a step's loss and not for its update hides only the last step's
end, which is little of many.
"""

LEAST_SHARE, LEAST_SHARE_FEW = 0.8, 0.6  # of these that the timer must see, in the shortest of ``TAKES``
TAKES = 9
TRIES = 5  # on a restless machine


class SyncCheck(Result):
    """The planted work and the time that the timer saw, in seconds."""

    condition: Condition
    known_s: float
    timed_s: float
    share_of_few: float = 1.0  # that the timer saw of a few steps
    failure: str = ""

    @property
    def share(self) -> float:
        """The share of the steps' known duration that the timer saw."""
        return self.timed_s / self.known_s if self.known_s else 0.0

    @property
    def ok(self) -> bool:
        return not self.failure and self.share >= LEAST_SHARE and self.share_of_few >= LEAST_SHARE_FEW


def check(condition: Condition, inputs: Path, patience_s: float) -> SyncCheck:
    """Plant work in a fresh worker of ``condition``, whose workload must train something."""
    job = prepare_job(condition, INITIAL_SEED, inputs)
    try:
        with WorkerProcess(condition, INITIAL_SEED, patience_s) as worker:
            worker.finish_open()
            worker.ask("build", **job.document())
            worker.ask("first_step")
            for _ in range(TRIES):
                many, few = (worker.ask("planted", seconds=s, takes=TAKES) for s in (PLANTED_S, PLANTED_FEW_S))
                known_s, timed_s = min(many["known_s"]), min(many["timed_s"])
                of_few = min(few["timed_s"]) / max(min(few["known_s"]), 1e-9)
                seen = SyncCheck(condition=condition, known_s=known_s, timed_s=timed_s, share_of_few=of_few)
                if seen.ok:
                    break
            recording.require_hashed(worker, fingerprint.files(condition, "contract"))
            return seen
    except WorkerFailed as failure:
        result = {"failure": str(failure), "crashed": not failure.failure.is_refusal}
        return SyncCheck(condition=condition, known_s=math.nan, timed_s=math.nan, **result)
