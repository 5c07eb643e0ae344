"""Jobs: a document (JSON) is sent, whole, to one host; a result, which names rows of the cache, comes back."""

from __future__ import annotations

import json
import os
import platform
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchlib import env_vars, manifest, plugins
from benchlib import lab as here
from benchlib.cluster import engines
from benchlib.condition import Condition
from benchlib.equivalence import gate
from benchlib.errors import BenchlibError, no_such
from benchlib.progress import say
from benchlib.provenance import fingerprint, installed, knobs, machine
from benchlib.runner import availability
from benchlib.runner.jobs import key
from benchlib.stats import planner

POLL_S = 2.0
TRIES = 3  # of a job that ends without a new row
PROCEDURES = {"compare": "rounds", "train": "epochs", "certify": "gate", "check_timers": "contract"}  # by method
DONE, FAILED, UNFIT, RUNNING = "done", "failed", "unfit", "running"

Document = dict[str, Any]


def document(do: str, conditions: Sequence[Condition], settings: Document, plan: Document | None = None) -> Document:
    """What is sent: a method of the lab and what it takes. The ``plan``, how much is measured, is not in its name."""
    made: Document = {"do": do, "conditions": [one.model_dump(mode="json") for one in conditions], "settings": settings}
    made["code"] = [fingerprint.digest(one, PROCEDURES[do]) for one in conditions]
    made["with"] = [_depends_on(one) for one in conditions]
    return {**made, "name": key(**made), "plan": plan or {}, "plugins": [str(one) for one in plugins.folders()]}


def _depends_on(one: Condition) -> list[Any]:
    """What a driver knows that numbers depend on: with another package or knob, or another gate, it is another job."""
    its, where = one.framework, one.environment
    why = availability.why_absent(its, "cpu", where)
    found = why or [installed.versions(its, where), installed.packages(its, one.workload, where)]
    gates = [fingerprint.digest(own, "gate") for own in gate.compared(gate.adapt(one))]
    return [gates, knobs.find(one), env_vars.identity(one), found]


def result(folder: Path, name: str) -> Document:
    """What has come back so far of a job."""
    with suppress(FileNotFoundError, ValueError):  # a damaged one: the job is sent again, and its rows are in the cache
        return json.loads((folder / "jobs" / f"{name}.result.json").read_text(encoding="utf-8"))
    return {}


def is_done(found: Document, sent: Document, folder: Path) -> bool:
    """Has a job measured what its document asks for, and is all of it there?"""
    before, now, ended = found.get("plan", {}), sent["plan"], found.get("ended") in (planner.PRECISION, planner.FAILED)
    enough = all(before.get(name, 0) >= now.get(name, 0) for name in ("pilot", *(() if ended else ("budget_s",))))
    enough = enough and before.get("precision", 0) <= now.get("precision", 0)
    there = all((folder / "measurements" / f"{file}.parquet").is_file() for file in found.get("files", ()))
    return found.get("state") == DONE and enough and there


def work(path: Path, make: Callable[..., here.Lab]) -> int:
    """Measure what a document asks for, on this host, and write the result; 0 if all went well."""
    folder, sent = path.resolve().parents[1], json.loads(path.read_text(encoding="utf-8"))
    own: Document = {"kept": 0, **result(folder, sent["name"]), "plan": sent["plan"], "why": ""}  # what was known stays
    own |= {"node": os.environ.get(engines.NODE) or platform.node(), "host": machine.describe()["host"]}

    def tell(state: str, **more: Any) -> int:
        own.update(state=state, **more)
        manifest.write(folder / "jobs" / f"{sent['name']}.result.json", own)
        return 0 if state == DONE else 1

    tell(RUNNING)
    try:
        plugins.use(sent["plugins"])
        conditions = [Condition(**one) for one in sent["conditions"]]
        availability.require(conditions)
        if sent["code"] != [fingerprint.digest(one, PROCEDURES[sent["do"]]) for one in conditions]:
            raise BenchlibError("the code that measures is another than the driver's: bring both to one commit")
    except BenchlibError as error:
        return tell(UNFIT, why=f"{own['host']}: {error}")
    try:
        lab = make(outputs=folder, after_keeping=lambda: tell(RUNNING, kept=own["kept"] + 1))
        made = getattr(lab, sent["do"])(conditions, **sent["settings"], **sent["plan"])
        if isinstance(made, list):
            proofs, runs, own["timers"] = {}, made, [one.model_dump(mode="json") for one in made]
        else:
            proofs, runs = (made, []) if isinstance(made, dict) else (made.certificates, made.measurements)
            own |= {"files": sorted({m.file for m in runs}), "ended": getattr(made, "ended", None)}
        own["certificates"] = {name: json.loads(one.model_dump_json()) for name, one in proofs.items()}
        return tell(DONE, crashed=any(one.crashed for one in (*proofs.values(), *runs)))
    except Exception as error:
        return tell(FAILED, why=f"{own['host']}: {type(error).__name__}: {error}")


class Executor:
    """Has an engine measure documents; what is done, or on its way, is not sent again."""

    def __init__(self, on: str, folder: Path) -> None:
        name, *options = shlex.split(on)
        if name not in engines.ENGINES:
            raise BenchlibError(f"--on, BENCHLIB_ON: {no_such('engine', name, engines.ENGINES)}")
        self.engine, self.folder = engines.ENGINES[name](folder, options), folder
        self.tried: dict[str, list[int]] = {}  # rows of each job's result, whenever it was sent
        self.prefix = f"benchlib-{os.environ.get('USER', os.getuid())}-{key(folder=str(folder))[:8]}-"

    def run(self, documents: Sequence[Document]) -> None:
        """Wait until each is measured, or has failed for a reason that is said; one that fails stops no other."""
        waiting = {one["name"]: (one, list[str]()) for one in documents}  # and the nodes that cannot
        while waiting:
            states = self.engine.states()  # before the results: a job writes its own before it ends
            for name, each in list(waiting.items()):
                try:
                    if self._look(states.get(self.prefix + name), *each):
                        del waiting[name]
                except BenchlibError as error:
                    del waiting[name]
                    say(f"{each[0]['do']} {each[0]['conditions'][0]['workload']}, job {name}: {error}")
            time.sleep(POLL_S if states and waiting else 0)  # local jobs end as they are submitted

    def _look(self, state: str | None, sent: Document, without: list[str]) -> bool:
        """Is a job done? One that is neither that nor on its way is sent; a BenchlibError where it has failed."""
        found, tried = result(self.folder, sent["name"]), self.tried.setdefault(sent["name"], [])
        if state == "there":
            return False
        if is_done(found, sent, self.folder) and (tried or not found.get("crashed")):
            return True
        if state:
            self.engine.cancel(self.prefix + sent["name"])
        if tried and found.get("state") == FAILED:
            raise BenchlibError(found["why"])
        if tried and found.get("state") == UNFIT and found["node"] not in without:
            without.append(found["node"])
            say(found["why"])
        elif tried.count(rows := found.get("kept", 0)) >= TRIES:
            raise BenchlibError(f"it ended {TRIES} times without a new row: see jobs/{sent['name']}.log")
        else:
            tried.append(rows)
        begun = found["node"] if found.get("kept") and not state and found["node"] not in without else ""
        path = self.folder / "jobs" / f"{sent['name']}.json"
        manifest.write(path, sent)
        gpus = max(one["world_size"] * (one["device"] == "cuda") for one in sent["conditions"])
        command = [sys.executable, "-m", "benchlib", "job", str(path)]
        self.engine.submit(self.prefix + sent["name"], command, path.with_suffix(".log"), gpus, begun, without)
        return False
