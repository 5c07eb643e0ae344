"""A folder of results, beside what the same notebooks would be executed with here and now: what is up to date in it,
and what is not, and why.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from benchlib import frameworks, manifest, plugins, variables
from benchlib.condition import Condition
from benchlib.environments import DEFAULT
from benchlib.errors import BenchlibError
from benchlib.provenance import fingerprint, installed, machine
from benchlib.study import cells
from benchlib.suite.plan import Planned, gathers, notebooks, parameter_files, planned

MOST_NAMED = 3
"""Of what has changed in an input so much is named."""

RUN, STALE, FAILED, MISSING = "run", "stale", "failed", "missing"


@dataclass(frozen=True)
class State:
    """Where a notebook stands in a folder of results: ``word`` is "run", "stale", "failed" or "missing", and ``why`` is
    in words.
    """

    name: str
    word: str
    why: str = ""
    started_utc: str | None = None  # of the last time that it was started
    executed: Path | None = None  # the executed notebook, if it is there


def states(profile: str, folder: Path | None = None) -> list[State]:
    """Where each notebook stands, in order; executes nothing. What a run of ``profile`` would refuse is a reason here,
    too: whoever looks wants to see the others.
    """
    files, outputs = parameter_files(profile), Outputs(folder or Path("outputs", profile))
    return [_state(name, profile, files, outputs) for name in notebooks()]


class Outputs:
    """The results in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def environment(self) -> dict[str, Any]:
        """What notebooks are executed with and on, for their records."""
        packages = {one.name: one.version for one in importlib.metadata.distributions()}
        present = [name for name in frameworks.names() if installed.offers(DEFAULT, name)]
        return {
            "interpreter": sys.executable,
            "versions": {"python": platform.python_version(), **dict(sorted(packages.items()))},
            "frameworks": {name: installed.versions(name) for name in present},
            "packages": {name: installed.packages(name) for name in present},
            "machine": machine.describe(),
        }

    def executed(self, name: str) -> Path:
        """Where an executed notebook lies."""
        return self.folder / "notebooks" / f"{name}.ipynb"

    def inputs(self, item: Planned) -> dict[str, str]:
        """Hashes of what a notebook's result depends on beside its measurements, by the words that a user reads."""
        lock = Path("requirements.lock")
        environment = self.environment
        inputs = {
            "notebook": manifest.digest([[one.kind, one.source] for one in cells(item.notebook)]),
            "parameters": manifest.digest(item.parameters),
            "benchlib": manifest.digest(_library()),
            "requirements.lock": manifest.digest(lock.read_bytes()) if lock.exists() else "",
            "machine": manifest.digest(environment["machine"]),
            "versions": manifest.digest([environment[name] for name in ("interpreter", "versions", "frameworks")]),
            "packages": manifest.digest(_packages(item.conditions, environment["packages"])),
            "variables": manifest.digest(_distinct(variables.identity(one) for one in item.conditions)),
            "data": manifest.digest(item.data),
        }
        if item.study is None:
            every = notebooks()
            before = every[: every.index(item.name)]
            paths = [manifest.path_of(self.folder, name) for name in before]
            texts = [path.read_text(encoding="utf-8") for path in paths if path.exists()]
            inputs["results"] = manifest.digest([texts, sorted(manifest.all_wrong(self.folder, before).items())])
        return inputs

    def timed(self, items: Iterable[Planned]) -> str:
        """What the time counts for that these results have had: a hash of the inputs of all that measure."""
        return manifest.digest([[item.name, self.inputs(item)] for item in items if item.conditions])

    def measured_before(self, item: Planned) -> bool:
        """Has a notebook succeeded with what it would be made of now, but for measurements?"""
        record = manifest.read(self.folder, item.name)
        return bool(record) and record["status"] == "succeeded" and record["inputs"] == self.inputs(item)

    def why_due(self, item: Planned, inputs: dict[str, str]) -> str | None:
        """Why a notebook has to be executed, in words, if these are its inputs; None: it has not."""
        record = manifest.read(self.folder, item.name)
        if record is None:
            return "started"
        reason = self.outdated(item.name, record, inputs)
        return None if reason is None else f"started again: {reason}"

    def outdated(self, name: str, record: dict[str, Any], inputs: dict[str, str]) -> str | None:
        """Why what a notebook once gave is not its result now, in words; None: it is."""
        if record["status"] != "succeeded":
            return f"it had {'failed' if record['status'] == 'failed' else 'not come to its end'}"
        if changed := [one for one, now in inputs.items() if record["inputs"].get(one) != now]:
            return f"these have changed: {', '.join(self._changed(one, record) for one in changed)}"
        if record.get("crashed"):
            return f"{record['crashed']} measurements had failed"
        if not (executed := self.executed(name)).exists():
            return f"{executed} is gone"
        if any((self.folder / file).exists() for file in record["awaited"]):
            return "there are more measurements of its comparisons"
        file, wrong = next(manifest.wrong_files(record, self.folder), (None, None))
        return f"{self.folder / file} {wrong}" if wrong else None

    def _changed(self, word: str, record: dict[str, Any]) -> str:
        """The word of an input that has changed, with what of it has, as far as the record tells."""
        parts = {"versions": ("interpreter", "versions", "frameworks")}.get(word, (word,))
        here = json.loads(json.dumps(self.environment))
        known = [part for part in parts if part in record and part in here]
        before, now = (_leaves({part: of[part] for part in known}) for of in (record, here))
        names = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
        listed = [f"{name}: {now.get(name, 'none')}, was {before.get(name, 'none')}" for name in names[:MOST_NAMED]]
        more = [f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else []
        return f"{word} ({'; '.join([*listed, *more])})" if names else word


def _leaves(value: Any, name: str = "") -> dict[str, Any]:
    """What is in dicts in dicts, by its own name."""
    if not isinstance(value, dict):
        return {name: value}
    return {leaf: one for key, part in value.items() for leaf, one in _leaves(part, key).items()}


def _state(name: str, profile: str, files: dict[str, Path], outputs: Outputs) -> State:
    record, executed = manifest.read(outputs.folder, name), outputs.executed(name)
    facts = {
        "started_utc": record["started_utc"] if record else None,
        "executed": executed if executed.exists() else None,
    }
    old = STALE if facts["executed"] else MISSING
    if record and record["status"] == "failed":
        return State(name, FAILED, f"in {record['error']['cell']}: {record['error']['text']}", **facts)
    if name not in files and not gathers(name):
        return State(name, MISSING, f"there is no {Path('parameters', profile, name)}.yaml", **facts)
    try:
        item = planned(name, files.get(name))
    except BenchlibError as error:
        return State(name, old, str(error), **facts)
    if record is None:
        return State(name, MISSING, "it has not been started", **facts)
    reason = outputs.outdated(name, record, outputs.inputs(item))
    return State(name, RUN, **facts) if reason is None else State(name, old, reason, **facts)


def _packages(conditions: list[Condition], here: dict[str, Any]) -> Any:
    """What the frameworks compute with here, and what the workloads and conditions of a notebook need beside it."""
    used = {(one.framework, one.workload, one.environment) for one in conditions}
    elsewhere = {(one.framework, one.environment) for one in conditions}
    return [
        here,
        [[*one, installed.packages(*one)] for one in sorted(used)],
        [[*one, installed.versions(*one)] for one in sorted(elsewhere)],
        _distinct(installed.compiler(one) for one in conditions),
    ]


def _distinct(values: Iterable[Any]) -> list[str]:
    """As JSON: hundreds of conditions depend on the same."""
    return sorted({json.dumps(value, sort_keys=True) for value in values})


def _library() -> dict[str, str]:
    """Hashes of the files of benchlib and of plug-ins."""
    files = plugins.visible(fingerprint.PACKAGE, "*")
    own = {path.relative_to(fingerprint.PACKAGE).as_posix(): path for path in files}
    return {place: manifest.digest(path.read_bytes()) for place, path in {**own, **plugins.files()}.items()}
