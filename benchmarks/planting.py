"""Differences that ``mutations.py`` plants: how they are declared (``mutants/*.yaml``), and an environment whose
benchlib has one of them.

A file there is about one workload's files, or about the frameworks' sessions:

    file: workloads/cnn/{framework}.py
    workloads: [cnn]
    mutants:
      - what: the loss is a sum
        kind: loss
        mindspore: {old: "ops.cross_entropy(model(images), labels)", new: "... reduction='sum')"}
        pytorch: {old: ..., new: ...}

``old`` must be in the file exactly once. A file about one of :data:`REGIONS` says so as ``region``. A module that the
workloads of one framework share is a ``file`` by its whole name (``workloads/_flax.py``). See :class:`Text` for shorter
forms, and :class:`Mutant` for what else can be said.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import textwrap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict

from benchlib import environments, plugins, workloads
from benchlib.environments import DEFAULT, Environment
from benchlib.runner import availability

DECLARED = Path(__file__).with_name("mutants")
ENVIRONMENTS = {"pytorch": DEFAULT, "mindspore": DEFAULT, "jax": "jax", "tensorflow": "tensorflow", "mxnet": "mxnet"}
"""The environment of each framework that something is planted into."""

FRAMEWORKS = tuple(ENVIRONMENTS)
USUAL = {"pytorch": "eager", "mindspore": "eager", "jax": "graph", "tensorflow": "graph", "mxnet": "eager"}
"""The mode that each is planted in unless a mutant says otherwise."""


REGIONS = {
    "ordinary": "what a step computes, with few samples of a fresh model",
    "batch": "more samples than a small batch has",
    "dropout": "training in which numbers are dropped",
    "far": "saturated values",
    "predictions": "what is predicted, not what is trained",
    "work": "other work, equal numbers",
}
"""The parts of what is timed that a gate may fail to look at."""

Region = Literal["ordinary", "batch", "dropout", "far", "predictions", "work"]

ANCHOR = "def optimizer("
"""What ``new`` stands before where there is no ``old``: all files of models that train have it once."""


class Text(BaseModel):
    """What stands in a file, and what is planted in its place.

    Without ``old``, ``new`` is added. ``loss`` is shorter for the body of another ``loss(model, batch)``, which calls
    the file's own as ``right``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    old: str = ""
    new: str = ""
    loss: str = ""

    @property
    def replaced(self) -> str:
        return self.old or ANCHOR

    @property
    def planted(self) -> str:
        """What then stands there."""
        if self.old:
            return self.new
        of_loss = f"right = loss\n\n\ndef loss(model, batch):\n{textwrap.indent(self.loss, '    ')}"
        return f"{of_loss if self.loss else self.new}\n\n\n{ANCHOR}"


class Mutant(BaseModel):
    """One difference, in the files of one framework or of several.

    ``changes`` says what: what is "trained" (or handed out), only what is "predicted", only how fast ("speed"), or
    "nothing": then the gate has to say "same". ``other`` are the frameworks in which it is planted in the mode that
    is not their ``USUAL`` one, too; or only there, if ``usual`` is false. In those of ``refused`` the worker is known
    to fail, because what the gate asks it for is not there any more. ``hyperparameters`` are other sizes than
    quick's, where these would hide it: a certificate is of the sizes that it was made with. ``precision`` says by
    framework which mixed one it is planted in, where it is other in that alone, and ``processes`` in how many that
    train together. ``unseen`` is why the gate does not see it, where that is known.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    what: str
    kind: str
    region: Region = "ordinary"
    changes: Literal["trained", "predicted", "speed", "nothing"] = "trained"
    file: str = ""
    workloads: tuple[str, ...] = ()
    hyperparameters: dict[str, Any] = {}
    pytorch: Text | None = None
    mindspore: Text | None = None
    jax: Text | None = None
    tensorflow: Text | None = None
    mxnet: Text | None = None
    usual: bool = True
    other: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    precision: dict[str, str] = {}
    processes: int = 1
    unseen: str = ""

    def place(self, framework: str) -> str:
        """The file, relative to benchlib."""
        return self.file.format(framework=framework)

    def text(self, framework: str) -> Text | None:
        """What is replaced in that framework's file; None: nothing."""
        return getattr(self, framework)

    def modes(self, framework: str) -> list[str]:
        """Those that it is planted in."""
        usual = USUAL[framework]
        other = "graph" if usual == "eager" else "eager"
        return [usual] * self.usual + [other] * (framework in self.other)


