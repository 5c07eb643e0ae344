"""Plug-ins: frameworks, workloads and data sets of others, in installed packages or in folders that the user names.

Each is a folder with ``frameworks/NAME.py``, ``workloads/NAME/`` and ``data/NAME.py``, added to benchlib's packages. A
workload's folder without ``workload.py`` adds to the workload of its name. A file called ``_NAME`` only helps others.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from benchlib import data, frameworks, worker, workloads
from benchlib.errors import BenchlibError

VARIABLE = "BENCHLIB_PLUGINS"  # folders, as in PYTHONPATH: --plugins sets it, so that kernels find them, too
ENTRY_POINTS = "benchlib.plugins"  # a group; each names a package with these folders, such as toybox = "toybox"
KINDS = {"frameworks": frameworks, "workloads": workloads, "data": data}
OWN = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Plugin:
    """A folder of plug-ins."""

    folder: Path
    source: str  # a distribution, or the folder that was named
    version: str = ""  # of the distribution

    @property
    def files(self) -> dict[str, Path]:
        """Its files, by their places in benchlib."""
        every = [file for kind in KINDS for file in visible_files(self.folder / kind, "*.py")]
        return {str(file.relative_to(self.folder)): file for file in every if file.name != "__init__.py"}


_used: list[Plugin] = []


def use(folders: Iterable[Path | str] = ()) -> None:
    """Add installed plug-ins and those in ``folders``, for this process and its workers; refuse two of one name."""
    given = [folder for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]
    named = list(dict.fromkeys([*given, *(str(Path(folder).expanduser().resolve()) for folder in folders)]))
    plugins = list(dict.fromkeys([*_installed_plugins(), *(Plugin(Path(folder), folder) for folder in named)]))
    _require_whole(plugins)
    if named:
        os.environ[VARIABLE] = os.pathsep.join(named)
    worker.extend([one.folder for one in plugins if one not in _used], KINDS.values())
    _used[:] = plugins


def folders() -> list[Path]:
    """The folders of all plug-ins."""
    return [one.folder for one in _used]


def files() -> dict[str, Path]:
    """The files of all plug-ins, by where they stand in benchlib."""
    return {place: file for one in _used for place, file in one.files.items()}


def of_condition(framework: str, workload: str, data_set: str) -> dict[str, str]:
    """The plug-ins that a condition takes, for its record: a distribution's version, or a hash of a folder's files."""
    found = {}
    for one in _used:
        places = {f"frameworks/{framework}.py", f"data/{data_set}.py"}
        if {f"workloads/{workload}/{name}.py" for name in ("workload", framework)} & one.files.keys():
            places |= {place for place in one.files if place.startswith(f"workloads/{workload}/")}
        if used := sorted(places & one.files.keys()):
            hashed = hashlib.sha256(b"".join(one.files[place].read_bytes() for place in used)).hexdigest()
            found[f"plug-in {one.source}"] = one.version or f"files {hashed[:16]}"
    return found


def visible_files(folder: Path, pattern: str) -> list[Path]:
    """The visible files in a folder and below: editors and file managers leave hidden ones."""
    files = (path.relative_to(folder) for path in folder.rglob(pattern) if path.is_file())
    return sorted(folder / one for one in files if not any(part.startswith((".", "__pycache__")) for part in one.parts))


def _installed_plugins() -> Iterator[Plugin]:
    """Those of distributions. Only the top-level package of an entry point is looked up; nothing of it runs."""
    for entry in entry_points(group=ENTRY_POINTS):
        top, *within = entry.value.split(".")
        spec = importlib.util.find_spec(top)
        there = [Path(place, *within) for place in (spec and spec.submodule_search_locations) or ()]
        if not there or not there[0].is_dir():
            what = f"entry point {entry.name} = {entry.value} of {ENTRY_POINTS}: there is no such package"
            raise BenchlibError(f"{entry.dist.name}: {what}; mend the distribution, or uninstall it")
        yield Plugin(there[0].resolve(), entry.dist.name, entry.dist.version)


def _require_whole(plugins: Iterable[Plugin]) -> None:
    """Refuse files that another plug-in or benchlib has, and folders without a plug-in or a workload's description."""
    owners: dict[str, str] = {}
    for one in plugins:
        if not one.files:
            where = "frameworks/NAME.py, workloads/NAME/ and data/NAME.py of it"
            raise BenchlibError(f"plugins: {one.folder}: there are none; they lie in {where}")
        for place in one.files:
            before = "benchlib itself" if (OWN / place).exists() else owners.setdefault(place, one.source)
            if before != one.source:
                both = f"{place} comes from {before}, and from the plug-in {one.source}"
                raise BenchlibError(f"two of one name: {both}; rename one of them, or take it away")
    for place, source in owners.items():
        kind, name, *file = place.split("/")
        whole = f"{kind}/{name}/workload.py"
        if kind == "workloads" and file and name[0] != "_" and whole not in owners and not (OWN / whole).exists():
            why = f"there is no workload.py in it, and no workload {name!r} that it adds to"
            raise BenchlibError(f"{kind}/{name} of {source}: {why}")
