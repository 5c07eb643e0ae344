"""The data sets: a module each, which defines ``DATA_SET`` and how its samples are loaded; other modules help them. The
parent turns a data set into files, which workers map, so every framework sees the same numbers in the same order.
"""

from __future__ import annotations

import functools
import importlib
import os
import pkgutil
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import numpy as np

from benchlib.errors import BenchlibError, no_such


class Chosen(Protocol):
    """The choices of a condition that its data depend on; conditions are a floor above, and ask here for data sets."""

    workload: str
    data: str
    hyperparameters: Mapping[str, Any]
    batch_size: int
    train_samples: int | None


Prepared = tuple[dict[str, np.ndarray], dict[str, Any]]
"""Arrays by name as ``benchlib.worker.batches`` takes them, and their description, as JSON: ``note`` on the files
that were really read, ``source`` ...
"""


@dataclass(frozen=True)
class Kind:
    """The way from samples to a worker's arrays: ``prepared(module, condition)`` gets the data set's module, and calls
    its ``load``. ``named(condition)`` gives other values of the condition that the arrays depend on, for a folder.
    """

    prepared: Callable[[ModuleType, Chosen], Prepared]
    named: Callable[[Chosen], str] = lambda condition: ""


@dataclass(frozen=True)
class DataSet:
    """The description of a data set, and its preparation. Its module also has ``load`` and ``identity()``, which is
    equal for equal samples, wherever they lie. Where samples may be missing, it has ``require()``, which raises a
    BenchlibError then and reads nothing.
    """

    title: str  # in one or two words, for tables and axes
    note: str  # on the data set as published
    train_size: int | None  # training samples; None: drawn as needed
    kind: Kind | None = None  # None: a workload draws it, nothing is read


def names() -> list[str]:
    """The data sets there are."""
    return list(_names(tuple((path, os.stat(path).st_mtime_ns) for path in __path__)))


def module(name: str) -> ModuleType:
    """The module of data set ``name``; a BenchlibError names the nearest one if there is none."""
    if name not in names():
        raise BenchlibError(no_such("data set", name, names()))
    return importlib.import_module(f"{__name__}.{name}")


def get(name: str) -> DataSet:
    """The data set called ``name``."""
    return module(name).DATA_SET


def title(name: str) -> str:
    """Data set ``name`` in one or two words, for tables and axes."""
    return get(name).title


@functools.cache
def _names(folders: tuple[tuple[str, int], ...]) -> tuple[str, ...]:
    """Read once, until something is added."""
    modules = [one for one in pkgutil.iter_modules([path for path, _ in folders]) if not one.ispkg]
    texts = {one.name: Path(one.module_finder.path, f"{one.name}.py").read_text(encoding="utf-8") for one in modules}
    return tuple(sorted(name for name, text in texts.items() if re.search(r"^DATA_SET\b", text, re.MULTILINE)))
