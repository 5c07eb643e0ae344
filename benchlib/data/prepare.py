"""Preparation of a condition's data as files that workers map: made once, and named after all their dependencies."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchlib import data, workloads
from benchlib.data import Chosen, Prepared
from benchlib.worker import files

OPERATOR_BATCHES = 2  # take turns as an operator's input, so that no step gets the very arrays of the step before


def require(condition: Chosen) -> None:
    """Raise a BenchlibError if the condition's data is plainly not there. Reads and downloads nothing."""
    module = data.module(condition.data)
    if hasattr(module, "require"):
        module.require()


def identity(name: str) -> str:
    """The identity of a data set, wherever its files are. Empty where nothing is read."""
    return data.module(name).identity() if data.get(name).kind else ""


def prepare(condition: Chosen, seed: int, inputs: Path) -> Path:
    """The folder under ``inputs`` with the data of ``condition``, for ``batches.Batches``; made if it is not there.

    Operators: ``inputs`` and ``gradients`` (OPERATOR_BATCHES, batch_size, ...), drawn with the seed. Others: the arrays
    of ``benchlib.data.kinds``. A BenchlibError for data that is missing or damaged.
    """
    workload = workloads.load(condition.workload)
    about = {"data": condition.data, "title": data.title(condition.data), "note": ""}
    if workload.kind == "operator":

        def drawn() -> Prepared:
            rng, values = np.random.default_rng(seed), condition.hyperparameters
            batches = [workload.inputs(values, condition.batch_size, rng) for _ in range(OPERATOR_BATCHES)]
            given, gradients = zip(*batches, strict=True)
            return {"inputs": np.stack(given), "gradients": np.stack(gradients)}, {**about, "seed": seed}

        name = f"{workload.name}-batch{condition.batch_size}-seed{seed}"
        code = Path(inspect.getsourcefile(workload.inputs))
        return prepared_folder(inputs, name, condition.hyperparameters, drawn, code)
    module, kind = data.module(condition.data), data.get(condition.data).kind

    def read() -> Prepared:
        arrays, said = kind.prepared(module, condition)
        return arrays, {**about, **said}

    samples = "" if condition.train_samples is None else f"-first{condition.train_samples}"
    code = sorted(Path(module.__file__).resolve().parent.glob("[!.]*.py"))  # those of a plug-in that may help it, too
    return prepared_folder(inputs, f"{condition.data}{kind.named(condition)}{samples}", module.identity(), read, *code)


def prepared_folder(inputs: Path, name: str, depends: object, make: Callable[[], Prepared], *code: Path) -> Path:
    """The folder under ``inputs`` with the arrays that ``make`` gives; made if it is not there. Its name is ``name``
    and a hash of their other dependencies: ``depends`` as JSON, files of code, and numpy's version.
    """
    own = sorted(Path(__file__).resolve().parent.glob("[!.]*.py"))  # where links lead: no plug-in lies beside those
    texts = [path.read_text(encoding="utf-8") for path in dict.fromkeys([*own, *code])]
    hashed = hashlib.sha256(json.dumps([depends, texts, np.__version__], sort_keys=True).encode()).hexdigest()
    folder = Path(inputs) / f"{name}-{hashed[:12]}"
    if not folder.exists():
        files.write(folder, *make())
    files.check(folder)
    return folder
