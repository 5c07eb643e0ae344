"""The files that numbers were made from: what was measured in each, and whether this machine, these versions and this
code would still give the same key.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchlib import knobs, store, variables
from benchlib.analysis.certificates import Certificate
from benchlib.condition import Condition
from benchlib.environments import DEFAULT
from benchlib.errors import BenchlibError
from benchlib.lab import Lab
from benchlib.measure import installed, machine, own_code
from benchlib.measure.jobs import prepare_job
from benchlib.store import Measurement, Store
from benchlib.suite import experiments, records
from benchlib.suite.tables import MISSING
from benchlib.worker import files, service

MATCHES = "matches"
"""Verdict on a measurement that would get the same key if it was made here and now."""

PROCEDURES = {"comparison": "rounds", "training": "epochs"}
"""The module of ``benchlib.measure`` that made a kind of measurement."""


@dataclass(frozen=True)
class Source:
    """A file that numbers were made from: what is in it, and whether it still is what would be made here."""

    key: str
    says: tuple[str, ...]  # a line for each process in it
    verdict: str


def sources(keys: Iterable[str], folder: Path) -> list[Source]:
    """What is in the files with these keys under ``folder``, and whether it matches what is here now."""
    wrong = records.all_wrong(folder, experiments.NOTEBOOKS)
    return [
        _source(key, folder, wrong.get(f"measurements/{key}.parquet") or wrong.get(f"certificates/{key}.json"))
        for key in keys
    ]


def stale(keys: Iterable[str], folder: Path) -> list[str]:
    """What the notebooks whose results name these files were executed with that has changed since: a sentence each."""
    lock, sentences, keys = own_code.PACKAGE.parent / "requirements.lock", [], set(keys)
    for path in sorted((folder / "notebooks").glob("[!.]*.json")):
        record = records.read(folder, path.stem) or {}
        made_with = record.get("inputs", {}).get("requirements.lock")
        named = {Path(file).stem for file in record.get("files", ())}
        if named & keys and made_with and lock.exists() and made_with != records.digest(lock.read_bytes()):
            sentences.append(f"{path.stem}: requirements.lock has changed since this notebook was executed")
    return sentences


def _source(key: str, folder: Path, wrong: str | None) -> Source:
    cache = Store(folder / "measurements")
    try:
        measured = cache.load(key)
    except BenchlibError as error:
        return Source(key, (), f"cannot be used: {error}")
    if measured is not None:
        reasons = [reason for m in measured for reason in _changed(m, folder / "inputs")] + ([wrong] if wrong else [])
        return Source(key, tuple(_process(m) for m in measured), "; ".join(dict.fromkeys(reasons)) or MATCHES)
    path = folder / "certificates" / f"{key}.json"
    try:
        certificate = store.load(Certificate, path)
    except BenchlibError as error:
        return Source(key, (), f"cannot be used: {error}")
    if certificate is None:
        return Source(key, (), f"is not there: neither {cache.path(key)} nor a certificate of that name")
    reasons = [_certificate_verdict(certificate, path), *([wrong] if wrong else [])]
    changes = [one for one in dict.fromkeys(reasons) if one != MATCHES]
    return Source(key, (_certified(certificate),), "; ".join(changes) or MATCHES)


def _certified(certificate: Certificate) -> str:
    """A certificate in a line."""
    forgiven = sum(len(check.forgiven) for check in certificate.checks)
    explained = f"; {forgiven} differences are explained by rounding" if forgiven else ""
    unmet = f"; not exercised: {', '.join(certificate.unexercised)}" if certificate.unexercised else ""
    trained = f"; {certificate.training} steps of training compared" if certificate.training else ""
    packages = ", ".join(f"{name} {version}" for name, version in certificate.versions.items())
    return (
        f"certificate: {certificate.condition}: {certificate.verdict}{explained}{unmet}{trained}; {packages}; "
        f"{certificate.commit}"
    )


def _certificate_verdict(certificate: Certificate, path: Path) -> str:
    """Would it lie under the same key if it was made here and now?"""
    try:
        lab, steps = Lab(outputs=path.parents[1]), {0, certificate.training}
        here = [lab.certificate_path(certificate.condition, one) for one in steps]
    except BenchlibError as error:
        return f"cannot be compared with what is here: {error}"
    return MATCHES if path.resolve() in here else "code, versions, machine or tolerances have changed since"


def _process(m: Measurement) -> str:
    """A process in a line."""
    packages = ", ".join(f"{name} {version}" for name, version in m.versions.items())
    failed = f"; failed: {m.failure.splitlines()[0]}" if m.failure else ""
    used = {"cuda": m.machine.get("gpus", []), "npu": m.machine.get("npus", [])}.get(m.condition.device, [])
    accelerators = "".join(f", {one}" for one in used)
    return (
        f"{m.role} {m.condition}; repetition {m.repetition}, seed {m.seed}, {len(m.blocks)} blocks, {m.started_utc}; "
        f"{m.machine.get('cpu', MISSING)}, {m.machine.get('cores', MISSING)} cores{accelerators}; {packages}; "
        f"{m.commit}{failed}"
    )


def _changed(m: Measurement, inputs: Path) -> list[str]:
    """Why a measurement would get another key here and now; empty: it would get the same."""
    same_code = m.code == own_code.digest(m.condition, PROCEDURES[m.kind])
    here = machine.identity(m.condition.device)
    return [
        *_other_knobs(m),
        *_other_libraries(m),
        *_other_inputs(m, inputs),
        *([] if same_code else ["the code has changed since"]),
        *_other_versions(m),
        *_differences("another machine", m.machine, here, here),
    ]


def _differences(what: str, there: Mapping, here: Mapping, names: Iterable[str], missing: object = None) -> list[str]:
    """A sentence on those of ``names`` that are not alike there and here, if there are any."""
    others = [
        f"{name} {there.get(name, missing)}, here {here.get(name, missing)}"
        for name in dict.fromkeys(names)
        if there.get(name) != here.get(name)
    ]
    return [f"{what}: {', '.join(others)}"] if others else []


def _other_versions(m: Measurement) -> list[str]:
    framework, environment = m.condition.framework, m.condition.environment
    try:
        if not installed.offers(environment, framework):
            return [f"{m.condition.implementation} is not installed here"]
    except BenchlibError as error:
        return [str(error)]
    packages = installed.packages(framework, m.condition.workload, environment) if m.packages else {}
    there = {**m.packages, **m.versions}
    here = {**packages, **installed.versions(framework, environment), **installed.compiler(m.condition)}
    names = [*(name for name in here if name in there), *m.packages, *packages]
    return _differences("other versions", there, here, names, "not there")


def _other_knobs(m: Measurement) -> list[str]:
    if not m.knobs:
        return []  # its worker could not be started
    try:
        here = knobs.of(m.condition)
    except BenchlibError as error:
        return [f"other knobs: {error}"]
    return _differences("other knobs", m.knobs, here, [*m.knobs, *here], "not set")


def _other_libraries(m: Measurement) -> list[str]:
    if not m.knobs:
        return []  # as above
    here, names = variables.counting(m.condition, os.environ), variables.counting_names(m.condition)
    return _differences("other libraries", m.inherited, here, names, "not set")


_INPUTS = {
    "data_sha256": "the data are others",
    "weights_file_sha256": "the initial weights are others",
    "order_sha256": "the order of the data is another",
}
"""What is said where the hash that a worker gave is not that of what is made here."""


def _other_inputs(m: Measurement, inputs: Path) -> list[str]:
    """Are the data, their order and the initial weights those that the worker read? What never came to read them has
    none.
    """
    read = {name: m.built[name] for name in _INPUTS if name in m.built}
    if not read:
        return []
    # What neither data nor weights depend on is left out, so that they are made and hashed once.
    same = {"framework": "pytorch", "mode": "eager", "precision": "fp32", "device": "cpu", "lane": "default"}
    same |= {"environment": DEFAULT, "threads": None, "without": [], "learning_rate": None, "world_size": 1}
    try:
        here = _hashes(m.condition.model_copy(update=same), m.initial_seed, inputs)
    except (BenchlibError, OSError) as error:
        return [f"its data or weights cannot be made here: {error}"]
    return [_INPUTS[name] for name, digest in read.items() if here[name] != digest]


@functools.cache
def _hashes(condition: Condition, seed: int, inputs: Path) -> dict[str, str]:
    """Of the data, their order and the initial weights that a worker would be given here, as it reports them."""
    job = prepare_job(condition, seed, inputs)
    return {
        "data_sha256": files.digest(job.data),
        "weights_file_sha256": service.digest(files.arrays(job.weights)),
        "order_sha256": job.order(),
    }
