"""Makes an environment from its requirements: ``environments/NAME.txt``, versions pinned, as pip reads them. Its first
lines are comments, of which ``# python: 3.11`` says for which Python it is, and ``# system: ...`` what the system has
to have beside it.
"""

from __future__ import annotations

import ast
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

UV_MAKES = (3, 8)
"""The oldest Python that uv makes an environment for."""

_HOMES = ("HOME", "XDG_CONFIG_HOME", "XDG_CONFIG_DIRS", "XDG_CACHE_HOME", "NETRC")
_SOURCES = re.compile(r"(PIP|UV)_\w*(INDEX|FIND_LINKS|HOST|CERT|PROXY|CACHE|CONFIG_FILE|TIMEOUT|RETR|TLS|KEYRING)\w*")
"""What pip and uv get beside a worker's variables: where packages come from. None says where they go."""

_AS_UV = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "constraint": "UV_CONSTRAINT",
    "cert": "SSL_CERT_FILE",
}
"""Settings of pip that uv does not read, and its variables for them."""


class CreationFailed(BenchlibError):
    """An environment's packages could not be installed; nothing is left of it."""


@dataclass(frozen=True)
class Requirements:
    """What an environment is made of."""

    file: Path
    python: str  # as 3.11
    system: tuple[str, ...]  # what the system has to have, a sentence each
    versions: dict[str, str | None]  # of distributions, None: not pinned; those that depend on the system are left out
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
    said = [re.match(r"#\s*(python|system):\s*(.*)", line) for line in takewhile(lambda one: one[:1] == "#", lines)]
    python = [one[2] for one in said if one and one[1] == "python"] or [f"{sys.version_info[0]}.{sys.version_info[1]}"]
    if len(python) > 1 or not re.fullmatch(r"\d+\.\d+", python[0]):
        raise BenchlibError(f"{file}: # python: {', '.join(python)}: give one version of Python, such as 3.11")
    pins = [pin for line in lines if (pin := re.sub(r"(^|\s)#.*", "", line).strip())]
    named = [re.match(r"([A-Za-z0-9][\w.-]*)(?:\[.*\])?\s*(?:==\s*([\w.+!]+))?", pin) for pin in pins if ";" not in pin]
    digest = hashlib.sha256("\n".join([*python, *pins]).encode()).hexdigest()[:16]
    system = tuple(one[2] for one in said if one and one[1] == "system")
    return Requirements(file, python[0], system, {one[1]: one[2] for one in named if one}, digest)


def create(name: str, say: Callable[[str], None] = print) -> Environment:
    """Make the environment ``name`` in ``.environments/NAME/`` with uv, or with venv and pip for a Python older than
    ``UV_MAKES``; their output goes to this process's. Where it is there already, made of the same, it is left alone.

    A BenchlibError before anything is made where it cannot be; a :class:`CreationFailed` where a package could not be
    installed. Nothing is registered that is not whole; the folder is removed, after a kill by the next attempt.
    """
    asked = requirements(name)
    there = environments.require_free(name, asked and asked.digest)
    if asked is None:
        offered = [path.stem for path in (environments.root() / "environments").glob("[!.]*.txt")]
        raise BenchlibError(
            f"{unknown('environment', name, offered)}; it is made from {environments.requirements_file(name)}: write "
            f"that, or register an interpreter with benchlib environment add {name} --python PATH"
        )
    if there:
        say(f"environment {name!r} is there already, made of {asked.file} as it is")
        return there
    place = environments.folder() / name
    environment = Environment(name, str(place / "bin" / "python"), True, asked.digest, finished=False)
    commands = _commands(asked, environment.python, place)
    with environments.changing():
        environments.require_free(name)
        if place.exists() and not environments.registered(name):
            raise BenchlibError(f"{place}: is there, and no environment is registered for it: move it away")
        environments.register(environment)
        try:
            for sentence in asked.system:
                say(f"the system has to have: {sentence}")
            say(f"making {place}")
            shutil.rmtree(place, ignore_errors=True)  # of an attempt that was killed
            for command in commands:
                _run(command)
            _require_whole(environment, asked)
            environment = replace(environment, finished=True)
            environments.register(environment)
        except BenchlibError as error:
            raise CreationFailed(f"environment {name!r}: {error}; nothing is left of it") from None
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
    python, again = environment.python, f"benchlib environment remove {environment.name}, and make it again"
    if not Path(python).exists():
        return f"{python} is not there: {again}"
    if not environment.made:
        return f"{python}, added"
    asked = requirements(environment.name)
    same = asked is not None and asked.digest == environment.requirements
    file = environments.requirements_file(environment.name)
    return f"{python}, made of {file} {'as it is' if same else f'which has changed: {again}'}"


