"""From a condition to a worker's job: the files it maps, and the key of all that its numbers depend on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchlib import knobs, variables, workloads
from benchlib.condition import Condition
from benchlib.data import files
from benchlib.data.batches import Batches
from benchlib.data.prepare import prepare
from benchlib.data.weights import prepare_weights
from benchlib.measure import machine

INITIAL_SEED = 0
"""Of weights and batches where the seed is not what is studied: every process of a comparison starts from the same
ones.
"""


@dataclass(frozen=True)
class Job:
    """A condition with its input files, made once and mapped by every worker that runs it."""

    condition: Condition
    seed: int
    data: Path
    weights: Path

    def document(self) -> dict[str, Any]:
        """The worker's input, as JSON."""
        return {
            "workload": self.condition.workload,
            "values": self.condition.hyperparameters,
            "batch_size": self.condition.batch_size,
            "learning_rate": self.condition.learning_rate,
            "data": str(self.data),
            "weights": str(self.weights),
            "seed": self.seed,
        }

    def hashes(self) -> dict[str, str]:
        """Of what a worker is given: ``data``, ``order`` of its first epoch (empty for an operator), ``weights``."""
        workload = workloads.load(self.condition.workload)
        order = ""
        if workload.kind != "operator":
            order = Batches(self.data, self.condition.batch_size, self.seed, workload.fields).order_digest()
        return {"data": files.digest(self.data), "order": order, "weights": files.digest(self.weights)}

    def depends_on(self, procedure: str) -> dict[str, Any]:
        """All that a number got by ``procedure`` (see ``machine.code_files``) depends on, but for chance: a part of
        its key, as JSON.
        """
        return {
            "condition": self.condition.model_dump(),
            "seed": self.seed,
            "data": files.digest(self.data),
            "weights": files.digest(self.weights),
            "knobs": knobs.of(self.condition),
            "variables": variables.identity(),
            "versions": machine.versions(self.condition.framework),
            "packages": machine.packages(self.condition.framework, self.condition.workload),
            "machine": machine.identity(self.condition.device),
            "code": machine.code(self.condition, procedure),
        }


def prepare_job(condition: Condition, seed: int, inputs: Path) -> Job:
    """Make the condition's data and initial weights under ``inputs``, unless they are there."""
    return Job(condition, seed, prepare(condition, seed, inputs), prepare_weights(condition, seed, inputs))


def key(**parts: Any) -> str:
    """A short hash of JSON-like parts, the same for equal parts on any machine."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]
