"""The files that numbers were made from, and whether this machine, these versions and this code give the same key."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchlib import records, variables
from benchlib.condition import Condition
from benchlib.environments import DEFAULT
from benchlib.equivalence.certificate import Certificate
from benchlib.errors import BenchlibError
from benchlib.lab import Lab
from benchlib.provenance import fingerprint, installed, knobs, machine
from benchlib.runner.jobs import prepare_job
from benchlib.store import Measurement, Store, load
from benchlib.tables import MISSING
from benchlib.worker import files, service

MATCHES = "matches"
"""Verdict on a file that would get the same key if it was made here and now."""

PROCEDURES = {"comparison": "rounds", "training": "epochs"}
"""The module of ``benchlib.runner`` that made a kind of measurement."""


@dataclass(frozen=True)
class Source:
    """A file that numbers were made from: a line for each process in it, and what differs here."""

    key: str
    says: tuple[str, ...]
    verdict: str


def sources(keys: Iterable[str], folder: Path) -> list[Source]:
    """The files with these keys under ``folder``."""
    wrong = records.all_wrong(folder)
    return [_source(key, folder, wrong) for key in keys]


def _source(key: str, folder: Path, wrong: Mapping[str, str]) -> Source:
    store, path = Store(folder / "measurements"), folder / "certificates" / f"{key}.json"
    try:
        if (measured := store.load(key)) is not None:
            says = [_process(one) for one in measured]
            changes = [change for one in measured for change in _changed(one, folder / "inputs")]
        elif (certificate := load(Certificate, path)) is not None:
            says, changes = [_certified(certificate)], _other_certificate(certificate, path)
        else:
            return Source(key, (), f"is not there: neither {store.path(key)} nor a certificate of that name")
    except BenchlibError as error:
        return Source(key, (), f"cannot be used: {error}")
    names = (f"measurements/{key}.parquet", f"certificates/{key}.json")
    changes += [wrong[name] for name in names if name in wrong]
    return Source(key, tuple(says), "; ".join(dict.fromkeys(changes)) or MATCHES)


def _certified(one: Certificate) -> str:
    """A certificate in a line."""
    trained = f"; {one.training} steps of training compared" if one.training else ""
    return f"certificate: {one.condition}: {one.verdict}{trained}; {_listed(one.versions)}; {one.commit}"


def _process(m: Measurement) -> str:
    """A process in a line."""
    used = {"cuda": m.machine.get("gpus", []), "npu": m.machine.get("npus", [])}.get(m.condition.device, [])
    hardware = [m.machine.get("cpu", MISSING), f"{m.machine.get('cores', MISSING)} cores", *map(str, used)]
    parts = [
        f"{m.role} {m.condition}",
        f"repetition {m.repetition}, seed {m.seed}, {len(m.blocks)} blocks, {m.started_utc}",
        ", ".join(hardware),
        _listed(m.versions),
        m.commit,
    ]
    return "; ".join([*parts, *([f"failed: {m.failure.splitlines()[0]}"] if m.failure else [])])


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _other_certificate(certificate: Certificate, path: Path) -> list[str]:
    lab = Lab(outputs=path.parents[1])
    here = [lab.certificate_path(certificate.condition, steps) for steps in {0, certificate.training}]
    return [] if path.resolve() in here else ["code, versions, machine or tolerances have changed since"]


def _changed(m: Measurement, inputs: Path) -> list[str]:
    """What of a measurement is not the same here and now; empty: it would get the same key."""
    condition, framework, environment = m.condition, m.condition.framework, m.condition.environment
    changes = [] if m.code == fingerprint.digest(condition, PROCEDURES[m.kind]) else ["the code has changed since"]
    here = machine.identity(condition.device)
    changes += _differences("another machine", m.machine, here, here)
    try:
        if m.knobs:  # else its worker could not be started
            changes += _differences("other knobs", m.knobs, knobs.of(condition))
            inherited, names = variables.counting(condition, os.environ), variables.counting_names(condition)
            changes += _differences("other libraries", m.inherited, inherited, names)
        if not installed.offers(environment, framework):
            return [*changes, f"{condition.implementation} is not installed here"]
        packages = installed.packages(framework, condition.workload, environment) if m.packages else {}
        there = {**m.packages, **m.versions}
        here = {**packages, **installed.versions(framework, environment), **installed.compiler(condition)}
        names = [*(name for name in here if name in there), *m.packages, *packages]
        changes += _differences("other versions", there, here, names)
        return [*changes, *_other_inputs(m, inputs)]
    except (BenchlibError, OSError) as error:
        return [*changes, f"cannot be compared with what is here: {error}"]


def _differences(what: str, there: Mapping, here: Mapping, names: Iterable[str] = ()) -> list[str]:
    """A sentence on those of ``names`` (all, if empty) that are not alike there and here, if there are any."""
    others = [
        f"{name} {there.get(name, 'none')}, here {here.get(name, 'none')}"
        for name in dict.fromkeys(names or [*there, *here])
        if there.get(name) != here.get(name)
    ]
    return [f"{what}: {', '.join(others)}"] if others else []


def _other_inputs(m: Measurement, inputs: Path) -> list[str]:
    """Are data, their order and initial weights those that the worker read, by the hashes that it gave?"""
    read = {name: m.built[f"{name}_sha256"] for name in _INPUTS if f"{name}_sha256" in m.built}
    if not read:
        return []
    # What neither data nor weights depend on is the same, so that they are made and hashed once.
    same = {"framework": "pytorch", "mode": "eager", "precision": "fp32", "device": "cpu", "lane": "default"}
    same |= {"environment": DEFAULT, "threads": None, "without": [], "learning_rate": None, "world_size": 1}
    here = _hashes(m.condition.model_copy(update=same), m.initial_seed, inputs)
    return [f"{_INPUTS[name]} changed since" for name, digest in read.items() if here[name] != digest]


_INPUTS = {"data": "the data have", "weights_file": "the initial weights have", "order": "the order of the data has"}


@functools.cache
def _hashes(condition: Condition, seed: int, inputs: Path) -> dict[str, str]:
    """Of the inputs that a worker would be given here, as it reports them."""
    job = prepare_job(condition, seed, inputs)
    weights = service.digest(files.arrays(job.weights))
    return {"data": files.digest(job.data), "weights_file": weights, "order": job.order()}
