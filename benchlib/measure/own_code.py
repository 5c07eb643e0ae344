"""benchlib's own code behind a number: which of its files make it, a hash of them, the commit. Nothing of them is
imported for it.
"""

from __future__ import annotations

import functools
import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from benchlib.condition import Condition
from benchlib.errors import BenchlibError
from benchlib.measure import imports

PACKAGE = Path(__file__).resolve().parents[1]  # of benchlib itself

WORKER, RANK, GROUP = "benchlib.worker.__main__", "benchlib.worker.rank", "benchlib.measure.group"
GATE_ONLY = frozenset({"benchlib.worker.check", "benchlib.worker.packed"})

IN_KEY = frozenset(
    {
        "benchlib.condition",
        "benchlib.environments",
        "benchlib.interpreters",
        "benchlib.knobs",
        "benchlib.plugins",
        "benchlib.variables",
        "benchlib.measure.availability",
        "benchlib.measure.installed",
        "benchlib.measure.machine",
        "benchlib.measure.own_code",
    }
)
"""Modules whose outcome is a part of a number's key itself: choices, versions, knobs, which files have a name, what a
worker inherits, the machine.
"""

HASHED = frozenset({"benchlib.data.prepare", "benchlib.data.weights", "benchlib.data.orders"})
"""Modules that make the workers' input files, whose hashes are in the key."""

KEEPING = frozenset(
    {
        "benchlib.analysis.failure",
        "benchlib.measure.answers",
        "benchlib.progress",
        "benchlib.store",
        "benchlib.scratch",
        "benchlib.shown",
        "benchlib.validation",
    }
)
"""Modules that keep, show or refuse what is measured by others, and that tidy up."""


def of_worker(framework: str, workload: str | None = None) -> list[str]:
    """What a worker imports by names that it is told: the framework's module and the workload's."""
    own = f"benchlib.workloads.{workload}"
    return [f"benchlib.frameworks.{framework}", *([f"{own}.workload", f"{own}.{framework}"] if workload else [])]


def files(condition: Condition, procedure: str) -> dict[str, Path]:
    """The files whose code makes a condition's numbers, by the names of their modules.

    ``procedure`` is the module of ``benchlib.measure`` that says what is done: ``rounds``, ``epochs``, ``ceiling``,
    ``contract`` or ``gate``. Of the worker's side that is all that it imports, with the framework's file and the
    workload's; only what it computes for the gate is the gate's alone. Of the parent's it is the procedure with what it
    imports, less what the key tells by itself (:data:`IN_KEY`, :data:`HASHED`) and what keeps and shows numbers
    (:data:`KEEPING`). So what is new is in, unless it is named here.
    """
    together = condition.world_size > 1
    worker = [*of_worker(condition.framework, condition.workload), RANK if together else WORKER]
    beside = IN_KEY | HASHED | KEEPING | (frozenset() if together else {GROUP})
    return {
        **imports.closure(worker, () if procedure == "gate" else GATE_ONLY),
        **imports.closure([f"benchlib.measure.{procedure}"], beside),
    }


def digest(condition: Condition, procedure: str) -> str:
    """A hash of the code in :func:`files`: a number made by other code has another key. Comments, docstrings and
    layout are not code.
    """
    return imports.digest(files(condition, procedure))


class Unchanged:
    """The code of each condition's procedure (pairs, as of :func:`files`) as it is now: see :meth:`require`. A
    BenchlibError where this process itself runs another code of it.
    """

    def __init__(self, pairs: Iterable[tuple[Condition, str]]) -> None:
        self._files = {name: path for pair in pairs for name, path in files(*pair).items()}
        self._before = self._now()
        loaded = [name for name in self._before if name in sys.modules]
        if stale := [name for name in loaded if _loaded.setdefault(name, self._before[name]) != self._before[name]]:
            raise BenchlibError(
                f"{', '.join(str(self._files[name]) for name in stale)}: changed since this process imported it; "
                "restart the notebook's kernel (or this program)"
            )

    def require(self) -> None:
        """A BenchlibError where a file has changed since then: no number is made of two codes."""
        now = self._now()
        if changed := [str(path) for name, path in self._files.items() if now[name] != self._before[name]]:
            raise BenchlibError(
                f"{', '.join(changed)}: changed while it was measured. What was measured before is kept; run again to "
                "measure the code that is there now"
            )

    def _now(self) -> dict[str, str]:
        every = self._files.items()
        return {name: imports.digest({name: path}) if path.exists() else "gone" for name, path in every}


_loaded: dict[str, str] = {}
"""Hashes of the code of modules that this process has imported, as of the first time that it was asked for."""


@functools.cache
def commit() -> str:
    """benchlib's version, and git's commit where this is a checkout (with ``+`` if files differ from it), or why git
    gives none.
    """
    try:
        version = f"benchlib {importlib.metadata.version('benchlib')}"
    except importlib.metadata.PackageNotFoundError:
        version = "benchlib"  # a checkout that is on the path, and not installed
    if not (PACKAGE.parent / ".git").exists():
        return version
    try:
        head = _git("rev-parse", "--short=12", "HEAD").strip()
        changed = _git("status", "--porcelain", "--untracked-files=normal", "--", "benchlib").strip()
    except OSError as error:
        return f"{version} (commit not known: git: {error.strerror})"
    except subprocess.CalledProcessError as error:
        return f"{version} (commit not known: {' '.join(error.stderr.split())})"
    return f"{version} {head}{'+' if changed else ''}"


def _git(*command: str) -> str:
    # Both named: git asks whose a repository is only where it has to look for one, and this code runs already.
    place = ["-C", str(PACKAGE.parent), "--git-dir=.git", "--work-tree=."]
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}  # a hook's: of another
    return subprocess.run(["git", *place, *command], env=own, capture_output=True, text=True, check=True).stdout
