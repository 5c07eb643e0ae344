"""Staleness of a folder's results: which are up to date, which are not, and why."""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from benchlib import env_vars, frameworks, manifest, plugins
from benchlib.environments import DEFAULT
from benchlib.notebooks import cells
from benchlib.provenance import fingerprint, installed, machine
from benchlib.suite.profile import Planned, notebooks


class Outputs:
    """The results in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def environment(self) -> dict[str, Any]:
        """The software and the machine that execute notebooks, for their records."""
        packages = {one.name: one.version for one in importlib.metadata.distributions()}
        present = [name for name in frameworks.names() if installed.offers(DEFAULT, name)]
        return {
            "interpreter": sys.executable,
            "versions": {"python": platform.python_version(), **dict(sorted(packages.items()))},
            "packages": {name: installed.packages(name) for name in present},
            "machine": machine.describe(),
        }

    def inputs(self, item: Planned) -> dict[str, str]:
        """Hashes of a notebook's inputs beside its measurements, by the words that a user reads."""
        lock, here = Path("requirements.lock"), self.environment
        locked = lock.read_text(encoding="utf-8") if lock.exists() else ""
        used = sorted({(one.framework, one.workload, one.environment) for one in item.conditions})
        inputs = {
            "notebook": [[one.kind, one.source] for one in cells(item.notebook)],
            "parameters": item.parameters,
            "benchlib": _library_hashes(),
            "requirements.lock": locked,
            "machine": here["machine"],
            "versions": [here[name] for name in ("interpreter", "versions", "packages")],
            "packages": [
                [[*one, installed.packages(*one), installed.versions(one[0], one[2])] for one in used],
                _distinct_json(installed.compiler(one) for one in item.conditions),
            ],
            "variables": _distinct_json(env_vars.identity(one) for one in item.conditions),
            "data": item.data,
        }
        if item.study is None:
            every = notebooks()
            before = every[: every.index(item.name)]
            paths = [manifest.path_of(self.folder, name) for name in before]
            texts = [path.read_text(encoding="utf-8") for path in paths if path.exists()]
            inputs["results"] = [texts, sorted(manifest.all_wrong(self.folder, before).items())]
        return {name: manifest.digest(value) for name, value in inputs.items()}

    def timing_digest(self, items: Iterable[Planned]) -> str:
        """A hash of the inputs of all that measure: the time spent counts for these only."""
        return manifest.digest([[item.name, self.inputs(item)] for item in items if item.conditions])

    def why_due(self, item: Planned) -> str | None:
        """Why a notebook has to be executed, in words; None: it has not."""
        if (record := manifest.read(self.folder, item.name)) is None:
            return "started"
        reason = self.why_outdated(item, record)
        return reason and f"started again: {reason}"

    def why_outdated(self, item: Planned, record: dict[str, Any]) -> str | None:
        """The reason why a notebook's earlier result no longer holds, in words; None: it holds."""
        if record["status"] != "succeeded":
            return f"it had {'failed' if record['status'] == 'failed' else 'not come to its end'}"
        if changed := [one for one, now in self.inputs(item).items() if record["inputs"].get(one) != now]:
            return f"these have changed: {', '.join(self._describe_change(one, record) for one in changed)}"
        if record.get("crashed"):
            return f"{record['crashed']} measurements had failed"
        if not (executed := self.folder / "notebooks" / f"{item.name}.ipynb").exists():
            return f"{executed} is gone"
        if any((self.folder / file).exists() for file in record["awaited"]):
            return "there are more measurements of its comparisons"
        file, wrong = next(manifest.wrong_files(record, self.folder), (None, None))
        return f"{self.folder / file} {wrong}" if wrong else None

    def _describe_change(self, word: str, record: dict[str, Any]) -> str:
        """An input that has changed, with the first three changes of machine or versions."""
        if word not in ("machine", "versions"):
            return word
        now, before = (of[word] | {"interpreter": of["interpreter"]} for of in (self.environment, record))
        names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
        changes = [f"{name}: {now.get(name, 'none')}, was {before.get(name, 'none')}" for name in names[:3]]
        return f"{word} ({'; '.join(changes)})" if changes else word


def _distinct_json(values: Iterable[Any]) -> list[str]:
    """The distinct values, as JSON: hundreds of conditions depend on the same."""
    return sorted({json.dumps(value, sort_keys=True) for value in values})


def _library_hashes() -> dict[str, str]:
    """Hashes of the files of benchlib and of plug-ins."""
    files = plugins.visible_files(fingerprint.PACKAGE, "*")
    own = {path.relative_to(fingerprint.PACKAGE).as_posix(): path for path in files}
    return {place: manifest.digest(path.read_bytes()) for place, path in {**own, **plugins.files()}.items()}
