"""A notebook's two tagged cells, as the suite executes them in its own process before anything is measured."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import create_model

from benchlib.errors import BenchlibError, quote
from benchlib.parameter_types import defaults, read, validate_as
from benchlib.study import Study, WrongChoice
from benchlib.validation import Strict


@dataclass(frozen=True)
class Cell:
    """A cell of a notebook, without its outputs, which JupyterLab saves into it."""

    kind: str
    source: str
    tags: tuple[str, ...]


def cells(notebook: Path) -> list[Cell]:
    """The cells of a notebook. A BenchlibError where it is no whole notebook, or parameters would not take the place of
    those in it.
    """
    try:
        every = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        found = [Cell(one["cell_type"], "".join(one["source"]), (*one["metadata"].get("tags", ()),)) for one in every]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise BenchlibError(f"{notebook}: is gone, or no whole notebook; get it again from the project") from None
    tagged = [one.source for one in found if "parameters" in one.tags]
    if len(tagged) != 1 or not any(line.startswith(("outputs:", "outputs =")) for line in tagged[0].splitlines()):
        raise BenchlibError(
            f"{notebook}: the cell that sets outputs has to have the tag parameters, and no other cell. Without it the "
            "notebook runs with its own values, not with the profile's. Programs that clean notebooks take tags away. "
            "Tag the cell in JupyterLab (Property Inspector, Cell Tags), or get the notebook again from the project"
        )
    return found


def has_design(notebook: Path) -> bool:
    """Does a notebook measure? One without a cell tagged ``design`` and without parameters gathers others' results."""
    found = any("design" in one.tags for one in cells(notebook))
    if not found and schema(notebook).model_fields:
        raise BenchlibError(f"{notebook}: it has parameters, and no cell has the tag design: tag the one for the study")
    return found


def design(notebook: Path, file: Path, **changes: Any) -> Study:
    """Execute a notebook's cells tagged ``parameters`` and ``design`` with the values of a parameter file, with some
    ``changes``. A BenchlibError names file, key and value of all that is wrong.
    """
    module, values = ModuleType(notebook.stem), read(file) | changes
    model = _model(_execute("parameters", notebook, module))
    if "settings" in model.model_fields and isinstance(values.get("settings", {}), dict):
        profile = defaults(file.parent)
        common = profile.model_dump(mode="json", exclude={"minutes"}) if profile else {}
        values["settings"] = common | values.get("settings", {})
    parameters = validate_as(model, file, values).model_dump(mode="json")
    vars(module).update(parameters)
    try:
        _execute("design", notebook, module)
    except BenchlibError as error:
        message = str(error)
        if isinstance(error, WrongChoice) and (key := _key_of(parameters, error)):
            message = f"{key}: {quote(error.value)}: {error.why}"
        raise BenchlibError(f"{file}: {message} (for {notebook})") from None
    studies = [one for one in vars(module).values() if isinstance(one, Study)]
    if len(studies) != 1 or studies[0].name != notebook.stem:
        raise BenchlibError(f"{notebook}: the cell tagged design has to make Study({notebook.stem!r}, ...)")
    studies[0].parameters = parameters
    return studies[0]


def schema(notebook: Path) -> type[Strict]:
    """The model of a notebook's parameters: the annotated names of the cell tagged so, but the folder of results."""
    return _model(_execute("parameters", notebook, ModuleType(notebook.stem)))


def _model(module: ModuleType) -> type[Strict]:
    kinds = {name: (kind, ...) for name, kind in module.__annotations__.items() if name != "outputs"}
    return create_model(module.__name__, __base__=Strict, **kinds)


def _execute(tag: str, notebook: Path, module: ModuleType) -> ModuleType:
    """Execute the cell with a tag in ``module``."""
    source = next((one.source for one in cells(notebook) if tag in one.tags), None)
    if source is None:
        raise BenchlibError(f"{notebook}: no cell has the tag {tag}: tag the one that makes the study")
    try:
        exec(compile(source, f"{notebook}, cell {tag}", "exec", dont_inherit=True), vars(module))
    except BenchlibError:
        raise
    except (Exception, SystemExit) as error:
        raise BenchlibError(f"{notebook}: the cell tagged {tag}: {type(error).__name__}: {error}") from error
    return module


def _key_of(values: Any, choice: WrongChoice, *keys: str) -> str:
    """The first key under which the value of a choice stands, which is called like it, or like several of it."""
    items = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    for key, one in items:
        if choice.name in str(key) and (one == choice.value or (isinstance(one, list) and choice.value in one)):
            return ".".join((*keys, str(key)))
        if found := _key_of(one, choice, *keys, str(key)):
            return found
    return ""
