"""Plug-ins: frameworks, workloads and data sets of others, found by entry point or in a folder that the user names.

Nothing of a plug-in is imported to find it. A folder of links to all of them stands first in the ``__path__`` of the
packages ``frameworks``, ``workloads`` and ``data``, in this process and in workers. So a plug-in need not be installed
where its framework is, and its files are modules of benchlib like any other.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType

from benchlib import data, frameworks, scratch, workloads
from benchlib.errors import BenchlibError

VARIABLE = "BENCHLIB_PLUGINS"
"""Folders of plug-ins, as in PYTHONPATH: ``--plugins`` sets it, so that kernels find what the command line found."""

KINDS = {"frameworks": frameworks, "workloads": workloads, "data": data}
"""Entry points ``benchlib.KIND``, and folders of this name in a folder of plug-ins."""

OWN = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Plugin:
    """A framework's or data set's file, or a workload's folder; one without ``workload.py`` brings a workload that is
    there already to other frameworks. What is called ``_NAME`` is none of these, but helps them.
    """

    kind: str
    name: str
    path: Path
    source: str  # a distribution, or the folder that somebody named
    version: str = ""  # of the distribution

    @property
    def is_whole(self) -> bool:
        return self.kind != "workloads" or self.name.startswith("_") or (self.path / "workload.py").exists()

    @property
    def place(self) -> str:
        """Where it is to stand, relative to benchlib."""
        return f"{self.kind}/{self.name}" + ("" if self.kind == "workloads" else ".py")

    @property
    def files(self) -> list[Path]:
        return [self.path] if self.path.is_file() else visible(self.path, "*.py")

    def __str__(self) -> str:
        return f"{self.kind}/{self.name} of {self.source}"


def use(folders: Iterable[Path | str] = ()) -> None:
    """Have the plug-ins of the installed distributions, those of ``folders`` and those of folders before found by their
    names, in this process and its workers. A BenchlibError where there are two of one name, or none at a place.
    """
    given = [folder for folder in os.environ.get(VARIABLE, "").split(os.pathsep) if folder]
    named = list(dict.fromkeys([*given, *(str(Path(folder).expanduser().resolve()) for folder in folders)]))
    plugins = tuple(dict.fromkeys([*_installed(), *(one for folder in named for one in _in_folder(Path(folder)))]))
    links = _links(plugins)  # refuses, and nothing has changed
    if named:
        os.environ[VARIABLE] = os.pathsep.join(named)
    if links != _used.links:
        _lay(links)
    _used.plugins, _used.links = plugins, links


def folder() -> Path | None:
    """The folder of links to all plug-ins; None where there are none."""
    return _used.folder


def files() -> dict[str, Path]:
    """The files of all plug-ins, by where they stand in benchlib."""
    return {f"{one.kind}/{file.relative_to(one.path.parent)}": file for one in _used.plugins for file in one.files}


def named(framework: str, workload: str, data_set: str) -> dict[str, str]:
    """The plug-ins that a condition takes, for its record: a distribution's version, or a hash of a folder's files."""
    wanted = {"frameworks": framework, "workloads": workload, "data": data_set}
    by_source: dict[tuple[str, str], list[Path]] = {}
    for one in _used.plugins:
        if wanted[one.kind] == one.name and (one.is_whole or (one.path / f"{framework}.py").exists()):
            by_source.setdefault((one.source, one.version), []).extend(one.files)
    hashes = {
        one: hashlib.sha256(b"".join(map(Path.read_bytes, paths))).hexdigest() for one, paths in by_source.items()
    }
    return {f"plug-in {one[0]}": one[1] or f"files {hashed[:16]}" for one, hashed in hashes.items()}


def visible(folder: Path, pattern: str) -> list[Path]:
    """The files in a folder and below that somebody wrote: no hidden ones, which editors and file managers leave."""
    files = (path.relative_to(folder) for path in folder.rglob(pattern) if path.is_file())
    return sorted(folder / one for one in files if not any(part.startswith((".", "__pycache__")) for part in one.parts))


class _Used:
    """What this process has found."""

    plugins: tuple[Plugin, ...] = ()
    links: Mapping[str, Path] = MappingProxyType({})
    folder: Path | None = None


_used = _Used()


def _installed() -> Iterator[Plugin]:
    """Of distributions. Only the top-level package of an entry point is looked up, which runs nothing of it."""
    for kind in KINDS:
        for entry in entry_points(group=f"benchlib.{kind}"):
            said = (
                f"{entry.dist.name} {entry.dist.version}: entry point {entry.name} = {entry.value} of benchlib.{kind}"
            )
            top, *within = entry.value.split(".")
            if entry.value.rpartition(".")[2] != entry.name:
                raise BenchlibError(f"{said}: call it {entry.value.rpartition('.')[2]!r}, as its module")
            spec = importlib.util.find_spec(top)
            paths = [Path(folder, *within) for folder in (spec and spec.submodule_search_locations) or ()]
            paths = [path if kind == "workloads" else path.with_suffix(".py") for path in paths]
            there = [path.resolve() for path in paths if path.exists()]
            if not there:
                what = "folder" if kind == "workloads" else "file"
                raise BenchlibError(f"{said}: there is no such {what}; mend the package, or uninstall it")
            yield Plugin(kind, entry.name, there[0], entry.dist.name, entry.dist.version)


def _in_folder(folder: Path) -> list[Plugin]:
    """Of a folder that the user names: ``frameworks/*.py``, ``workloads/NAME/``, ``data/*.py``."""
    plugins = [
        Plugin(kind, path.stem, path, str(folder))
        for kind in KINDS
        for path in sorted((folder / kind).glob("*/" if kind == "workloads" else "*.py"))
        if not path.stem.startswith(("__", "."))  # an editor's, JupyterLab's
    ]
    if not plugins:
        raise BenchlibError(
            f"plugins: {folder}: there are none; they lie in frameworks/NAME.py, workloads/NAME/ and data/NAME.py of it"
        )
    return plugins


