"""benchlib's own code behind a number: its files, a hash of them, git's commit. Nothing of them is imported for it."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from benchlib import env_vars, frameworks, plugins, workloads
from benchlib.condition import Condition
from benchlib.errors import BenchlibError

PACKAGE = Path(__file__).resolve().parents[1]  # of benchlib itself

FOLDERS = ("worker", "data", "runner")

NUMBERS = (  # modules behind every number, beside those folders
    *("__init__", "errors", "metrics", "frameworks/__init__", "frameworks/_work", "workloads/__init__"),
    *("provenance/accelerators", "provenance/npu_smi", "provenance/nvml"),
)

MODELS = {"frameworks": frameworks, "workloads": workloads}


def files(condition: Condition, procedure: str) -> dict[str, Path]:
    """The files behind a condition's numbers, by module; ``procedure`` is ``gate`` for a certificate."""
    folders = [*FOLDERS, *(["equivalence"] if procedure == "gate" else [])]
    names = [*NUMBERS, *(f"{one}/{path.stem}" for one in folders for path in (PACKAGE / one).glob("[!.]*.py"))]
    own = {_module("benchlib", name): PACKAGE / f"{name}.py" for name in names}
    return own | model_files(condition.framework, condition.workload)


def model_files(framework: str, workload: str | None = None) -> dict[str, Path]:
    """The files of a framework and a workload, and the other workloads and helpers that these import, by module."""
    others = set(frameworks.names()) - {framework}
    found: dict[str, Path] = {}
    done: set[tuple[str, str]] = set()
    waiting = {("frameworks", framework), ("workloads", workload or "")}
    while left := waiting - done:
        kind, name = left.pop()
        done.add((kind, name))
        for module, path in _files(MODELS[kind], name).items():
            if kind == "frameworks" or path.name.partition(".")[0] not in others:
                found[module] = path
                matches = (re.match(r"(?:benchlib\.(\w+)\.|\.+)(\w+)[\w.]*", one) for one in imports(path))
                named = [one for one in matches if one and (one[1] or kind) in MODELS]
                waiting |= {(one[1] or kind, one[2]) for one in named}
                if borrowed := others.intersection(part for one in named for part in one[0].split(".")):
                    others -= borrowed  # this model takes another framework's files: look again, at these too
                    done.clear()
    return found


def imports(path: Path) -> tuple[str, ...]:
    """The modules that a Python file imports anywhere, and the names that it takes of them; none of a compiled one."""
    text = re.sub("#.*", "", path.read_text(encoding="utf-8", errors="replace")) if path.suffix == ".py" else ""
    named = re.findall(r"^[ \t]*(?:from|import) +([\w.]+)(?: +import +(\([^)]*\)|.*))?", text, re.MULTILINE)
    return tuple(f"{module}.{name}" for module, names in named for name in re.findall(r"\w+", names) or [""])


def digest(condition: Condition, procedure: str) -> str:
    """A hash of :func:`files`: a number made by other code has another key."""
    every = sorted(files(condition, procedure).items())
    return hashlib.sha256("".join(f"{name} {_hash(path)}\n" for name, path in every).encode()).hexdigest()[:16]


class Unchanged:
    """The files of some pairs (as of :func:`files`) and of ``WORKER_PATH`` as they are now; a BenchlibError where this
    process runs others.
    """

    def __init__(self, pairs: Iterable[tuple[Condition, str]]) -> None:
        self._files = {name: path for pair in pairs for name, path in files(*pair).items()}
        self._before = self._now()
        loaded = [name for name in self._before if name in sys.modules]
        if stale := [name for name in loaded if _loaded.setdefault(name, self._before[name]) != self._before[name]]:
            paths = ", ".join(str(self._files[name]) for name in stale)
            raise BenchlibError(f"{paths}: changed since this process imported it; restart the kernel (or the program)")

    def require(self) -> None:
        """A BenchlibError where a file has changed since then: no number is made of two codes."""
        now = self._now()
        if changed := [name for name in self._before | now if now.get(name) != self._before.get(name)]:
            paths = dict.fromkeys(str(self._files.get(name, name)) for name in changed)
            raise BenchlibError(f"{', '.join(paths)}: changed while it was measured; run again to measure it")

    def _now(self) -> dict[str, str]:
        of_workers = {str(path): path for path in env_vars.worker_files(os.environ)}
        return {name: _hash(path) for name, path in (self._files | of_workers).items()}


_loaded: dict[str, str] = {}  # hashes of modules that this process has imported, as of when it was first asked


def _files(package: ModuleType, name: str) -> dict[str, Path]:
    """A module in a package that plug-ins extend, or all in folders of it, by name; none where it is not there."""
    spec = PathFinder.find_spec(f"{package.__name__}.{name}", package.__path__)
    found = {spec.name: Path(spec.origin)} if spec and spec.has_location else {}
    for folder in (Path(place, name) for place in package.__path__ if spec):
        paths = [path for path in plugins.visible_files(folder, "*") if path.suffix in (".py", ".so")]
        found = {_module(spec.name, os.path.relpath(path, folder)): path for path in paths} | found
    return found


def _module(package: str, place: str) -> str:
    """The module name of a file at this place in a package."""
    folder, _, file = f"{package}/{place}".rpartition("/")
    return f"{folder}/{file.partition('.')[0]}".removesuffix("/__init__").replace("/", ".")


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "gone"


@functools.cache
def commit() -> str:
    """benchlib's version, and git's commit where this is a checkout, with ``+`` if files differ from it."""
    try:
        version = f"benchlib {importlib.metadata.version('benchlib')}"
    except importlib.metadata.PackageNotFoundError:
        version = "benchlib"  # a checkout that is on the path, and not installed
    if not (PACKAGE.parent / ".git").exists():
        return version
    try:
        head = _git("rev-parse", "--short=12", "HEAD").strip()
        changed = _git("status", "--porcelain", "--untracked-files=normal", "--", "benchlib").strip()
    except (OSError, subprocess.CalledProcessError) as error:
        return f"{version} (commit not known: git: {' '.join((getattr(error, 'stderr', '') or str(error)).split())})"
    return f"{version} {head}{'+' if changed else ''}"


def _git(*command: str) -> str:
    # Both named: git asks whose a repository is only where it has to look for one, and this code runs already.
    place = ["-C", str(PACKAGE.parent), "--git-dir=.git", "--work-tree=."]
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # a hook's: of another
    return subprocess.run(["git", *place, *command], env=own, capture_output=True, text=True, check=True).stdout
