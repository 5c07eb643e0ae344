"""Interpreters, and the modules that each can import. It is asked itself, as a worker would be; nothing is imported."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchlib import env_vars, scratch
from benchlib.errors import BenchlibError

_PROBE = Path(__file__).with_name("probe.py")


@dataclass(frozen=True)
class Module:
    """A top-level module that an interpreter was asked for."""

    place: str  # its file; empty: it is not there
    distributions: list[str]  # that it comes in, as pip calls them: tensorflow may come in tensorflow-cpu
    # Versions of these and of all that they need, as far as it is installed; and hashes of the files of these.
    packages: Mapping[str, str]
    digest: str  # of its file, where no distribution has installed it: it has no version


@dataclass(frozen=True)
class Interpreter:
    """A Python: its version, and the modules that it was asked for, by name."""

    python: str
    modules: Mapping[str, Module]


@functools.cache
def probe(python: str, modules: tuple[str, ...], folders: tuple[str, ...] = ()) -> Interpreter:
    """Ask an interpreter for top-level modules, those of the working directory and of the user's PYTHONPATH left out,
    as for a worker, which has the ``folders`` of ``WORKER_PATH``. A BenchlibError where it does not answer.
    """
    answered = _run_as_worker([python, "-c", _PROBE.read_text(encoding="utf-8"), *modules])
    try:
        answer = json.loads(answered.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        said = (answered.stderr.strip() or "nothing").splitlines()[-1]
        raise BenchlibError(
            f"{python}: could not tell which packages it has; it said: {said}. It has to be a Python 3.8 or later, or "
            "a Python 3.7 with the package importlib-metadata"
        ) from None
    if answer["parent"] != os.getpid():
        raise BenchlibError(
            f"{python}: starts Python as a process below its own, which a worker must not be. In a script, write exec "
            "before the command; in place of conda run, give the environment's own FOLDER/bin/python"
        )
    return Interpreter(answer["python"], {name: Module(**one) for name, one in answer["modules"].items()})


def resolve(python: str) -> str:
    """The interpreter that answers here for ``python``. That is itself, unless a worker would get another one for it,
    as from pyenv's shims, which go by folder and variables.
    """
    question = [python, "-I", "-c", "import sys; print(sys.executable)"]
    there = _run_as_worker(question).stdout
    here = subprocess.run(question, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False).stdout
    return python if here == there or not here.strip() else here.splitlines()[-1]


def _run_as_worker(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run an interpreter in an empty folder, with a worker's variables; a BenchlibError where it cannot be started."""
    try:
        with scratch.scratch("probe") as empty:
            given = {**env_vars.for_worker(os.environ), "HOME": str(empty)}
            quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
            return subprocess.run(command, cwd=empty, env=given, check=False, **quiet)
    except OSError as error:
        raise BenchlibError(f"{command[0]}: cannot be started ({error}); add another interpreter") from None
