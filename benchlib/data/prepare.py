"""Turns a condition's data into files that workers map: made once, and named after all that they depend on."""

from __future__ import annotations

import hashlib
import inspect
import json
from pathlib import Path

import numpy as np

from benchlib import data, workloads
from benchlib.data import Chosen
from benchlib.worker import files
from benchlib.workloads import Workload

OPERATOR_BATCHES = 2
"""So many batches take turns as an operator's input, so that no step gets the very arrays of the step before."""


def require(condition: Chosen) -> None:
    """Raise a BenchlibError if the condition's data is plainly not there. Reads and downloads nothing."""
    module = data.module(condition.data)
    if hasattr(module, "require"):
        module.require()


def identity(name: str) -> str:
    """What the data set is, wherever it lies: equal for equal samples. Empty where nothing is read."""
    return data.module(name).identity() if data.get(name).kind else ""


def prepare(condition: Chosen, seed: int, inputs: Path) -> Path:
    """The folder under ``inputs`` with the data of ``condition``, for ``batches.Batches``; made if it is not there.

    Operators: ``inputs`` and ``gradients`` (OPERATOR_BATCHES, batch_size, ...), drawn with the seed. Others: the arrays
    that the data set's kind says (see ``benchlib.data.kinds``).

    Raises a BenchlibError for data that is missing or damaged: it names the file, what was expected and what to do.
    """
    workload = workloads.load(condition.workload)
    if workload.kind == "operator":
        return _prepare_operator(workload, condition, seed, Path(inputs))
    module, kind = data.module(condition.data), data.get(condition.data).kind
    samples = "" if condition.train_samples is None else f"-first{condition.train_samples}"
    name = f"{condition.data}{kind.named(condition)}{samples}"
    code = sorted(Path(module.__file__).resolve().parent.glob("[!.]*.py"))  # those of a plug-in that may help it, too
    folder = Path(inputs) / _slug(name, module.identity(), *code)
    if not folder.exists():
        arrays, about = kind.prepared(module, condition)
        said = {"data": condition.data, "title": data.title(condition.data), "note": "", **about}
        files.write(folder, arrays, said)
    files.check(folder)
    return folder


def _prepare_operator(workload: Workload, condition: Chosen, seed: int, inputs: Path) -> Path:
    values = condition.hyperparameters
    name = f"{workload.name}-batch{condition.batch_size}-seed{seed}"
    folder = inputs / _slug(name, values, Path(inspect.getsourcefile(workload.inputs)))
    if not folder.exists():
        rng = np.random.default_rng(seed)
        batches = [workload.inputs(values, condition.batch_size, rng) for _ in range(OPERATOR_BATCHES)]
        drawn, gradients = zip(*batches, strict=True)
        arrays = {"inputs": np.stack(drawn), "gradients": np.stack(gradients)}
        about = {"data": condition.data, "title": data.title(condition.data), "note": "", "seed": seed}
        files.write(folder, arrays, about)
    files.check(folder)
    return folder


def _slug(name: str, depends: str | dict, *code: Path) -> str:
    """A readable folder name, with a hash of what else the arrays depend on: also code and numpy's generators."""
    own = sorted(Path(__file__).resolve().parent.glob("[!.]*.py"))  # where links lead: no plug-in lies beside those
    texts = [path.read_text(encoding="utf-8") for path in dict.fromkeys([*own, *code])]
    hashed = hashlib.sha256(json.dumps([depends, texts, np.__version__], sort_keys=True).encode()).hexdigest()
    return f"{name}-{hashed[:12]}"
