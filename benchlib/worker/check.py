"""What a worker computes for the equivalence gate: trials from the initial weights, each with a batch of its own."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchlib.frameworks import GRADIENT_SCALE, Session
from benchlib.workloads import Workload


def computed(
    session: Session, workload: Workload, initial: dict[str, np.ndarray], batches: list[Any], steps: int, trial: int
) -> dict[str, np.ndarray]:
    """Outputs and gradients of batch ``trial``; losses, state, how far the trained weights have moved, evaluation
    outputs and predictions after ``steps`` from it.

    Names are ``trial/quantity`` or ``trial/quantity:array``.
    """
    batches = [*batches[trial:], *batches[:trial]]
    session.load(initial)
    found = _numbered("outputs", session.outputs(batches[0], training=True))
    gradients = session.gradients(batches[0])
    found.update({f"gradient:{name}": array for name, array in gradients.items()})
    found.update({f"gradient size:{name}": _size([array]) for name, array in gradients.items()})
    session.load(initial, GRADIENT_SCALE)  # a forward pass may have moved running statistics; no step may be left out
    results = [session.step(batches[i % len(batches)]) for i in range(steps)]
    session.synchronize()
    if workload.kind != "operator":
        found["losses"] = np.array([float(session.to_numpy(loss)) for loss in results])
    state = session.weights()
    if workload.kind == "training":
        found["update size"] = _size([state[name] - initial[name] for name in gradients])
    found.update({f"state:{name}": array for name, array in state.items()})
    found.update(_numbered("evaluation outputs", session.outputs(batches[0], training=False)))
    if workload.predicts:
        found["predictions"] = session.predictions(batches[0])
    return {f"{trial}/{name}": array for name, array in found.items()}


def _size(arrays: list[np.ndarray]) -> np.ndarray:
    """The Euclidean norm of all together."""
    return np.array([math.sqrt(sum(float(np.square(array, dtype=float).sum()) for array in arrays))])


def _numbered(quantity: str, arrays: tuple[np.ndarray, ...]) -> dict[str, np.ndarray]:
    return {f"{quantity}:{number}": array for number, array in enumerate(arrays)}
