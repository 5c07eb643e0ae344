"""Interpreters: what each has to import. It is asked itself, as a worker would find things; nothing is imported."""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchlib import scratch, variables
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
def probe(python: str, modules: tuple[str, ...]) -> Interpreter:
    """Ask an interpreter for modules, as a worker would find them; a BenchlibError where it cannot answer."""
    command = [python, "-c", _PROBE.read_text(encoding="utf-8"), *modules]
    quiet = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    try:
        with scratch.scratch("probe") as empty:
            given = {**variables.passed(os.environ), "HOME": str(empty)}
            answered = subprocess.run(command, cwd=empty, env=given, check=False, **quiet)
        answer = json.loads(answered.stdout.splitlines()[-1])
    except OSError as error:
        raise BenchlibError(f"{python}: cannot be started ({error}); add another interpreter") from None
    except (IndexError, ValueError):
        said = (answered.stderr.strip() or "nothing").splitlines()[-1]
        needs = "It has to be a Python 3.8 or later, or a Python 3.7 with the package importlib-metadata"
        raise BenchlibError(f"{python}: could not tell which packages it has; it said: {said}. {needs}") from None
    if answer["parent"] != os.getpid():
        remedy = "in a script, write exec before the command; in place of conda run, give FOLDER/bin/python"
        raise BenchlibError(f"{python}: starts Python as a process below its own, which a worker must not be: {remedy}")
    return Interpreter(answer["python"], {name: Module(**one) for name, one in answer["modules"].items()})
