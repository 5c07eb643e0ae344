"""The initial state of a model: drawn once in numpy, so that every framework starts from the same numbers."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from benchlib import workloads
from benchlib.data import Chosen
from benchlib.errors import BenchlibError
from benchlib.worker import files
from benchlib.workloads import Values, Weight, Workload


def draw(workload: Workload, values: Values, seed: int) -> dict[str, np.ndarray]:
    """The initial state by the workload's names, float32, drawn in the order of ``workload.weights(values)``.

    glorot_uniform: uniform within ±sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010); uniform: within ±limit;
    between: uniform within ``bounds``; normal: mean 0, standard deviation ``deviation``; constant: ``value``
    everywhere.
    """
    rng = np.random.default_rng(seed)
    return {name: _draw(name, weight, rng) for name, weight in workload.weights(values).items()}


def prepare_weights(condition: Chosen, seed: int, inputs: Path) -> Path:
    """The folder under ``inputs`` with the initial state for ``condition`` and ``seed`` (``files.arrays`` reads it)."""
    workload = workloads.load(condition.workload)
    shapes = {
        name: [weight.shape, weight.init, weight.fan, weight.limit, weight.bounds, weight.deviation, weight.value]
        for name, weight in workload.weights(condition.hyperparameters).items()
    }
    depends = json.dumps([shapes, Path(__file__).read_text(encoding="utf-8"), np.__version__])
    folder = Path(inputs) / f"weights-{workload.name}-seed{seed}-{hashlib.sha256(depends.encode()).hexdigest()[:12]}"
    if not folder.exists():
        files.write(
            folder,
            draw(workload, condition.hyperparameters, seed),
            {"workload": workload.name, "seed": seed, "note": ""},
        )
    files.check(folder)
    return folder


def _draw(name: str, weight: Weight, rng: np.random.Generator) -> np.ndarray:
    if weight.init == "glorot_uniform":
        limit = np.sqrt(6 / sum(weight.fan))
        return rng.uniform(-limit, limit, weight.shape).astype(np.float32)
    if weight.init == "uniform":
        return rng.uniform(-weight.limit, weight.limit, weight.shape).astype(np.float32)
    if weight.init == "between":
        return rng.uniform(*weight.bounds, weight.shape).astype(np.float32)
    if weight.init == "normal":
        return np.float32(weight.deviation) * rng.standard_normal(weight.shape, dtype=np.float32)
    if weight.init in ("zeros", "ones"):
        return np.full(weight.shape, float(weight.init == "ones"), dtype=np.float32)
    if weight.init == "constant":
        return np.full(weight.shape, weight.value, dtype=np.float32)
    raise BenchlibError(
        f"weight {name!r}: no rule draws {weight.init!r}; there are glorot_uniform, uniform, between, normal, zeros, "
        "ones and constant"
    )