@dataclass(frozen=True)
class Trial:
    """A mutant as one condition has it."""

    mutant: Mutant
    framework: str
    workload: str
    mode: str

    def __str__(self) -> str:
        return f"region {self.mutant.region}: {self.workload} {self.framework} {self.setting}: {self.mutant.what}"

    @property
    def precision(self) -> str:
        return self.mutant.precision.get(self.framework, "fp32")

    @property
    def setting(self) -> str:
        """Its mode, and what else of the condition is not the usual."""
        precision = f" {self.precision}" if self.precision != "fp32" else ""
        return f"{self.mode}{precision}{f' {self.mutant.processes} processes' if self.mutant.processes > 1 else ''}"


def declared() -> list[Mutant]:
    """All mutants, in the order of their files. A SystemExit where two are called the same."""
    mutants = []
    for path in sorted(DECLARED.glob("*.yaml")):
        of_file = yaml.safe_load(path.read_text(encoding="utf-8"))
        shared = {name: value for name, value in of_file.items() if name != "mutants"}
        mutants += [Mutant(**{**shared, **one}) for one in of_file["mutants"]]
    names = Counter(
        (workload, mutant.what, mutant.processes, *mutant.precision.values())
        for mutant in mutants
        for workload in mutant.workloads
    )
    if twice := [name for name, count in names.items() if count > 1]:
        raise SystemExit(f"two mutants are called the same: {twice}")
    return mutants


def trials() -> Iterator[Trial]:
    """Each mutant in each workload, framework that has the workload, and mode that it is declared for."""
    for mutant in declared():
        for framework in [one for one in FRAMEWORKS if mutant.text(one)]:
            yield from (
                Trial(mutant, framework, workload, mode)
                for workload in mutant.workloads
                if framework in workloads.load(workload).frameworks()
                for mode in mutant.modes(framework)
            )


def absent() -> dict[str, str]:
    """The frameworks that are not there in their environment, each with what to do about it."""
    found = {one: availability.why_absent(one, "cpu", environment) for one, environment in ENVIRONMENTS.items()}
    return {framework: why for framework, why in found.items() if why is not None}


def planted(mutant: Mutant, framework: str) -> str:
    """The whole text of the file with the difference in it. A SystemExit where what it replaces is not there once."""
    text = mutant.text(framework)
    path = plugins.OWN / mutant.place(framework)
    before = path.read_text(encoding="utf-8")
    if (count := before.count(text.replaced)) != 1:
        raise SystemExit(f"{path}: what {mutant.what!r} replaces is there {count} times: {text.replaced}")
    return before.replace(text.replaced, text.planted)


class Bed:
    """An environment with the packages of an interpreter, whose benchlib is ours but for one file.

    Its own interpreter is a virtual environment's, made by hand: what lies beside the other is found through a ``.pth``
    file, which puts that benchlib before all others.
    """

    def __init__(self, folder: Path, name: str, interpreter: str) -> None:
        self.name = name
        self._path = folder / "path"
        base, packages, place = _of_interpreter(interpreter)
        python = folder / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.symlink_to(base)
        settings = f"home = {base.parent}\ninclude-system-site-packages = false\n"
        (folder / "pyvenv.cfg").write_text(settings, encoding="utf-8")
        (folder / place).mkdir(parents=True)
        lines = [f"import sys; sys.path.insert(0, {str(self._path)!r})"]
        lines += [f"import site; site.addsitedir({one!r})" for one in packages]
        (folder / place / "planted.pth").write_text("\n".join(lines) + "\n", encoding="utf-8")
        environments.register(Environment(name, str(python)))

    def plant(self, place: str, text: str) -> None:
        """Have its benchlib have ``text`` for the file ``place``; a difference from before is gone."""
        shutil.rmtree(self._path, ignore_errors=True)
        _lay(self._path / "benchlib", plugins.OWN, place.split("/"), text)


@functools.cache
def _of_interpreter(python: str) -> tuple[Path, list[str], Path]:
    """The interpreter that a virtual environment is of, the folders of its packages, and where a virtual environment
    has them.
    """
    code = (
        "import json, site, sys, sysconfig; "
        "print(json.dumps([sys.base_prefix, sys.version_info[:2], site.getsitepackages(), sys.prefix, "
        "sysconfig.get_path('purelib')]))"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
    base, version, packages, prefix, own = json.loads(done.stdout)
    return Path(base, "bin", "python{}.{}".format(*version)), packages, Path(own).relative_to(prefix)


def _lay(folder: Path, own: Path, place: list[str], text: str) -> None:
    """Links to all that ``own`` has, but for one file, ``place`` from there."""
    first, *rest = place
    folder.mkdir(parents=True)
    for entry in own.iterdir():
        if entry.name not in ("__pycache__", first):
            (folder / entry.name).symlink_to(entry)
    if rest:
        _lay(folder / first, own / first, rest, text)
    else:
        (folder / first).write_text(text, encoding="utf-8")
