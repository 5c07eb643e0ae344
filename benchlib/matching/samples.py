"""Samples for a user's own models: random ones, or the user's; and the data set that they are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchlib.data import Chosen, DataSet, Kind, Prepared
from benchlib.errors import BenchlibError
from benchlib.worker.service import DISTINCT_BATCHES

LARGEST = 2**28  # bytes of random samples, but for two batches


def wanted(document: Mapping[str, Any]) -> int:
    """Samples that are wanted, with a batch of them to test."""
    size, shapes = document["batch_size"], document["inputs"].values()
    of_batch = 4 * size * sum(int(np.prod(shape)) for shape in shapes)
    return size * (1 + max(2, min(DISTINCT_BATCHES, LARGEST // of_batch)))


def draw(document: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Random samples, as a worker takes them: inputs and targets are normal, words and labels have each value alike."""
    rng, shapes, size = np.random.default_rng(0), document["inputs"], document["batch_size"]
    arrays = {}
    for split, samples in (("train", wanted(document) - size), ("test", size)):
        for name, shape in shapes.items():
            arrays[f"{split}_{name}"] = _drawn(rng, document["vocabularies"].get(name), samples, shape)
        arrays[f"{split}_labels"] = _drawn(rng, document.get("classes"), samples, document["labels"])
    return arrays


def from_user(where: str, found: Mapping[str, np.ndarray], document: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The samples that a file's ``data`` gave, checked; the last batch of them is for tests."""
    wanted = {**document["inputs"], "labels": document["labels"]}
    size, arrays = document["batch_size"], {}  # type: int, dict[str, np.ndarray]
    for name, shape in wanted.items():
        if name not in found:
            raise BenchlibError(f"{where}: data gives no {name!r}, but {', '.join(found)}; give all of {list(wanted)}")
        array = np.asarray(found[name])
        if list(array.shape[1:]) != list(shape) or len(array) < 2 * size:
            rule = f"each sample must be {tuple(shape)}, and at least {2 * size} samples are needed"
            raise BenchlibError(f"{where}: data gives {name!r} of shape {array.shape}; {rule}")
        array = array.astype(np.float32 if array.dtype.kind == "f" else np.int32)
        arrays |= {f"train_{name}": array[:-size], f"test_{name}": array[-size:]}
    return arrays


def data_set(note: str, file: Path) -> DataSet:
    """The samples in ``file``, whose arrays are named as a worker takes them (``train_labels`` ...)."""
    with np.load(file) as arrays:
        return DataSet("own samples", note, len(arrays["train_labels"]), Kind(_prepared))


def identity(file: Path) -> str:
    """A hash of the samples."""
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _prepared(module: ModuleType, condition: Chosen) -> Prepared:
    with np.load(module.FILE) as found:
        arrays = dict(found)
    for name in [name for name in arrays if name.startswith("train_")]:
        arrays[name] = arrays[name][: condition.train_samples]
    return arrays, {"source": module.FILE.name}


def _drawn(rng: np.random.Generator, most: int | None, samples: int, shape: Any) -> np.ndarray:
    shape = (samples, *shape)
    return rng.integers(0, most, shape, dtype=np.int32) if most else rng.standard_normal(shape, dtype=np.float32)