def _links(plugins: Iterable[Plugin]) -> dict[str, Path]:
    """What is to stand where: files, and folders of workloads; of a workload that others add to, the files of all."""
    links: dict[str, Path] = {}
    owners: dict[str, Plugin] = {}
    for one in sorted(plugins, key=lambda plugin: not plugin.is_whole):
        if one.is_whole:
            _claim(owners, one.place, one)
            if one.path.is_dir() and not (one.path / "__init__.py").exists():
                raise BenchlibError(f"{one}: {one.path} is no package: add an __init__.py, which may be empty")
            links[one.place] = one.path
            continue
        if not (one.place in owners or (OWN / one.place).is_dir()):
            raise BenchlibError(f"{one}: there is no workload.py in it, and no workload {one.name!r} that it adds to")
        added = links.pop(one.place, None)  # to a plug-in's workload, or to one of benchlib's own
        if added:
            owners |= {f"{one.place}/{file.name}": owners[one.place] for file in added.glob("[!.]*.py")}
        there = [file for file in (added or OWN / one.place).glob("[!.]*") if file.name != "__pycache__"]
        for file in [file for file in one.path.glob("[!.]*.py") if file.name != "__init__.py"]:
            _claim(owners, f"{one.place}/{file.name}", one)
            there.append(file)
        links |= {f"{one.place}/{file.name}": file for file in there}
    return links


def _claim(owners: dict[str, Plugin], place: str, plugin: Plugin) -> None:
    """Two of one name are refused: nobody could say which of them was measured."""
    before = "benchlib itself" if (OWN / place).exists() else owners.setdefault(place, plugin).source
    if before != plugin.source:
        raise BenchlibError(
            f"two of one name: {place} comes from {before}, and from the plug-in {plugin.source}; rename one of them, "
            "or take it away"
        )


def _lay(links: Mapping[str, Path]) -> None:
    """Make the folder of links, and have it looked through first."""
    folder = scratch.make("plugins")
    atexit.register(scratch.remove, folder)
    for kind in KINDS:
        (folder / kind).mkdir()
    for place, path in links.items():
        (folder / place).parent.mkdir(exist_ok=True)
        (folder / place).symlink_to(path)
    for kind, package in KINDS.items():
        others = [one for one in package.__path__ if _used.folder is None or one != str(_used.folder / kind)]
        package.__path__ = [str(folder / kind), *others]
    _used.folder = folder
    importlib.invalidate_caches()
