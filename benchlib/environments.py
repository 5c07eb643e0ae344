"""Environments: where a framework lives, an interpreter with its packages. The default one is this process's own; the
others are registered by name in ``.environments/``, those that ``benchlib.creation`` makes and those that a user adds.

What an environment offers is not known here: it is asked (``benchlib.interpreters``, ``benchlib.provenance.machine``).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from benchlib.errors import BenchlibError, shown, unknown
from benchlib.interpreters import answering, probe

DEFAULT = "default"
"""The environment of the interpreter that starts the workers."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


@dataclass(frozen=True)
class Environment:
    """An interpreter under a name."""

    name: str
    python: str  # its path
    made: bool = False  # by benchlib, in a folder of its own: to be removed with it
    requirements: str = ""  # digest of what it was made of
    finished: bool = True  # False: it is being made, or that broke off


def checkout() -> Path | None:
    """The project's folder that benchlib is imported from; None where it is installed without its notebooks."""
    folder = Path(__file__).resolve().parents[1]
    return folder if (folder / "notebooks" / "report.ipynb").is_file() else None


def root() -> Path:
    """The folder that ``.environments/`` and ``environments/`` are in: the checkout; else the working directory."""
    return checkout() or Path.cwd()


def folder() -> Path:
    """Where environments are made and registered; it need not be there."""
    return root() / ".environments"


def requirements_file(name: str) -> Path:
    """What the environment ``name`` is made of, if it is there."""
    return root() / "environments" / f"{name}.txt"


def require_name(name: object) -> str:
    """The name, if an environment can be called so; a ValueError (for a validator) if not."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError("an environment's name has up to 40 letters, digits and . _ - in it")
    return name


def require(name: object) -> str:
    """The name, if it is that of an environment that is there; a ValueError (for a validator) that says how to make it
    if not.
    """
    try:
        return find(require_name(name)).name
    except BenchlibError as error:
        raise ValueError(str(error)) from None


def names() -> Iterator[str]:
    """Of all environments that are there: the default one, then the others by name."""
    yield DEFAULT
    yield from (name for name in on_record() if why_absent(name) is None)


def on_record() -> list[str]:
    """Of all that is registered, whatever is wrong with it."""
    return [path.stem for path in sorted(folder().glob("*.json")) if _NAME.fullmatch(path.stem)]


def why_absent(name: str) -> str | None:
    """None if there is an environment of this name; else a sentence with the command that makes it."""
    try:
        find(name)
    except BenchlibError as error:
        return str(error)
    return None


def find(name: str) -> Environment:
    """The environment of this name; a BenchlibError with the command that makes it where there is none."""
    if name == DEFAULT:
        return Environment(DEFAULT, sys.executable)
    environment = registered(name)
    if environment is None:
        raise BenchlibError(_missing(name))
    if not environment.finished:
        raise BenchlibError(
            f"environment {name!r} was not made to its end: benchlib environment create {name} makes it anew"
        )
    return environment


def registered(name: str) -> Environment | None:
    """What is registered under this name, finished or not; None: nothing."""
    try:
        return Environment(name, **json.loads(_record(name).read_text(encoding="utf-8")))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BenchlibError(f"{_record(name)}: cannot be read ({error.strerror})") from None
    except (ValueError, TypeError):
        raise BenchlibError(
            f"{_record(name)}: is no record of an environment: benchlib environment remove {name}, and make it again"
        ) from None


def add(name: str, python: str | Path) -> Environment:
    """Register an interpreter that is there, and leave it as it is. A BenchlibError where the name is taken, or the
    interpreter is none.
    """
    require_free(name)
    path = shutil.which(os.path.abspath(python) if os.path.dirname(python) else python)
    if path is None:
        raise BenchlibError(f"{python}: is no program: give the path of an interpreter, such as FOLDER/bin/python")
    python = answering(os.path.abspath(path))  # not what a link leads to: that is how venvs are told
    environment = Environment(name, python)
    probe(environment.python, ())
    with changing():
        require_free(name)
        register(environment)
    return environment


def remove(name: str) -> Environment | None:
    """Forget an environment, and delete its folder if benchlib has made it; what it was. None: its record was no
    record, and nothing but that is deleted.
    """
    if name == DEFAULT:
        raise BenchlibError(f"environment {DEFAULT!r}: is the one that benchlib itself runs in, and cannot be removed")
    with changing():
        if name not in on_record():
            raise BenchlibError(unknown("environment", name, [DEFAULT, *on_record()]))
        try:
            environment = registered(name)
        except BenchlibError:
            environment = None
        if environment and environment.made and (folder() / name).exists():
            shutil.rmtree(folder() / name)
        _record(name).unlink()  # last: a folder without its record would be nobody's
    return environment


def require_free(name: str) -> None:
    """A BenchlibError where an environment cannot be registered under this name."""
    if there := taken(name):
        raise BenchlibError(
            f"environment {name!r} is there already ({there.python}): benchlib environment remove {name} comes first"
        )


def taken(name: str) -> Environment | None:
    """The environment that has this name already; None: there is none, or it was not made to its end. A BenchlibError
    where nothing can be registered under it.
    """
    try:
        require_name(name)
    except ValueError as error:
        raise BenchlibError(f"environment {shown(name)}: {error}") from None
    if name == DEFAULT:
        raise BenchlibError(f"environment {DEFAULT!r}: is the one that benchlib itself runs in; choose another name")
    there = registered(name)
    return there if there and there.finished else None


def register(environment: Environment) -> None:
    """Write an environment's record, at once or not at all."""
    fields = asdict(environment)
    path = _record(fields.pop("name"))
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(fields, indent=1) + "\n", encoding="utf-8")
    os.replace(partial, path)


@contextmanager
def changing() -> Iterator[None]:
    """Hold the lock of :func:`folder`; a BenchlibError if another process does, or where nothing can be written."""
    try:
        folder().mkdir(exist_ok=True)
        file = open(folder() / ".lock", "a", encoding="utf-8")  # noqa: SIM115 - closed below
    except OSError as error:
        raise BenchlibError(f"{error.filename}: {error.strerror}: environments are kept there") from None
    with contextlib.closing(file):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BenchlibError(f"{folder()}: another benchlib environment command is at work there: wait") from None
        except OSError as error:
            raise BenchlibError(
                f"{folder()}: cannot be locked ({error.strerror}): environments need a file system with file locks"
            ) from None
        yield


def _record(name: str) -> Path:
    return folder() / f"{name}.json"


def _missing(name: str) -> str:
    if requirements_file(name).is_file():
        return f"environment {name!r} is not there: benchlib environment create {name} makes it"
    could_be = {*names(), *(path.stem for path in (root() / "environments").glob("[!.]*.txt"))}
    return (
        f"{unknown('environment', name, could_be)}; benchlib environment add {name} --python PATH registers an "
        "interpreter under that name"
    )
