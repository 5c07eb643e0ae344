"""A profile's notebooks, each with its parameters, checked before anything starts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchlib.cluster.lab import require
from benchlib.condition import Condition
from benchlib.data import prepare
from benchlib.environments import or_shipped
from benchlib.errors import BenchlibError, no_such
from benchlib.notebooks import design, has_design
from benchlib.parameter_types import DEFAULTS, defaults, given
from benchlib.study import Study

REPORT = "report"  # becomes report.html and report.pdf


@dataclass(frozen=True)
class Planned:
    """A notebook of a run with its study, checked; one that gathers has none, and may do without parameters."""

    name: str
    notebook: Path
    study: Study | None = None
    data: dict[str, str] = field(default_factory=dict)  # the data sets that it reads, with identities of their images

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters as plain types."""
        return self.study.parameters if self.study else {}

    @property
    def conditions(self) -> list[Condition]:
        """All that it will measure."""
        return self.study.every if self.study else []


def notebooks() -> list[str]:
    """The project's notebooks in their order: by name, those that gather after the others, the report last."""
    every = sorted(path.stem for path in or_shipped(Path("notebooks")).glob("[!.]*.ipynb"))
    return sorted(every, key=lambda name: (gathers(name), name == REPORT))


def path_of(name: str) -> Path:
    """The path of a notebook: the project's, or benchlib's own."""
    return or_shipped(Path("notebooks")) / f"{name}.ipynb"


def gathers(name: str) -> bool:
    """Does a notebook gather others' results, and measure nothing? One that cannot be read is refused later."""
    try:
        return not has_design(path_of(name))
    except BenchlibError:
        return True


def plan(profile: str, changes: Iterable[str] = ()) -> list[Planned]:
    """The notebooks of ``profile`` in order, with ``changes`` (``modes.epochs=8``); a BenchlibError has all faults."""
    files, names, changed = parameter_files(profile), notebooks(), given(changes)
    minutes(profile)  # refuses wrong defaults once, not for each notebook
    wrong = [f"{path}: {no_such('notebook', name, names)}" for name, path in files.items() if name not in names]
    wrong += [f"--set: {no_such('notebook', name, files)}" for name in changed.keys() - files]
    items = []
    if not files:
        wrong.append(f"{Path('parameters', profile)} has no parameter file: add one named like a notebook")
    for name in names:
        if name not in files and not gathers(name):
            continue  # a profile may be about some of the notebooks; the report says which have not run
        try:
            items.append(plan_notebook(name, files.get(name), **changed.get(name, {})))
        except BenchlibError as error:
            wrong.append(str(error))
    if wrong:
        raise BenchlibError("\n".join(wrong))
    return items


def plan_notebook(name: str, file: Path | None, **changes: Any) -> Planned:
    """A notebook with the parameters in ``file``; a BenchlibError if they are wrong, or it cannot be measured here."""
    notebook = path_of(name)
    if not has_design(notebook) and file is None:
        return Planned(name, notebook)
    try:
        study = design(notebook, file, **changes)
        require(study.every)
        data = {one: prepare.identity(one) for one in sorted({condition.data for condition in study.every})}
    except BenchlibError as error:
        text = str(error)
        raise BenchlibError(text if text.startswith((str(file), str(notebook))) else f"{file}: {text}") from None
    return Planned(name, notebook, study, data)


def parameter_files(profile: str) -> dict[str, Path]:
    """The parameter files of ``profile`` by name; a BenchlibError if this is not the project, or there is none such."""
    folder = or_shipped(Path("parameters"))
    if not folder.is_dir() or not or_shipped(Path("notebooks")).is_dir():
        raise BenchlibError(f"{Path.cwd()} has no notebooks/ and parameters/: run this in the project's folder")
    profiles = [path.name for path in folder.glob("[!.]*") if path.is_dir()]
    if profile not in profiles:
        raise BenchlibError(no_such("profile", profile, profiles))
    paths = sorted((folder / profile).glob("[!.]*.yaml"))
    return {path.stem: path for path in paths if path.name != DEFAULTS}


def minutes(profile: str) -> float | None:
    """The minutes of a profile for the measurements of all its notebooks; None: each comparison has its own budget."""
    own = defaults(or_shipped(Path("parameters")) / profile)
    return own.minutes if own else None
