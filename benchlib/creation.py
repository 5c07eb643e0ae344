"""Makes an environment from its requirements: ``environments/NAME.txt``, versions pinned, as pip reads them. Its first
lines are comments, of which ``# python: 3.11`` says for which Python it is, and ``# system: ...`` what the system has
to have beside it.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from benchlib import environments, variables
from benchlib.environments import Environment
from benchlib.errors import BenchlibError, unknown
from benchlib.interpreters import probe

_HOMES = ("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_CACHE_HOME", "NETRC")
_SOURCES = re.compile(r"(PIP|UV)_\w*(INDEX|FIND_LINKS|HOST|CERT|PROXY|CACHE|CONFIG_FILE|TIMEOUT|RETR|TLS|KEYRING)\w*")
"""What pip and uv get beside a worker's variables: where packages come from. None says where they go."""


class CreationFailed(BenchlibError):
    """An environment's packages could not be installed; nothing is left of it."""


@dataclass(frozen=True)
class Requirements:
    """What an environment is made of."""

    file: Path
    python: str  # as 3.11
    system: tuple[str, ...]  # what the system has to have, a sentence each
    distributions: tuple[str, ...]  # as pip calls them; those that depend on the system (after a ``;``) are left out
    versions: dict[str, str]  # of those of them that are pinned
    digest: str  # of all but comments


def requirements(name: str) -> Requirements | None:
    """Those of ``environments/NAME.txt``; None where there is no such file."""
    file = environments.requirements_file(name)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise BenchlibError(f"{file}: cannot be read: {error}") from None
    head = list(takewhile(lambda line: line.startswith("#"), lines))
    python = _said(head, "python") or [f"{sys.version_info[0]}.{sys.version_info[1]}"]
    if len(python) > 1 or not re.fullmatch(r"\d+\.\d+", python[0]):
        raise BenchlibError(f"{file}: # python: {', '.join(python)}: give one version of Python, such as 3.11")
    pins = [pin for line in lines if (pin := re.sub(r"(^|\s)#.*", "", line).strip())]
    named = [match[1] for pin in pins if ";" not in pin and (match := re.match(r"([A-Za-z0-9][\w.-]*)", pin))]
    exact = [re.fullmatch(r"([A-Za-z0-9][\w.-]*)(?:\[.*\])?\s*==\s*([\w.+!]+)", pin) for pin in pins]
    versions = {match[1]: match[2] for match in exact if match}
    digest = hashlib.sha256("\n".join([*python, *pins]).encode()).hexdigest()[:16]
    return Requirements(file, python[0], tuple(_said(head, "system")), tuple(named), versions, digest)


def create(name: str, say: Callable[[str], None] = print) -> Environment:
    """Make the environment ``name`` in ``.environments/NAME/``, with uv where that is on PATH, else with venv and pip,
    whose output goes to this process's. Where it is there already, made of the same, it is left alone.

    A BenchlibError before anything is made where it cannot be; a :class:`CreationFailed` where a package could not be
    installed. Whatever breaks it off, nothing is registered that is not whole, and the folder is removed, after a kill
    by the next attempt.
    """
    there = environments.taken(name)
    asked = requirements(name)
    if asked is None:
        offered = [path.stem for path in (environments.root() / "environments").glob("[!.]*.txt")]
        raise BenchlibError(
            f"{unknown('environment', name, offered)}; it is made from {environments.requirements_file(name)}: write "
            f"that, or register an interpreter with benchlib environment add {name} --python PATH"
        )
    if there and there.made and there.requirements == asked.digest:
        say(f"environment {name!r} is there already, made of {asked.file} as it is")
        return there
    environments.require_free(name)
    uv = shutil.which("uv")
    python = _python(asked, with_venv=uv is None)
    with environments.changing():
        environments.require_free(name)
        place = environments.folder() / name
        unfinished = environments.registered(name)
        if place.exists() and not unfinished:
            raise BenchlibError(f"{place}: is there, and no environment is registered for it: move it away")
        environment = Environment(name, str(place / "bin" / "python"), True, asked.digest, finished=False)
        environments.register(environment)
        try:
            for sentence in asked.system:
                say(f"the system has to have: {sentence}")
            say(f"making {place} with {python}")
            shutil.rmtree(place, ignore_errors=True)  # of an attempt that was killed
            for command in _commands(uv, python, environment.python, asked.file, place):
                _run(command, name)
            _require_whole(environment, asked, place)
            environments.register(replace(environment, finished=True))
            environment = replace(environment, finished=True)
        finally:
            if not environment.finished:  # an interrupt, too
                shutil.rmtree(place, ignore_errors=True)
                (environments.folder() / f"{name}.json").unlink(missing_ok=True)
    return environment


