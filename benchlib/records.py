"""The records of a folder of results: what became of each notebook there, and which files it made, by their hashes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


def read(folder: Path, name: str) -> dict[str, Any] | None:
    """The record of notebook ``name`` in a folder of results, None if it was never started.

    ``status`` is ``succeeded`` (where it has ``stale``, that says what has changed since, and there are no measurements
    for another result), ``running`` (at work, or killed), or ``failed``; then ``error`` says in which ``cell`` and why
    (``text``), and where what there is of the notebook lies (``partial``; without it, nothing).
    """
    try:
        return json.loads(path_of(folder, name).read_text(encoding="utf-8"))
    except (FileNotFoundError, json.JSONDecodeError):
        return None


def wrong_files(record: dict[str, Any], folder: Path, name: str = "it") -> Iterator[tuple[str, str]]:
    """The files that a notebook made and that are not there as it made them, each with what is wrong with it, in a
    sentence that calls the notebook ``name``.
    """
    for file, digest_then in record["files"].items():
        if not (folder / file).is_file():
            yield file, "is gone"
        elif digest((folder / file).read_bytes()) != digest_then:  # JupyterLab writes to the same folder
            yield file, f"is not what {name} made"


def names(folder: Path) -> list[str]:
    """The notebooks that have a record in a folder of results."""
    return sorted(path.stem for path in (folder / "notebooks").glob("[!.]*.json"))


def all_wrong(folder: Path, notebooks: Iterable[str] | None = None) -> dict[str, str]:
    """By file, as :func:`wrong_files`, of all these notebooks (None: all that have a record) that have succeeded. What
    is wrong for one is wrong: a notebook that gathers takes what it finds for what the others made.
    """
    wrong: dict[str, str] = {}
    for name in names(folder) if notebooks is None else notebooks:
        record = read(folder, name)
        if record and record["status"] == "succeeded":
            for file, what in wrong_files(record, folder, name):
                wrong.setdefault(file, what)
    return wrong


def digest(value: Any) -> str:
    """A short hash of bytes, or of anything that JSON can hold."""
    text = value if isinstance(value, bytes) else json.dumps(value, sort_keys=True).encode()
    return hashlib.sha256(text).hexdigest()[:16]


def path_of(folder: Path, name: str) -> Path:
    """Where the record of notebook ``name`` lies."""
    return folder / "notebooks" / f"{name}.json"


def write(path: Path, record: dict[str, Any]) -> None:
    """Write a record, at once or not at all."""
    partial = path.with_name(f".partial-{path.name}")
    try:
        partial.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        os.replace(partial, path)
    except OSError:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)
        raise


def keep(path: Path, record: dict[str, Any]) -> None:
    """Write a record, whatever it takes: where there is no room for a second file, over the one that is there, which
    says that the notebook is running, and without indentation in no more room. An OSError if not even that can be done.
    """
    try:
        write(path, record)
    except OSError:
        with path.open("r+", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            file.truncate()
