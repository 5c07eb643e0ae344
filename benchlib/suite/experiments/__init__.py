"""The experiments: what each notebook measures, from its parameter file to tables, figures and findings.

A notebook ``notebooks/X.ipynb`` has its module here: ``X.Parameters`` (its parameters cell, checked),
``X.conditions(parameters)`` (all that it will measure) and ``X.measure(parameters, lab)`` (the results). Where its
parameters are ``Compared``, ``X.comparisons(parameters)`` are the conditions in groups, each compared with each other.

An experiment is declared, as ``devices`` is:

- What was measured becomes one tidy frame (``benchlib.stats.frame``): a row for one quantity of one condition. A
  comparison and training runs give their rows by themselves; those that relate any two of their conditions are made by
  ``benchlib.stats.derived_ratios`` and stand ``beside`` them in a ``result.Part``, which also names the task.
- A ``result.Declaration`` says what is shown of it. A ``selections.Table`` has a row for each row of one quantity; its
  columns are columns of the frame, other quantities of the same condition, or what a function makes of a row. A
  ``panels.Picture`` has panels, of a quantity against something or of training runs, once or for each value of
  something. A finding is a function of the result that makes sentences of rows, with ``sentences``.
- ``measure`` gives a ``result.Result`` of the declaration and the parts. Its ``frame``, ``rows(quantity)``, ``runs``
  and ``curves`` are what all of these select from.

So a number in a table is found by opening the experiment's module (which quantity it is), ``benchlib.stats.frame``
(where its rows come from) and the function named there that computes it.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from benchlib import manifest
from benchlib.condition import Condition
from benchlib.errors import BenchlibError, unknown
from benchlib.parameter_types import DEFAULTS as DEFAULTS
from benchlib.parameter_types import defaults, read, typed
from benchlib.runner.interrupt import one_interrupt
from benchlib.suite.experiments.parameters import Compared, Parameters

if TYPE_CHECKING:
    from benchlib.lab import Lab
    from benchlib.suite.experiments.result import Result

OLD = ("instrument",)
"""The notebooks that measure and have no design cell yet."""

NOTEBOOKS = OLD
"""The notebooks that have a module here."""


def module(notebook: str) -> ModuleType:
    """The experiment behind a notebook; a BenchlibError names the nearest one if there is none."""
    if notebook not in NOTEBOOKS:
        raise BenchlibError(unknown("notebook", notebook, NOTEBOOKS))
    return importlib.import_module(f"benchlib.suite.experiments.{notebook}")


def conditions(notebook: str, parameters: Parameters) -> list[Condition]:
    """All conditions that a notebook will measure."""
    return module(notebook).conditions(parameters)


class Old:
    """A notebook without a design cell, as the suite takes a ``Study``."""

    def __init__(self, name: str, file: Path) -> None:
        self.name, self.typed = name, (parameters := load(name, file))
        self.parameters = parameters.model_dump(mode="json")
        self.every = conditions(name, parameters)
        compared = isinstance(parameters, Compared)
        self.settings = parameters.settings if compared else None
        self.groups = [group for group in module(name).comparisons(parameters) if group] if compared else []

    @property
    def least_runs(self) -> int:
        """As of a study."""
        compared = {condition for group in self.groups for condition in group}
        return len(getattr(self.typed, "seeds", [])) * sum(one not in compared for one in self.every)

    def measure(self, lab: Lab) -> Result:
        """As of a study."""
        return module(self.name).measure(self.typed, lab)


@one_interrupt()
def measure(notebook: str, lab: Lab, **given: Any) -> Result:
    """What a notebook does: measure what the parameters ask for that are given, each by its name. A BenchlibError names
    those that are missing, that no notebook of this name has, or whose value is wrong.
    """
    parameters = module(notebook).Parameters(**given)
    lab.ended = _ended(notebook, parameters, lab.folder)
    lab.certify(conditions(notebook, parameters))  # all at once: they share the gate's workers
    result = module(notebook).measure(parameters, lab)
    result.awaited = [one.file for one in lab.comparisons.values()]
    return result


def _ended(notebook: str, parameters: Parameters, folder: Path) -> set[str]:
    """Keys of the measurements that the last run showed in a notebook: its clock ended their comparisons. None, where
    it was asked for another precision, budget or pilot.
    """
    record = manifest.read(folder, notebook) or {}
    same = all(
        getattr(parameters, name, None) == record.get("parameters", {}).get(name)
        for name in ("precision", "budget_s", "pilot")
    )
    return {Path(file).stem for file in record.get("files", ())} if same else set()


def load(notebook: str, path: str | Path) -> Parameters:
    """Read and check a notebook's parameter file; a BenchlibError names file, key and value of all that is wrong."""
    return typed(module(notebook).Parameters, Path(path), values(notebook, Path(path)))


def values(notebook: str, path: Path) -> dict[str, Any]:
    """The values of a notebook's parameter file, with those of its profile's defaults that the notebook takes."""
    given = defaults(path.parent)
    known = given.model_dump(mode="json", include=set(module(notebook).Parameters.model_fields)) if given else {}
    return known | read(path)