def overview() -> Iterator[str]:
    """A line for each environment that is registered, and for each that could be made."""
    yield f"{environments.DEFAULT}: {sys.executable}, which benchlib runs in"
    on_record = environments.on_record()
    for name in on_record:
        try:
            yield f"{name}: {_state(environments.find(name))}"
        except BenchlibError as error:
            yield f"{name}: {error}"
    for file in sorted((environments.root() / "environments").glob("[!.]*.txt")):
        if file.stem not in on_record:
            yield f"{file.stem}: not there; benchlib environment create {file.stem} makes it of {file}"


def _state(environment: Environment) -> str:
    python, name = environment.python, environment.name
    if not Path(python).exists():
        return f"{python} is not there: benchlib environment remove {name}, and make it again"
    if not environment.made:
        return f"{python}, added"
    asked = requirements(name)
    same = asked is not None and asked.digest == environment.requirements
    how = "as it is" if same else f"which has changed: benchlib environment remove {name}, and create it again"
    return f"{python}, made of {environments.requirements_file(name)} {how}"


def _said(head: list[str], word: str) -> list[str]:
    """What comments say after ``word:``."""
    return [line.partition(":")[2].strip() for line in head if re.match(rf"#\s*{word}:", line)]


def _commands(uv: str | None, python: str, new: str, file: Path, place: Path) -> list[list[str]]:
    if uv:
        return [
            [uv, "venv", "--python", python, str(place)],
            [uv, "pip", "install", "--python", new, "--requirement", str(file)],
        ]
    # -I: packages on the user's PYTHONPATH would count as installed.
    return [
        [python, "-I", "-m", "venv", str(place)],
        [new, "-I", "-m", "pip", "install", "--disable-pip-version-check", "--requirement", str(file)],
    ]


def _run(command: list[str], name: str) -> None:
    try:
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, env=_given(), check=False).returncode
    except OSError as error:
        raise CreationFailed(f"environment {name!r}: {command[0]}: {error.strerror}; nothing is left of it") from None
    if ended:
        raise CreationFailed(
            f"environment {name!r}: {' '.join(command)} ended with exit code {ended}: see above what it said; nothing "
            "is left of it"
        )


def _given() -> dict[str, str]:
    """The variables of an installer."""
    passed = {name: value for name, value in variables.passed(os.environ).items() if not name.startswith("PYTHON")}
    more = {name: value for name, value in os.environ.items() if name in _HOMES or _SOURCES.fullmatch(name)}
    return passed | more


def _require_whole(environment: Environment, asked: Requirements, place: Path) -> None:
    """Raise a CreationFailed unless Python and all that is asked for are there, whatever the installer said."""
    probe.cache_clear()  # a former environment had this interpreter's path
    try:
        python = probe(environment.python, ()).python
    except BenchlibError as error:
        raise CreationFailed(f"environment {environment.name!r}: {error}; nothing is left of it") from None
    folders = [str(folder) for folder in place.glob("lib*/python*/site-packages")]
    there = {_normal(one.name) for one in importlib.metadata.distributions(path=folders)}
    missing = [name for name in asked.distributions if _normal(name) not in there]
    missing += [] if python.split(".")[:2] == asked.python.split(".") else [f"Python {asked.python} (it is {python})"]
    if missing:
        raise CreationFailed(
            f"environment {environment.name!r}: {', '.join(missing)}: not there, though each command above ended with "
            "exit code 0; look for target, prefix, root, user and dry-run in what pip config list prints; nothing is "
            "left of it"
        )


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _python(asked: Requirements, with_venv: bool) -> str:
    """The interpreter that answers as one of the version asked for: on PATH, of pyenv, or this one."""
    modules = "sys, venv, ensurepip" if with_venv else "sys"
    script = f"import {modules}; print('%d.%d' % sys.version_info[:2], sys.executable)"
    tried = list(dict.fromkeys(_pythons(asked.python)))
    for python in tried:
        try:
            answer = subprocess.run([python, "-I", "-c", script], capture_output=True, text=True, check=False)
        except OSError:
            continue
        version, _, executable = answer.stdout.strip().partition(" ")
        if version == asked.python:  # one of pyenv's on PATH may start nothing, or another in another folder
            return executable or python
    need = f"python{asked.python}{' with its venv module' if with_venv else ''}"
    raise BenchlibError(
        f"{asked.file}: needs {need}, and none of these answered as that: {', '.join(tried)}: install it, or pyenv "
        f"install {asked.python}"
    )


def _pythons(version: str) -> Iterator[str]:
    """Where there may be one of this version."""
    for entry in os.get_exec_path():
        if path := shutil.which(f"python{version}", path=entry):
            yield path
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"), reverse=True))
    yield sys.executable
