"""What a worker computes for the equivalence gate: trials from the initial weights, each with a batch of its own.

Workers import this, so it needs numpy and the standard library only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchlib.frameworks import Session
from benchlib.workloads import Workload


def computed(
    session: Session, workload: Workload, initial: dict[str, np.ndarray], batches: list[Any], steps: int, trial: int
) -> dict[str, np.ndarray]:
    """Outputs and gradients of batch ``trial``, losses, state, evaluation outputs and predictions after ``steps`` from
    it.

    Names are ``trial/quantity`` or ``trial/quantity:array``.
    """
    batches = [*batches[trial:], *batches[:trial]]
    session.load(initial)
    found = _numbered("outputs", session.outputs(batches[0], training=True))
    found |= {f"gradient:{name}": array for name, array in session.gradients(batches[0]).items()}
    session.load(initial)  # a forward pass may have moved running statistics
    results = [session.step(batches[i % len(batches)]) for i in range(steps)]
    session.synchronize()
    if workload.kind != "operator":
        found["losses"] = np.array([float(session.to_numpy(loss)) for loss in results])
    found |= {f"state:{name}": array for name, array in session.weights().items()}
    found |= _numbered("evaluation outputs", session.outputs(batches[0], training=False))
    if workload.predicts:
        found["predictions"] = session.predictions(batches[0])
    return {f"{trial}/{name}": array for name, array in found.items()}


def _numbered(quantity: str, arrays: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    return {f"{quantity}:{number}": array for number, array in enumerate(arrays)}
