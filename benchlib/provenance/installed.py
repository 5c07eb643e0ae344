"""Frameworks in an environment, and the versions of all that their workers may compute with; none is imported."""

from __future__ import annotations

import functools
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping

from benchlib import env_vars, environments, frameworks, interpreters
from benchlib.condition import Condition, implementation
from benchlib.environments import DEFAULT
from benchlib.errors import BenchlibError
from benchlib.interpreters import Interpreter, Module
from benchlib.provenance import fingerprint


def offers(environment: str, framework: str) -> bool:
    """Has an environment the package of ``framework``? A BenchlibError where it is not there, or cannot say."""
    return bool(module(environment, frameworks.package(framework)).place)


def version(environment: str, framework: str) -> str | None:
    """The version of a framework's distribution, without the suffix of its build; None: it is not installed."""
    own = module(environment, frameworks.package(framework))
    return own.packages[own.distributions[0]].partition("+")[0] if own.distributions else None


def versions(framework: str, environment: str = DEFAULT) -> dict[str, str]:
    """Versions of Python, glibc, the framework and its file's imports, by distribution (without one: a hash)."""
    named: dict[str, str] = {}
    for name in _imported_modules(framework):
        one = module(environment, name)
        named |= {distribution: one.packages[distribution] for distribution in one.distributions}
        named |= {name: f"file {one.digest}"} if one.digest else {}
    return {"python": _interpreter(environment).python, **named, "glibc": platform.libc_ver()[1]}


def packages(framework: str, workload: str | None = None, environment: str = DEFAULT) -> dict[str, str]:
    """Versions of all distributions that the files of ``framework`` and ``workload`` import, and of those they need.
    Imported ones have a hash of their files, too, because there may be two builds of one version.
    """
    every = {name: module(environment, name) for name in _imported_modules(framework, workload)}
    own = {name: f"file {one.digest}" for name, one in every.items() if one.digest}
    return {name: version for one in every.values() for name, version in sorted(one.packages.items())} | own


def require_versions(framework: str, environment: str, imported: Mapping[str, str]) -> None:
    """Raise a BenchlibError if a worker has imported another version than :func:`versions` said, once, before."""
    known, own = versions(framework, environment), implementation(framework, environment)
    for name, version in imported.items():
        if name in known and not known[name].startswith("file ") and not _is_same(version, known[name]):
            both = f"a worker has imported {name} {version}, but {name} {known[name]} was there before"
            raise BenchlibError(f"framework {own!r}: {both}; restart the notebook's kernel (or this program)")


def compiler(condition: Condition) -> dict[str, str]:
    """The C++ compiler, if a worker makes the condition's kernels with it: ``c++`` and the version that it reports."""
    if not frameworks.compiles(condition.framework, condition.mode, condition.device):
        return {}
    path = shutil.which(os.environ.get("CXX") or "g++")
    return {"c++": _compiler_version(path, os.stat(path).st_mtime_ns)} if path else {}


def module(environment: str, name: str) -> Module:
    """A top-level module in an environment; a BenchlibError as of :func:`offers`."""
    name = name.partition(".")[0]
    known = _interpreter(environment).modules
    return known[name] if name in known else _interpreter(environment, name).modules[name]


def _interpreter(environment: str, *more: str) -> Interpreter:
    """The modules that an interpreter has of all that frameworks' files import, asked once; or ``more``."""
    wanted = more or _imports_of_files(tuple(frameworks.names()), tuple(frameworks.__path__))
    folders = tuple(env_vars.worker_folders(os.environ))
    return interpreters.probe(environments.find(environment).python, tuple(sorted(wanted)), folders)


@functools.cache
def _imports_of_files(names: tuple[str, ...], folders: tuple[str, ...]) -> frozenset[str]:
    """The modules that frameworks' files import; cached, for hundreds of conditions ask for them."""
    return frozenset(name for framework in names for name in _imported_modules(framework))


@functools.cache
def _imported_modules(framework: str, workload: str | None = None) -> list[str]:
    """The top-level modules that the files of a framework and a workload import, its own first; and Python's hooks."""
    own = frameworks.package(framework).partition(".")[0]
    files = fingerprint.model_files(framework, workload).values()
    tops = {name.partition(".")[0] for file in files for name in fingerprint.imports(file)} - {"", "benchlib"}
    return list(dict.fromkeys([own, *sorted(tops - sys.stdlib_module_names), "sitecustomize", "usercustomize"]))


def _is_same(one: str, other: str) -> bool:
    """Versions that differ in their spelling only, or in a build that just one of them names (``+cpu``)."""
    part = r"[a-z]+|[1-9]\d*|0(?!\d)"
    one, other = ([re.findall(part, each) for each in text.lower().split("+")] for text in (one, other))
    return one[0] == other[0] and (one[1:] == other[1:] or len(one) != len(other))


@functools.cache
def _compiler_version(path: str, mtime_ns: int) -> str:
    command, given = [path, "--version"], env_vars.for_worker(os.environ)
    said = subprocess.run(command, env=given, capture_output=True, text=True, check=False).stdout
    return next(iter(said.splitlines()), "says no version")
