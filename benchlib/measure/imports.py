"""What a module of benchlib consists of, read from its text: the modules that it imports, the packages of others that
it needs, and a hash of its code. Nothing is imported for it, so that frameworks' files can be read as well.

An import counts wherever it stands, in a function too, unless only a type checker sees it (``if TYPE_CHECKING``). What
is imported by a name that is put together when it runs (``import_module(f"...")``) is not seen: whoever asks names it.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

from benchlib.errors import BenchlibError

ROOT = __name__.partition(".")[0]  # benchlib

FRAMEWORKS = f"{ROOT}.frameworks"

EXTENDED = (FRAMEWORKS, f"{ROOT}.workloads", f"{ROOT}.data")
"""Packages whose modules may lie in other folders as well, which stand in their ``__path__``: those of plug-ins."""


def closure(modules: Iterable[str], without: Collection[str] = ()) -> dict[str, Path]:
    """The files of ``modules`` and of all modules of benchlib that they import, directly or not, by the module's name,
    sorted; the packages that they lie in belong to them. What is named in ``without`` is left out, with what only it
    imports.
    """
    folders = tuple(tuple(_folders(name)) for name in EXTENDED)
    question = (frozenset(modules), frozenset(without), folders)
    files, states = _answered.get(question, ({}, None))
    if states != _states(files):
        files = _closure(*question[:2])
        _answered[question] = files, _states(files)
    return files


_answered: dict[tuple, tuple[dict[str, Path], list[tuple[int, int]]]] = {}
"""What :func:`closure` has answered, with the states of the files then: hundreds of conditions ask for the same."""


def _closure(modules: Iterable[str], without: Collection[str]) -> dict[str, Path]:
    files: dict[str, Path | None] = {}
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in files or name in without or (spec := _spec(name)) is None:
            continue
        files[name] = Path(spec.origin) if spec.has_location else None  # None: a folder without __init__.py
        waiting += [name.rpartition(".")[0]] if "." in name else []
        if spec.has_location:
            waiting += [one for one in imported(name, Path(spec.origin)) if one.partition(".")[0] == ROOT]
    return {name: path for name, path in sorted(files.items()) if path is not None}


def packages(files: Mapping[str, Path]) -> list[str]:
    """The top-level packages of others that modules import, by what they are imported as; not the standard library's.
    ``files`` are as of :func:`closure`.
    """
    tops = {one.partition(".")[0] for name, path in files.items() for one in imported(name, path)}
    return sorted(tops - sys.stdlib_module_names - {ROOT})


def digest(files: Mapping[str, Path]) -> str:
    """A hash of the code of modules and of their names. ``files`` are as of :func:`closure`."""
    whole = hashlib.sha256()
    for name, path in files.items():
        needs = name.startswith(f"{FRAMEWORKS}.")
        whole.update(f"{name} {_digest(path, needs, *_state(path))}\n".encode())
    return whole.hexdigest()[:16]


def imported(module: str, path: Path) -> tuple[str, ...]:
    """Full names of what a module imports: of modules, or of what is in them. A BenchlibError where it is no Python."""
    return _imported(path, module if path.name == "__init__.py" else module.rpartition(".")[0], *_state(path))


def _state(path: Path) -> tuple[int, int]:
    """Of a file: what was read once is read again when this has changed. None of a file that is gone."""
    try:
        state = path.stat()
    except FileNotFoundError:
        return 0, -1
    return state.st_mtime_ns, state.st_size


def _states(files: Mapping[str, Path]) -> list[tuple[int, int]]:
    return [_state(path) for path in files.values()]


@functools.cache
def _digest(path: Path, needs: bool, mtime_ns: int, size: int) -> str:
    """``needs``: the file may declare NEEDS, which then is no code of it."""
    if path.suffix != ".py":
        return hashlib.sha256(path.read_bytes()).hexdigest()
    tree = _tree(path)
    if needs and sum(getattr(node, "id", None) == "NEEDS" for node in ast.walk(tree)) == 1:  # nothing in it reads them
        tree.body = [one for one in tree.body if not _is_needs(one)]
    return hashlib.sha256(repr(_code(tree)).encode()).hexdigest()


@functools.cache
def _imported(path: Path, package: str, mtime_ns: int, size: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_names(_tree(path), package))) if path.suffix == ".py" else ()  # else: compiled


def _tree(path: Path) -> ast.Module:
    try:
        return ast.parse(path.read_bytes())
    except (SyntaxError, ValueError) as error:
        where = f"line {error.lineno}: " if isinstance(error, SyntaxError) else ""
        raise BenchlibError(f"{path.resolve()}: {where}this is no Python ({error}); mend it") from None


def _code(node: Any) -> Any:
    """A syntax tree as tuples, without places in the text and strings that stand alone, as docstrings do. Fields that
    are empty are left out: newer Pythons have more of them. Python 3.11 to 3.13 hash benchlib's own files
    alike; where one reads a file as another tree all the same, what the parent had measured with another counts as new.
    """
    if isinstance(node, list):
        return tuple(_code(one) for one in node if not _is_string_alone(one))
    if not isinstance(node, ast.AST):
        return type(node).__name__, repr(node)
    fields = [(name, value) for name, value in ast.iter_fields(node) if name not in ("kind", "type_comment")]
    return type(node).__name__, tuple((name, _code(value)) for name, value in fields if value not in (None, []))


def _is_needs(node: Any) -> bool:
    """What a framework's file needs for a device, and says where that is not there: no number comes of it."""
    return isinstance(node, ast.Assign) and [getattr(one, "id", None) for one in node.targets] == ["NEEDS"]


def _is_string_alone(node: Any) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _names(node: ast.AST, package: str) -> Iterator[str]:
    """Full names of what is imported in ``node``, which lies in ``package``; of ``from a import b`` both ``a`` and
    ``a.b``, which may be a module.
    """
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        module = _absolute("." * node.level + (node.module or ""), package)
        yield module
        yield from (f"{module}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call) and (named := _name_in_call(node)):
        yield _absolute(named, package)
    only_checked = isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
    for child in node.orelse if only_checked else ast.iter_child_nodes(node):
        yield from _names(child, package)


def _name_in_call(call: ast.Call) -> str:
    """The module in ``importlib.import_module("module")`` and its like; empty for another call."""
    called = getattr(call.func, "attr", getattr(call.func, "id", ""))
    named = call.args[0] if called in ("import_module", "__import__") and call.args else None
    return named.value if isinstance(named, ast.Constant) and isinstance(named.value, str) else ""


def _absolute(name: str, package: str) -> str:
    return importlib.util.resolve_name(name, package) if name.startswith(".") else name


def _spec(name: str) -> ModuleSpec | None:
    """Where a fresh process would import a module from."""
    package, _, _ = name.rpartition(".")
    return PathFinder.find_spec(name, _folders(package)) if package else importlib.util.find_spec(name)


def _folders(package: str) -> list[str]:
    """Where modules of ``package`` are looked for."""
    if package in (ROOT, *EXTENDED):
        return list(importlib.import_module(package).__path__)
    spec = _spec(package)
    return list(spec.submodule_search_locations or ()) if spec else []
