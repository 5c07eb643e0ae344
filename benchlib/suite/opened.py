"""Notebooks as the start page opens them: copies beside a profile's results, with the profile's parameters. The
project's own notebooks stay as they are.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import nbformat

from benchlib import records
from benchlib.suite.plan import planned

FOLDER = "lab"
"""In a folder of results."""


def copy(notebook: Path, file: Path | None, profile: str) -> tuple[Path, bool]:
    """The path of a notebook's copy, and whether somebody has changed its cells: then it is left as it is. Outputs are
    no change. papermill adds a cell with the parameters in ``file`` below the notebook's own.
    """
    import papermill  # takes long to import

    logging.getLogger("papermill").setLevel(logging.ERROR)
    path = Path("outputs", profile, FOLDER, notebook.name)
    values = {**planned(notebook.stem, file).parameters, "outputs": ".."}  # from the copy's folder
    made = papermill.execute_notebook(notebook, None, values, prepare_only=True, progress_bar=False)
    digest = _digest(made)
    if path.exists():
        there = _read(path)
        before = there.get("metadata", {}).get("benchlib")
        if before != _digest(there):
            return path, True
        if before == digest:
            return path, False
    made.metadata.benchlib = digest
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(made, path)
    return path, False


def _read(path: Path) -> dict[str, Any]:
    """A copy that is there; empty where it is no notebook: that is for its owner to mend."""
    try:
        return nbformat.read(path, as_version=4)
    except Exception:
        return {}


def _digest(notebook: dict[str, Any]) -> str:
    """Of the cells without their outputs."""
    return records.digest([[cell["cell_type"], cell["source"]] for cell in notebook.get("cells", [])])
