"""From a number that people read back to the measurements that it was made from.

A table's rows and a macro carry the keys of their files (:data:`benchlib.tables.FILES`,
:data:`benchlib.latex.COMMENT`), a figure has them in its metadata. Here they are read, in the file or in a copy of it,
and looked up in a folder of results: which processes, of what, on what, when; and whether this machine, these versions
and this code would still give the same key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from benchlib import suite
from benchlib.equivalence import Certificate
from benchlib.errors import BenchlibError
from benchlib.lab import Lab
from benchlib.latex import COMMENT
from benchlib.measure import machine
from benchlib.results import Measurement, Store
from benchlib.tables import FILES, MEASURED, MISSING

MATCHES = "matches"
"""Verdict on a measurement that would get the same key if it was made here and now."""

PROCEDURES = {"comparison": "rounds", "training": "epochs"}
"""The module of ``benchlib.measure`` that made a kind of measurement."""


@dataclass(frozen=True)
class Number:
    """A row of a table, a macro or a figure: what it says, and the keys of the files that it was made from."""

    says: str
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Source:
    """A file that numbers were made from: what is in it, and whether it still is what would be made here."""

    key: str
    says: tuple[str, ...]  # a line for each process in it
    verdict: str


def numbers(file: Path, name: str | None = None) -> list[Number]:
    """The numbers of a table (CSV, Markdown, LaTeX), a file of macros or a figure; of those only what has ``name`` in
    it, such as a macro's name or a word of a row. A BenchlibError where there is nothing to trace.
    """
    if not file.is_file():
        raise BenchlibError(f"{file}: there is no such file; give a table or a figure of outputs/PROFILE")
    readers = {".csv": _of_csv, ".md": _of_markdown, ".tex": _of_latex}
    readers |= dict.fromkeys((".svg", ".png", ".pdf"), _of_figure)
    if file.suffix not in readers:
        raise BenchlibError(f"{file}: cannot be traced: give a file that ends in {', '.join(readers)}")
    found = readers[file.suffix](file)
    if not found:
        raise BenchlibError(
            f"{file}: names no measurement: it was not made by benchlib, or shows nothing that was measured"
        )
    chosen = [number for number in found if name is None or name.lstrip("\\") in number.says]
    if not chosen:
        raise BenchlibError(f"{file}: nothing in it has {name!r}; it has, for instance: {found[0].says}")
    return chosen


def folder_of(file: Path) -> Path | None:
    """The folder of results that a table or figure lies in; None for a copy elsewhere."""
    return next((parent for parent in file.resolve().parents if (parent / "measurements").is_dir()), None)


def sources(keys: Iterable[str], folder: Path) -> list[Source]:
    """What is in the files with these keys under ``folder``, and whether it matches what is here now."""
    return [_source(key, folder) for key in keys]


def stale(keys: Iterable[str], folder: Path) -> list[str]:
    """What the notebooks whose results name these files were executed with that has changed since: a sentence each."""
    lock, told = machine.PACKAGE.parent / "requirements.lock", []
    names = set(keys)
    for path in sorted((folder / "notebooks").glob("[!.]*.json")):
        record = suite.read_record(folder, path.stem) or {}
        made_with = record.get("inputs", {}).get("requirements.lock")
        named = {Path(file).stem for file in record.get("files", ())}
        if named & names and made_with and lock.exists() and made_with != suite.digest(lock.read_bytes()):
            told.append(f"{path.stem}: requirements.lock has changed since this notebook was executed")
    return told


def _of_csv(file: Path) -> list[Number]:
    frame = pd.read_csv(file)
    if FILES not in frame and "file" in frame:  # the table of all measurements
        frame = frame.rename(columns={"file": FILES})
    if FILES not in frame:
        return []
    chosen = [name for name in frame if name not in {*MEASURED, FILES} and not name.endswith(("_low", "_high"))]
    telling = [name for name in chosen if frame[name].nunique() > 1] or chosen[:1]
    values = [name for name in MEASURED if name in frame and pd.api.types.is_numeric_dtype(frame[name])]
    found = []
    for _, row in frame[frame[FILES].notna()].iterrows():
        who = ", ".join(f"{name} {row[name]}" for name in telling if pd.notna(row[name]))
        what = ", ".join(f"{name} {row[name]:.6g}" for name in values if pd.notna(row[name]))
        found.append(Number(f"{who}: {what}" if what else who, tuple(str(row[FILES]).split())))
    return found


def _of_markdown(file: Path) -> list[Number]:
    beside = file.with_suffix(".csv")
    if not beside.is_file():
        raise BenchlibError(f"{file}: a Markdown table is traced by {beside.name} beside it, which is not there")
    return _of_csv(beside)


def _of_latex(file: Path) -> list[Number]:
    lines = [line.partition(COMMENT) for line in file.read_text(encoding="utf-8").splitlines()]
    return [Number(said.strip(" \\"), tuple(keys.split())) for said, comment, keys in lines if comment]


def _of_figure(file: Path) -> list[Number]:
    """By the metadata that ``figures.save`` wrote."""
    content = file.read_bytes()
    if file.suffix == ".svg":
        block = re.search(rb"<dc:subject>(.*?)</dc:subject>", content, re.DOTALL)
        keys = re.findall(rb"<rdf:li>(.*?)</rdf:li>", block[1]) if block else []
    elif file.suffix == ".pdf":
        found = re.search(rb"/Keywords \(([^)]*)\)", content)
        keys = found[1].split() if found else []
    else:
        head = b"tEXtKeywords\0"
        at = content.find(head)
        end = at + 4 + int.from_bytes(content[at - 4 : at], "big")  # a chunk's length stands before its name
        keys = content[at + len(head) : end].split() if at >= 0 else []
    return [Number(file.name, tuple(key.decode() for key in keys))] if keys else []


def _source(key: str, folder: Path) -> Source:
    store = Store(folder / "measurements")
    try:
        measured = store.load(key)
    except BenchlibError as error:
        return Source(key, (), f"cannot be used: {error}")
    if measured is not None:
        reasons = dict.fromkeys(reason for m in measured for reason in _changed(m))
        return Source(key, tuple(_told(m) for m in measured), "; ".join(reasons) or MATCHES)
    path = folder / "certificates" / f"{key}.json"
    if path.is_file():
        try:
            found = Certificate.model_validate_json(path.read_text(encoding="utf-8"))
        except ValueError:
            return Source(key, (), f"cannot be used: {path} was cut or changed; delete it and run again")
        return Source(key, (f"certificate: {found.condition}: {found.verdict}",), _certificate_verdict(found, path))
    return Source(key, (), f"is not there: neither {store.path(key)} nor a certificate of that name")


def _certificate_verdict(certificate: Certificate, path: Path) -> str:
    """Would it lie under the same key if it was made here and now?"""
    try:
        here = Lab(outputs=path.parents[1]).certificate_path(certificate.condition)
    except BenchlibError as error:
        return f"cannot be compared with what is here: {error}"
    return MATCHES if here == path.resolve() else "code, versions, machine or tolerances have changed since"


def _told(m: Measurement) -> str:
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


def _changed(m: Measurement) -> list[str]:
    """Why a measurement would get another key here and now; empty: it would get the same."""
    changed = []
    if m.code != machine.code(m.condition, PROCEDURES[m.kind]):
        changed.append("the code has changed since")
    installed = machine.versions(m.condition.framework) if machine.interpreter(m.condition.framework) else {}
    if installed and m.versions:
        others = [
            f"{name} {m.versions[name]}, here {version}"
            for name, version in installed.items()
            if name in m.versions and m.versions[name] != version
        ]
        changed += [f"other versions: {', '.join(others)}"] if others else []
    elif not installed:
        changed.append(f"{m.condition.framework} is not installed here")
    here = machine.identity(m.condition.device)
    others = [
        f"{name} {m.machine.get(name)}, here {value}" for name, value in here.items() if m.machine.get(name) != value
    ]
    return changed + ([f"another machine: {', '.join(others)}"] if others else [])
