"""Plug-ins: frameworks, workloads and data sets of others, found by entry point or in a folder that the user names.

Nothing of a plug-in is imported to find it. Where there is one, this process makes a folder of links that is benchlib
with the plug-ins in their places: here the packages ``frameworks``, ``workloads`` and ``data`` look there first, and
workers import benchlib from there. So a plug-in need not be installed where its framework is, and its files are modules
of benchlib like any other.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib.util
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
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


def library() -> Path:
    """The folder of benchlib as workers import it, with the plug-ins in it."""
    return _used.library


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
    return {f"plug-in {source}": version or f"files {_digest(paths)}" for (source, version), paths in by_source.items()}


def _digest(paths: Iterable[Path]) -> str:
    hashed = (hashlib.sha256(path.read_bytes()).digest() for path in paths)
    return hashlib.sha256(b"".join(hashed)).hexdigest()[:16]


def visible(folder: Path, pattern: str) -> list[Path]:
    """The files in a folder and below that somebody wrote: no hidden ones, which editors and file managers leave."""
    files = (path.relative_to(folder) for path in folder.rglob(pattern) if path.is_file())
    return sorted(folder / one for one in files if not any(part.startswith((".", "__pycache__")) for part in one.parts))


class _Used:
    """What this process has found."""

    plugins: tuple[Plugin, ...] = ()
    links: Mapping[str, Path] = MappingProxyType({})
    library = OWN


_used = _Used()


def _installed() -> Iterator[Plugin]:
    every = entry_points()
    for kind in KINDS:
        for entry in every.select(group=f"benchlib.{kind}"):
            name = entry.value.rpartition(".")[2]
            if name != entry.name:
                raise BenchlibError(
                    f"{entry.dist.name} {entry.dist.version}: entry point {entry.name} = {entry.value} of "
                    f"benchlib.{kind}: call it {name!r}, as its module"
                )
            yield Plugin(kind, name, _place(entry, kind), entry.dist.name, entry.dist.version)


def _place(entry: EntryPoint, kind: str) -> Path:
    """Where an entry point's module lies. Only the top-level package is looked up, which runs nothing of it."""
    top, *within = entry.value.split(".")
    spec = importlib.util.find_spec(top)
    for folder in (spec and spec.submodule_search_locations) or ():
        path = Path(folder, *within)
        path = path if kind == "workloads" else path.with_suffix(".py")
        if path.exists():
            return path.resolve()
    raise BenchlibError(
        f"{entry.dist.name} {entry.dist.version}: entry point {entry.name} = {entry.value} of benchlib.{kind}: there "
        f"is no such {'folder' if kind == 'workloads' else 'file'}; mend the package, or uninstall it"
    )


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


def _links(plugins: Sequence[Plugin]) -> dict[str, Path]:
    """What is to stand where, relative to benchlib: a plug-in's file or folder; where others add to a plug-in's
    workload, its files and theirs.
    """
    links: dict[str, Path] = {}
    owners: dict[str, Plugin] = {}
    for one in [plugin for plugin in plugins if plugin.is_whole]:
        if one.path.is_dir() and not (one.path / "__init__.py").exists():
            raise BenchlibError(f"{one}: {one.path} is no package: add an __init__.py, which may be empty")
        _claim(owners, one.place, one)
        links[one.place] = one.path
    for one in [plugin for plugin in plugins if not plugin.is_whole]:
        if not (one.place in owners or (OWN / one.place).is_dir()):
            raise BenchlibError(f"{one}: there is no workload.py in it, and no workload {one.name!r} that it adds to")
        if folder := links.pop(one.place, None):
            links |= {f"{one.place}/{file.name}": file for file in folder.glob("[!.]*") if file.name != "__pycache__"}
            owners |= {f"{one.place}/{file.name}": owners[one.place] for file in folder.glob("[!.]*.py")}
        for file in [file for file in one.path.glob("[!.]*.py") if file.name != "__init__.py"]:
            _claim(owners, f"{one.place}/{file.name}", one)
            links[f"{one.place}/{file.name}"] = file
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
    root = scratch.make("plugins")
    atexit.register(scratch.remove, root)
    library = root / "benchlib"
    _overlay(library, OWN, {tuple(place.split("/")): path for place, path in links.items()})
    for kind, package in KINDS.items():
        others = [folder for folder in package.__path__ if folder != str(_used.library / kind)]
        package.__path__ = list(dict.fromkeys([str(library / kind), *others, str(OWN / kind)]))
    _used.library = library
    importlib.invalidate_caches()


def _overlay(place: Path, own: Path, links: dict[tuple[str, ...], Path]) -> None:
    """In ``place``, a link to each entry of ``own``, and where ``links`` says to others."""
    place.mkdir()
    deeper: dict[str, dict[tuple[str, ...], Path]] = {}
    for (first, *rest), path in links.items():
        if rest:
            deeper.setdefault(first, {})[tuple(rest)] = path
        else:
            (place / first).symlink_to(path)
    for name, below in deeper.items():
        _overlay(place / name, own / name, below)
    for entry in own.iterdir() if own.is_dir() else ():
        if entry.name != "__pycache__" and not (place / entry.name).exists():
            (place / entry.name).symlink_to(entry)
