"""The initial state of a model: drawn once in numpy, so that every framework starts from the same numbers."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from benchlib import workloads
from benchlib.data import Chosen
from benchlib.data.prepare import prepared_folder
from benchlib.errors import BenchlibError
from benchlib.workloads import Values, Weight, Workload


def draw(workload: Workload, values: Values, seed: int) -> dict[str, np.ndarray]:
    """The initial state by the workload's names, float32, drawn in the order of ``workload.weights(values)``.
    ``glorot_uniform`` is uniform within ±sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010).
    """
    rng = np.random.default_rng(seed)
    return {name: _draw(name, weight, rng) for name, weight in workload.weights(values).items()}


def prepare_weights(condition: Chosen, seed: int, inputs: Path) -> Path:
    """The folder under ``inputs`` with the initial state for ``condition`` and ``seed`` (``files.arrays`` reads it)."""
    workload, values = workloads.load(condition.workload), condition.hyperparameters
    about = {"workload": workload.name, "seed": seed, "note": ""}
    declared = {name: dataclasses.astuple(weight) for name, weight in workload.weights(values).items()}
    name = f"weights-{workload.name}-seed{seed}"
    return prepared_folder(inputs, name, declared, lambda: (draw(workload, values, seed), about))


def _draw(name: str, weight: Weight, rng: np.random.Generator) -> np.ndarray:
    constants = {"zeros": 0.0, "ones": 1.0, "constant": weight.value}
    if weight.init in ("glorot_uniform", "uniform", "between"):
        limit = np.sqrt(6 / sum(weight.fan)) if weight.init == "glorot_uniform" else weight.limit
        bounds = weight.bounds if weight.init == "between" else (-limit, limit)
        return rng.uniform(*bounds, weight.shape).astype(np.float32)
    if weight.init in constants:
        return np.full(weight.shape, constants[weight.init], dtype=np.float32)
    if weight.init == "normal":
        return np.float32(weight.deviation) * rng.standard_normal(weight.shape, dtype=np.float32)
    raise BenchlibError(
        f"weight {name!r}: no rule draws {weight.init!r}; there are glorot_uniform, uniform, between, normal, zeros, "
        "ones and constant"
    )
