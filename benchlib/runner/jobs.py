"""From a condition to a worker's job: the files it maps, and the key of all that its numbers depend on."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchlib import env_vars, workloads
from benchlib.condition import Condition
from benchlib.data.orders import prepare_orders
from benchlib.data.prepare import prepare
from benchlib.data.weights import prepare_weights
from benchlib.provenance import fingerprint, installed, knobs, machine
from benchlib.worker import files
from benchlib.worker.batches import Batches

INITIAL_SEED = 0  # of weights and batches where the seed is not studied


@dataclass(frozen=True)
class Job:
    """A condition with its input files, made once and mapped by every worker that runs it."""

    condition: Condition
    seed: int
    data: Path
    weights: Path
    orders: Path | None  # of the first epochs; None of an operator, which has none

    def document(self) -> dict[str, Any]:
        """The worker's input, as JSON."""
        chosen = self.condition.model_dump(include={"workload", "batch_size", "learning_rate"})
        paths = {"data": str(self.data), "weights": str(self.weights), "orders": self.orders and str(self.orders)}
        return {**chosen, "values": self.condition.hyperparameters, **paths}

    def epoch(self, number: int) -> Job:
        """This job with the orders of the epochs around ``number``, made if they are not there."""
        return replace(self, orders=prepare_orders(_samples(self.data), self.seed, number, self.data.parent))

    def order(self, epoch: int = 1) -> str:
        """A hash of the order of ``epoch``, as a worker reports it; empty for an operator."""
        if self.orders is None:
            return ""
        return Batches(self.data, self.condition.batch_size, self.orders).order_digest(epoch)

    def hashes(self) -> dict[str, str]:
        """Hashes of the inputs: ``data``, ``order`` of its first epoch (empty for an operator), ``weights``."""
        return {"data": files.digest(self.data), "order": self.order(), "weights": files.digest(self.weights)}

    def depends_on(self, procedure: str) -> dict[str, Any]:
        """All that a number got by ``procedure`` depends on, but for chance: a part of its key, as JSON."""
        framework, environment = self.condition.framework, self.condition.environment
        return {
            "condition": self.condition.model_dump(),
            "seed": self.seed,
            "data": files.digest(self.data),
            "weights": files.digest(self.weights),
            "orders": self.orders and files.digest(self.orders),
            "knobs": knobs.find(self.condition),
            "variables": env_vars.identity(self.condition),
            "versions": {**installed.versions(framework, environment), **installed.compiler(self.condition)},
            "packages": installed.packages(framework, self.condition.workload, environment),
            "machine": machine.identity(self.condition.device),
            "code": fingerprint.digest(self.condition, procedure),
        }


def prepare_job(condition: Condition, seed: int, inputs: Path) -> Job:
    """Make the condition's data, initial weights and first orders under ``inputs``, unless they are there."""
    data, weights = prepare(condition, seed, inputs), prepare_weights(condition, seed, inputs)
    ordered = workloads.load(condition.workload).kind != "operator"
    return Job(condition, seed, data, weights, prepare_orders(_samples(data), seed, 1, inputs) if ordered else None)


def _samples(data: Path) -> int:
    """Training samples of prepared data."""
    return len(files.arrays(data)["train_labels"])


def key(**parts: Any) -> str:
    """A short hash of JSON-like parts, the same for equal parts on any machine."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:20]
