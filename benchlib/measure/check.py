"""What a worker computes for the equivalence gate: trials from the initial weights, each with a batch of its own.

Workers import this, so it needs numpy and the standard library only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchlib.frameworks import Session
from benchlib.workloads import Workload


def computed(
    session: Session,
    workload: Workload,
    initial: dict[str, np.ndarray],
    batches: list[Any],
    steps: int,
    trials: int | None,
) -> dict[str, np.ndarray]:
    """Outputs and gradients of a batch, losses, state and evaluation outputs after ``steps`` from it; a trial a batch,
    of the first ``trials`` (None: of all).

    Names are ``trial/quantity`` or ``trial/quantity:array``.
    """
    found: dict[str, np.ndarray] = {}
    for trial in range(len(batches))[:trials]:
        of_trial = _trial(session, workload, initial, [*batches[trial:], *batches[:trial]], steps)
        found |= {f"{trial}/{name}": array for name, array in of_trial.items()}
    return found


def _trial(
    session: Session, workload: Workload, initial: dict[str, np.ndarray], batches: list[Any], steps: int
) -> dict[str, np.ndarray]:
    session.load(initial)
    found = _numbered("outputs", session.outputs(batches[0], training=True))
    found |= {f"gradient:{name}": array for name, array in session.gradients(batches[0]).items()}
    session.load(initial)  # a forward pass may have moved running statistics
    results = [session.step(batches[i % len(batches)]) for i in range(steps)]
    session.synchronize()
    if workload.kind != "operator":
        found["losses"] = np.array([float(session.to_numpy(loss)) for loss in results])
    found |= {f"state:{name}": array for name, array in session.weights().items()}
    return found | _numbered("evaluation outputs", session.outputs(batches[0], training=False))


def _numbered(quantity: str, arrays: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    return {f"{quantity}:{number}": array for number, array in enumerate(arrays)}