def _commands(asked: Requirements, new: str, place: Path) -> list[list[str]]:
    """What makes the environment at ``place``, whose interpreter will be ``new``."""
    path = _given()["PATH"]
    if tuple(map(int, asked.python.split("."))) < UV_MAKES:
        python = shutil.which(f"python{asked.python}", path=path) or f"python{asked.python}"
        # -I: packages on the user's PYTHONPATH would count as installed.
        return [
            [python, "-I", "-m", "venv", str(place)],
            [new, "-I", "-m", "pip", "install", "--disable-pip-version-check", "--requirement", str(asked.file)],
        ]
    uv = shutil.which("uv", path=path)
    if uv is None:
        raise BenchlibError("environments are made with uv, which is not there: pip install 'benchlib[suite]', or uv")
    return [
        [uv, "venv", "--no-project", "--python", asked.python, str(place)],
        [uv, "pip", "install", "--python", new, "--requirement", str(asked.file)],
    ]


def _sources() -> dict[str, str]:
    """Where pip is set to find packages, in its files and in variables, as variables of uv."""
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, env=_given(), capture_output=True, text=True, check=False).stdout.splitlines()
    found = {"UV_INDEX_STRATEGY": "unsafe-best-match"}  # as pip: the best version of all places, not the first place's
    for line in sorted(listed, key=lambda line: line.startswith(":env:")):  # variables stand above files
        name, _, value = line.partition("=")
        if variable := _AS_UV.get(name.rpartition(".")[2]):
            found[variable] = ("," if variable == "UV_FIND_LINKS" else " ").join(ast.literal_eval(value).split())
    return found


def _run(command: list[str]) -> None:
    try:
        given = {**_sources(), **_given()}
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, env=given, check=False).returncode
    except OSError as error:
        raise BenchlibError(f"{command[0]}: {error.strerror}") from None
    if ended:
        raise BenchlibError(f"{' '.join(command)} ended with exit code {ended}: see above what it said")


def _given() -> dict[str, str]:
    """The variables of an installer, which finds programs beside this Python, and Pythons of pyenv."""
    passed = {name: value for name, value in variables.passed(os.environ).items() if not name.startswith("PYTHON")}
    more = {name: value for name, value in os.environ.items() if name in _HOMES or _SOURCES.fullmatch(name)}
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv").glob("versions/*/bin")
    path = [os.path.dirname(sys.executable), *map(str, pyenv), *os.get_exec_path()]
    return passed | more | {"PATH": os.pathsep.join(path)}


def _require_whole(environment: Environment, asked: Requirements) -> None:
    """Raise a BenchlibError unless Python and all that is asked for are there, whatever the installer said."""
    probe.cache_clear()  # a former environment had this interpreter's path
    python, there = probe(environment.python, ()).python, installed(environment.name)
    missing = [name for name in asked.versions if normal(name) not in there]
    missing += [] if python.split(".")[:2] == asked.python.split(".") else [f"Python {asked.python} (it is {python})"]
    if missing:
        raise BenchlibError(
            f"{', '.join(missing)}: not there, though each command above ended with exit code 0; look for target, "
            "prefix, root, user and dry-run in what pip config list prints"
        )


def installed(name: str) -> dict[str, str]:
    """Versions of the distributions in an environment that was made here, by :func:`normal` name."""
    folders = [str(folder) for folder in (environments.folder() / name).glob("lib*/python*/site-packages")]
    return {normal(one.name): one.version for one in importlib.metadata.distributions(path=folders)}


def normal(distribution: str) -> str:
    """A distribution's name, however it is written."""
    return re.sub(r"[-_.]+", "-", distribution).lower()
