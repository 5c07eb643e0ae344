"""What a run is about: the notebooks of a profile, each with its parameters, checked before anything starts."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchlib.condition import Condition
from benchlib.data import prepare
from benchlib.errors import BenchlibError, unknown
from benchlib.runner import preflight
from benchlib.suite import experiments
from benchlib.suite.experiments.parameters import Parameters

REPORT = "report"
"""The notebook that becomes ``report.html`` and ``report.pdf``."""

GATHERING = ("claims", REPORT)
"""The notebooks that measure nothing, and gather what the others gave; they may do without parameters."""


@dataclass(frozen=True)
class Planned:
    """A notebook of a run with its parameters, checked."""

    name: str
    notebook: Path
    parameters: dict[str, Any]  # as plain types
    data: dict[str, str]  # the data sets that it reads, and the identity of their images
    conditions: list[Condition]  # that it will measure

    @property
    def typed(self) -> Parameters:
        """The parameters as its experiment takes them."""
        return experiments.module(self.name).Parameters(**self.parameters)


def plan(profile: str) -> list[Planned]:
    """The notebooks of ``profile`` in order, parameters checked; a BenchlibError tells all that is wrong in them."""
    files, names = parameter_files(profile), experiments.NOTEBOOKS
    minutes(profile)  # refuses what is wrong in the defaults once, not for each notebook
    wrong = [f"{path}: {unknown('notebook', name, names)}" for name, path in files.items() if name not in names]
    items = []
    if not files:
        folder = Path("parameters", profile)
        wrong.append(f"{folder} has no parameter file: add one named like a notebook, as {names[0]}.yaml")
    for name in names:
        if name not in files and name not in GATHERING:
            continue  # a profile may be about some of the notebooks; the report says which have not run
        try:
            items.append(planned(name, files.get(name)))
        except BenchlibError as error:
            wrong.append(str(error))
    if wrong:
        raise BenchlibError("\n".join(wrong))
    return items


def planned(name: str, file: Path | None) -> Planned:
    """A notebook with the parameters in ``file``; a BenchlibError if they are wrong. ``GATHERING`` may have none."""
    notebook = Path("notebooks", f"{name}.ipynb")
    if not notebook.is_file():
        raise BenchlibError(f"{notebook} is missing")
    sources(notebook)  # which refuses one that parameters do not reach
    parameters, data, conditions = ({}, {}, []) if file is None else checked(name, file)
    return Planned(name, notebook, parameters, data, conditions)


def checked(name: str, file: Path) -> tuple[dict[str, Any], dict[str, str], list[Condition]]:
    """The parameters in ``file``, the identity of each data set that they ask for, and all conditions; a BenchlibError
    if they are wrong or ask for what this machine does not have.
    """
    parameters = experiments.load(name, file)
    try:
        conditions = experiments.conditions(name, parameters)
        preflight.require(conditions)
        data = {one: prepare.identity(one) for one in sorted({condition.data for condition in conditions})}
    except BenchlibError as error:
        raise BenchlibError(f"{file}: {error}") from None
    return parameters.model_dump(mode="json"), data, conditions


def parameter_files(profile: str) -> dict[str, Path]:
    """The parameter files of ``profile`` by name; a BenchlibError if this is not the project, or there is none such."""
    if not Path("parameters").is_dir() or not Path("notebooks").is_dir():
        raise BenchlibError(f"{Path.cwd()} has no notebooks/ and parameters/: run this in the project's folder")
    require_profile(profile)
    paths = sorted(Path("parameters", profile).glob("[!.]*.yaml"))
    return {path.stem: path for path in paths if path.name != experiments.DEFAULTS}


def minutes(profile: str) -> float | None:
    """The minutes of a profile for the measurements of all its notebooks; None: each comparison has its own budget."""
    given = experiments.defaults(Path("parameters", profile))
    return given.minutes if given else None


def require_profile(profile: str) -> None:
    """Refuse a profile that has no folder in ``parameters/`` with a BenchlibError."""
    profiles = [path.name for path in Path("parameters").glob("[!.]*") if path.is_dir()]
    if profile not in profiles:
        raise BenchlibError(unknown("profile", profile, profiles))


def sources(notebook: Path) -> list[list[str]]:
    """The cells of a notebook without their outputs, which JupyterLab saves into it. A BenchlibError where it is no
    whole notebook, or parameters would not take the place of those in it.
    """
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        found = [[cell["cell_type"], "".join(cell["source"])] for cell in cells]
        tagged = ["".join(cell["source"]) for cell in cells if "parameters" in cell["metadata"].get("tags", ())]
    except (ValueError, KeyError):
        raise BenchlibError(f"{notebook}: is no whole notebook; get it again from the project") from None
    if len(tagged) != 1 or not re.search("^outputs *=", tagged[0], re.MULTILINE):
        raise BenchlibError(
            f"{notebook}: the cell that sets outputs has to have the tag parameters, and no other cell. Without it the "
            "notebook runs with its own values, not with the profile's. Programs that clean notebooks take tags away. "
            "Tag the cell in JupyterLab (Property Inspector, Cell Tags), or get the notebook again from the project"
        )
    return found
