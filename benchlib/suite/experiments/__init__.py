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
from typing import TYPE_CHECKING, Any, TypeVar

from benchlib.condition import Condition
from benchlib.errors import BenchlibError, unknown
from benchlib.runner.interrupt import one_interrupt
from benchlib.stats import planner
from benchlib.suite import records
from benchlib.suite.experiments import parameter_file
from benchlib.suite.experiments.parameters import Compared, Defaults, Parameters
from benchlib.validation import Strict

if TYPE_CHECKING:
    from benchlib.lab import Lab
    from benchlib.suite.experiments.result import Result

NOTEBOOKS = (
    "devices",
    "batch_size",
    "learning_rate",
    "operators",
    "frameworks",
    "inference",
    "versions",
    "modes",
    "scaling",
    "equivalence",
    "instrument",
    "claims",
    "report",
)
"""In the order in which they run; ``report`` gathers the others."""

DEFAULTS = "defaults.yaml"
"""The file of a profile with the settings that all its comparisons have."""

Model = TypeVar("Model", bound=Strict)


def module(notebook: str) -> ModuleType:
    """The experiment behind a notebook; a BenchlibError names the nearest one if there is none."""
    if notebook not in NOTEBOOKS:
        raise BenchlibError(unknown("notebook", notebook, NOTEBOOKS))
    return importlib.import_module(f"benchlib.suite.experiments.{notebook}")


def conditions(notebook: str, parameters: Parameters) -> list[Condition]:
    """All conditions that a notebook will measure."""
    return module(notebook).conditions(parameters)


def least_s(notebook: str, parameters: Compared) -> float:
    """Seconds that the pilots of a notebook's comparisons take, at the very least."""
    return planner.least_s(parameters.pilot, parameters.block_s, sum(_sizes(notebook, parameters)))


def usual_s(notebook: str, parameters: Compared) -> float:
    """Seconds that the pilots of a notebook's comparisons should take."""
    return planner.usual_s(parameters.pilot, parameters.block_s, sum(_sizes(notebook, parameters)))


def least_runs(notebook: str, parameters: Parameters) -> int:
    """Training runs of a notebook, at the very least: those of conditions that it does not compare."""
    groups = module(notebook).comparisons(parameters) if isinstance(parameters, Compared) else []
    compared = {condition for group in groups for condition in group}
    seeds = getattr(parameters, "seeds", [])
    return len(seeds) * sum(condition not in compared for condition in conditions(notebook, parameters))


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
    record = records.read(folder, notebook) or {}
    same = all(
        getattr(parameters, name, None) == record.get("parameters", {}).get(name)
        for name in ("precision", "budget_s", "pilot")
    )
    return {Path(file).stem for file in record.get("files", ())} if same else set()


def _sizes(notebook: str, parameters: Compared) -> list[int]:
    """How many conditions each comparison of a notebook measures, the control being one."""
    return [1 + len(group) for group in module(notebook).comparisons(parameters) if group]


def load(notebook: str, path: str | Path) -> Parameters:
    """Read and check a notebook's parameter file; a BenchlibError names file, key and value of all that is wrong."""
    return _typed(module(notebook).Parameters, Path(path), values(notebook, Path(path)))


def values(notebook: str, path: Path) -> dict[str, Any]:
    """The values of a notebook's parameter file, with those of its profile's defaults that the notebook takes."""
    given = defaults(path.parent)
    known = given.model_dump(mode="json", include=set(module(notebook).Parameters.model_fields)) if given else {}
    return known | parameter_file.read(path)


def defaults(folder: Path) -> Defaults | None:
    """The settings of a profile's comparisons, checked as :func:`load` does; None where it has no file of them."""
    path = folder / DEFAULTS
    return _typed(Defaults, path, parameter_file.read(path)) if path.exists() else None


def _typed(kind: type[Model], path: Path, given: dict[str, Any]) -> Model:
    try:
        return kind(**given)
    except BenchlibError as error:
        lines = [line.removeprefix(f"{kind.__name__}: ") for line in str(error).splitlines()]
        raise BenchlibError("\n".join(f"{path}: {line}" for line in lines)) from None
