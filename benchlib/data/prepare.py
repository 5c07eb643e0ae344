"""Turns a condition's data into files that workers map: made once, and named after all that they depend on."""

from __future__ import annotations

import hashlib
import inspect
import json
from pathlib import Path

import numpy as np

from benchlib import data, workloads
from benchlib.condition import Condition
from benchlib.data import cifar10, digits, files, images
from benchlib.workloads import Workload

OPERATOR_BATCHES = 2
"""So many batches take turns as an operator's input, so that no step gets the very arrays of the step before."""

_LOADERS = {"cifar10": cifar10, "digits": digits}


def require(condition: Condition) -> None:
    """Raise a BenchlibError if the condition's data is plainly not there. Reads and downloads nothing."""
    if condition.data == "cifar10":
        cifar10.require()


def identity(name: str) -> str:
    """What the data set's images are, wherever they lie: equal for equal images. Empty where none are read."""
    return _LOADERS[name].identity() if name in _LOADERS else ""


def prepare(condition: Condition, seed: int, inputs: Path) -> Path:
    """The folder under ``inputs`` with the data of ``condition``, for ``batches.Batches``; made if it is not there.

    Images: ``train_inputs`` and ``test_inputs`` float32 (n, 3, image_size, image_size), standardised per channel by the
    mean and standard deviation of the full training split at that size; ``train_labels`` and ``test_labels`` int32
    (n,). ``train_samples=n`` takes the first n of a class-balanced permutation that is the same for all seeds. The seed
    makes no difference to images: the order of an epoch is for ``Batches``. Operators: ``inputs`` and ``gradients``
    (OPERATOR_BATCHES, batch_size, ...), drawn with the seed.

    Raises a BenchlibError for data that is missing or damaged: it names the file, what was expected and what to do.
    """
    workload = workloads.load(condition.workload)
    if workload.kind == "operator":
        return _prepare_operator(workload, condition, seed, Path(inputs))
    return _prepare_images(condition, Path(inputs))


def _prepare_images(condition: Condition, inputs: Path) -> Path:
    loader, size, samples = _LOADERS[condition.data], condition.hyperparameters["image_size"], condition.train_samples
    name = f"{condition.data}-{size}px" + ("" if samples is None else f"-first{samples}")
    folder = inputs / _slug(name, loader.identity(), images.__file__, loader.__file__)
    if not folder.exists():
        loaded = loader.load()
        train, test, means, deviations = images.standardised(
            images.resize(loaded.train_images, size), images.resize(loaded.test_images, size)
        )
        chosen = slice(None) if samples is None else images.balanced_order(loaded.train_labels, seed=0)[:samples]
        arrays = {
            "train_inputs": train[chosen],
            "train_labels": loaded.train_labels[chosen],
            "test_inputs": test,
            "test_labels": loaded.test_labels,
        }
        about = {
            "data": condition.data,
            "title": data.title(condition.data),
            "note": loaded.note,
            "source": loaded.source,
            "image_size": size,
            "train_samples": len(arrays["train_labels"]),
            "test_samples": len(test),
            "mean": means,
            "standard_deviation": deviations,
        }
        files.write(folder, arrays, about)
    files.check(folder)
    return folder


def _prepare_operator(workload: Workload, condition: Condition, seed: int, inputs: Path) -> Path:
    values = condition.hyperparameters
    name = f"{workload.name}-batch{condition.batch_size}-seed{seed}"
    folder = inputs / _slug(name, values, inspect.getsourcefile(workload.inputs))
    if not folder.exists():
        rng = np.random.default_rng(seed)
        batches = [workload.inputs(values, condition.batch_size, rng) for _ in range(OPERATOR_BATCHES)]
        drawn, gradients = zip(*batches, strict=True)
        arrays = {"inputs": np.stack(drawn), "gradients": np.stack(gradients)}
        about = {"data": condition.data, "title": data.title(condition.data), "note": "", "seed": seed}
        files.write(folder, arrays, about)
    files.check(folder)
    return folder


def _slug(name: str, depends: str | dict, *code: str) -> str:
    """A readable folder name, with a hash of what else the arrays depend on: also code and numpy's generators."""
    texts = [Path(path).read_text(encoding="utf-8") for path in (__file__, *code)]
    hashed = hashlib.sha256(json.dumps([depends, texts, np.__version__], sort_keys=True).encode()).hexdigest()
    return f"{name}-{hashed[:12]}"
