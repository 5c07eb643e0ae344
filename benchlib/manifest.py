"""The record of each notebook in a folder of results: its outcome, and the files that it made, by their hashes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from benchlib.scratch import replace_file


def read(folder: Path, name: str) -> dict[str, Any] | None:
    """The record of notebook ``name``; None if there is no whole one.

    ``status`` is ``succeeded`` (``stale`` then names the changes since), ``running`` (or killed) or ``failed``. Of a
    failure, ``error`` has the ``cell`` and the ``text``, and ``partial`` the path of the incomplete notebook.
    """
    try:
        return json.loads(path_of(folder, name).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def read_all(folder: Path) -> dict[str, dict[str, Any] | None]:
    """The records of all notebooks that have run in a folder of results, by name."""
    names = {path.stem for kind in ("json", "ipynb") for path in folder.glob(f"notebooks/[!.]*.{kind}")}
    return {name: read(folder, name) for name in sorted(names)}


def wrong_files(record: dict[str, Any], folder: Path, name: str = "it") -> Iterator[tuple[str, str]]:
    """The files that notebook ``name`` made and that are not there as it made them, each with the fault."""
    for file, digest_then in record["files"].items():
        if not (folder / file).is_file():
            yield file, "is gone"
        elif digest((folder / file).read_bytes()) != digest_then:  # JupyterLab writes to the same folder
            yield file, f"differs from the one that {name} made"


def all_wrong(folder: Path, notebooks: Iterable[str] | None = None) -> dict[str, str]:
    """The wrong files (:func:`wrong_files`) of all notebooks, or of these, that have succeeded."""
    wrong: dict[str, str] = {}
    every = read_all(folder)
    for name in every if notebooks is None else notebooks:
        record = every.get(name)
        if record and record["status"] == "succeeded":
            wrong = {**dict(wrong_files(record, folder, name)), **wrong}
    return wrong


def digest(value: Any) -> str:
    """A short hash of bytes, or of anything that JSON can hold."""
    text = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()[:16]


def path_of(folder: Path, name: str) -> Path:
    """The path of the record of notebook ``name``."""
    return folder / "notebooks" / f"{name}.json"


def write(path: Path, record: dict[str, Any]) -> None:
    """Write a record, at once or not at all."""
    with replace_file(path) as partial:
        partial.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
