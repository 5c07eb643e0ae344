"""All that a worker needs beside ``frameworks`` and ``workloads``: it imports numpy and the standard library only."""

import importlib
import os
from pathlib import Path
from types import ModuleType
from typing import Iterable

PLUGINS = "BENCHLIB_PLUGIN_FOLDERS"
"""Folders of plug-ins, which the parent names to a worker, as in PYTHONPATH."""


def extend(folders: Iterable[Path], packages: Iterable[ModuleType]) -> None:
    """Add folders of plug-ins to the packages that they extend, and to workloads that they add to."""
    places = [(package, str(Path(folder, package.__name__[9:]))) for folder in folders for package in packages]
    for package, place in places:
        if os.path.isdir(place):
            package.__path__.append(place)
    importlib.invalidate_caches()
    for package, place in places:
        for path in Path(place).glob("[!_.]*/") if package.__name__ == "benchlib.workloads" else ():
            if not (path / "workload.py").exists() and any(path.glob("[!_.]*.py")):
                importlib.import_module(f"{package.__name__}.{path.name}").__path__.append(str(path))
