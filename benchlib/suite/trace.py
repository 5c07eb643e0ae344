"""From a number that people read back to the measurements that it was made from.

A table's rows and a macro carry the keys of their files (``tables.FILES``, ``latex.COMMENT``), a figure has them in
its metadata. Here they are read, in the file or in a copy of it, and looked up in a folder of results: which processes,
of what, on what, when; and whether this machine, these versions and this code would still give the same key. What was
changed by hand, and a copy that is older than the results, is said.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import pandas as pd

from benchlib import knobs, variables
from benchlib.analysis.equivalence import Certificate, unsealed
from benchlib.condition import Condition
from benchlib.environments import DEFAULT
from benchlib.errors import BenchlibError
from benchlib.lab import Lab
from benchlib.measure import machine
from benchlib.measure.jobs import prepare_job
from benchlib.store import Measurement, Store
from benchlib.suite import experiments, latex, records
from benchlib.suite.latex import COMMENT
from benchlib.suite.tables import FILES, MEASURED, MISSING
from benchlib.worker import files, service

MATCHES = "matches"
"""Verdict on a measurement that would get the same key if it was made here and now."""

PROCEDURES = {"comparison": "rounds", "training": "epochs"}
"""The module of ``benchlib.measure`` that made a kind of measurement."""


@dataclass(frozen=True)
class Number:
    """A row of a table, a macro or a figure: what it says, the keys of the files that it was made from (none, if it was
    not made from measurements), and what it is called, in a copy as in the original.
    """

    says: str
    keys: tuple[str, ...]
    name: str


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
    if not any(number.keys for number in found):
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
    wrong = records.all_wrong(folder, experiments.NOTEBOOKS)
    return [_source(key, folder, wrong) for key in keys]


def differences(file: Path, found: Iterable[Number], folder: Path) -> list[str]:
    """What of the numbers ``found`` in ``file`` is not what the results in ``folder`` say, a sentence each: the file
    was changed by hand, or is a copy of older results.
    """
    if folder_of(file) == folder.resolve():
        wrong = records.all_wrong(folder, experiments.NOTEBOOKS)
        paths = dict.fromkeys((file.resolve(), file.resolve().with_suffix(".csv") if file.suffix == ".md" else file))
        names = [path.resolve().relative_to(folder.resolve()).as_posix() for path in paths]
        return [f"{folder / name} {wrong[name]}" for name in names if name in wrong]
    if file.suffix in (".svg", ".png", ".pdf"):
        original = folder / "figures" / file.name
        same = original.is_file() and original.read_bytes() == file.read_bytes()
        return [] if same else [f"{file}: is not {original}, or that is not there"]
    originals = sorted((folder / "tables").glob("*.tex" if file.suffix == ".tex" else f"{file.stem}.csv"))
    read = _of_latex if file.suffix == ".tex" else _of_csv
    present: dict[str, list[Number]] = {}
    for original in originals:
        for number in read(original):
            present.setdefault(number.name, []).append(number)
    told = []
    for number in found:
        now = present.get(number.name, [])
        if number in now:
            continue
        if not now:
            told.append(f"{number.says}\n  is in no table of {folder}")
        elif any(number.says == one.says for one in now):
            told.append(f"{number.says}\n  is made from other measurements in {folder}")
        else:
            told.append(f"{number.says}\n  in {folder}: {' | '.join(one.says for one in now)}")
    return told


def stale(keys: Iterable[str], folder: Path) -> list[str]:
    """What the notebooks whose results name these files were executed with that has changed since: a sentence each."""
    lock, told = machine.PACKAGE.parent / "requirements.lock", []
    names = set(keys)
    for path in sorted((folder / "notebooks").glob("[!.]*.json")):
        record = records.read(folder, path.stem) or {}
        made_with = record.get("inputs", {}).get("requirements.lock")
        named = {Path(file).stem for file in record.get("files", ())}
        if named & names and made_with and lock.exists() and made_with != records.digest(lock.read_bytes()):
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
    for _, row in frame.iterrows():
        who = ", ".join(f"{name} {row[name]}" for name in telling if pd.notna(row[name]))
        what = ", ".join(f"{name} {row[name]:.6g}" for name in values if pd.notna(row[name]))
        keys = str(row[FILES]).split() if pd.notna(row[FILES]) else []
        found.append(Number(f"{who}: {what}" if what else who, tuple(keys), who))
    return found


def _of_markdown(file: Path) -> list[Number]:
    beside = file.with_suffix(".csv")
    if not beside.is_file():
        raise BenchlibError(f"{file}: a Markdown table is traced by {beside.name} beside it, which is not there")
    return _of_csv(beside)


def _of_latex(file: Path) -> list[Number]:
    """Macros as they stand there; rows with the name of their table, and their cells as they read on paper."""
    found, table, heads, before, in_body = [], "", [], "", False
    for line in file.read_text(encoding="utf-8").splitlines():
        said, _, keys = line.partition(COMMENT)
        if label := re.fullmatch(r"\\label\{tab:(.*)\}", said.strip()):
            table = label[1].replace("-", " ")
        elif macro := re.match(r"\\newcommand\{(\\benchlib\w+)\}", said):
            found.append(Number(said.strip(), tuple(keys.split()), macro[1]))
        elif said.strip() in ("\\midrule", "\\bottomrule"):
            in_body, heads = said.strip() == "\\midrule", latex.heads(before)
        elif in_body and said.rstrip().endswith("\\\\"):
            cells = latex.cells(said)
            name = ", ".join(takewhile(lambda cell: not re.match(r"-?[\d.,]+$|\[|–$", cell), cells))
            told = [f"{head} {cell}" if head else cell for head, cell in zip(heads, cells, strict=False) if cell]
            says = ", ".join(told).replace(", [", " [")
            found.append(Number(f"{table}: {says}", tuple(keys.split()), f"{table}: {name}"))
        before = said
    return found


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
    return [Number(file.name, tuple(key.decode() for key in keys), file.name)] if keys else []


def _source(key: str, folder: Path, wrong: dict[str, str]) -> Source:
    store = Store(folder / "measurements")
    try:
        measured = store.load(key)
    except BenchlibError as error:
        return Source(key, (), f"cannot be used: {error}")
    if measured is not None:
        reasons = dict.fromkeys(reason for m in measured for reason in _changed(m, folder / "inputs"))
        if said := wrong.get(f"measurements/{key}.parquet"):
            reasons[said] = None
        return Source(key, tuple(_told(m) for m in measured), "; ".join(reasons) or MATCHES)
    path = folder / "certificates" / f"{key}.json"
    if path.is_file():
        try:
            certificate = unsealed(path.read_text(encoding="utf-8"), path)
        except BenchlibError as error:
            return Source(key, (), f"cannot be used: {error}")
        reasons = dict.fromkeys(
            [_certificate_verdict(certificate, path), *filter(None, [wrong.get(f"certificates/{key}.json")])]
        )
        said = [one for one in reasons if one != MATCHES]
        return Source(key, (_certified(certificate),), "; ".join(said) or MATCHES)
    return Source(key, (), f"is not there: neither {store.path(key)} nor a certificate of that name")


def _certified(certificate: Certificate) -> str:
    """A certificate in a line."""
    forgiven = sum(len(check.forgiven) for check in certificate.checks)
    told = f"; {forgiven} differences are explained by rounding" if forgiven else ""
    unmet = f"; not exercised: {', '.join(certificate.unexercised)}" if certificate.unexercised else ""
    return f"certificate: {certificate.condition}: {certificate.verdict}{told}{unmet}"


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


def _changed(m: Measurement, inputs: Path) -> list[str]:
    """Why a measurement would get another key here and now; empty: it would get the same."""
    changed = [*_other_knobs(m), *_other_libraries(m), *_other_inputs(m, inputs)]
    if m.code != machine.code(m.condition, PROCEDURES[m.kind]):
        changed.append("the code has changed since")
    changed += _other_versions(m)
    here = machine.identity(m.condition.device)
    others = [
        f"{name} {m.machine.get(name)}, here {value}" for name, value in here.items() if m.machine.get(name) != value
    ]
    return changed + ([f"another machine: {', '.join(others)}"] if others else [])


def _other_versions(m: Measurement) -> list[str]:
    framework, environment = m.condition.framework, m.condition.environment
    try:
        if not machine.offers(environment, framework):
            return [f"{m.condition.implementation} is not installed here"]
    except BenchlibError as error:
        return [str(error)]
    packages = machine.packages(framework, m.condition.workload, environment) if m.packages else {}
    there = {**m.packages, **m.versions}
    here = {**packages, **machine.versions(framework, environment), **machine.compiler(m.condition)}
    differences = [
        f"{name} {there.get(name, 'not there')}, here {here.get(name, 'not there')}"
        for name in dict.fromkeys([*(name for name in here if name in there), *m.packages, *packages])
        if there.get(name) != here.get(name)
    ]
    return [f"other versions: {', '.join(differences)}"] if differences else []


def _other_knobs(m: Measurement) -> list[str]:
    if not m.knobs:
        return []  # its worker could not be started
    try:
        here = knobs.of(m.condition)
    except BenchlibError as error:
        return [f"other knobs: {error}"]
    told = [
        f"{name} {m.knobs.get(name, 'not set')}, here {here.get(name, 'not set')}"
        for name in dict.fromkeys([*m.knobs, *here])
        if m.knobs.get(name) != here.get(name)
    ]
    return [f"other knobs: {', '.join(told)}"] if told else []


def _other_libraries(m: Measurement) -> list[str]:
    there, here = m.inherited, variables.counting(m.condition, os.environ)
    differences = [
        f"{name} {there.get(name, 'not set')}, here {here.get(name, 'not set')}"
        for name in variables.counting_names(m.condition)
        if there.get(name) != here.get(name)
    ]
    return [f"other libraries: {', '.join(differences)}"] if differences and m.knobs else []


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
    made = {name: m.built[name] for name in _INPUTS if name in m.built}
    if not made:
        return []
    # What neither data nor weights depend on is left out, so that they are made and hashed once.
    same = {"framework": "pytorch", "mode": "eager", "precision": "fp32", "device": "cpu", "lane": "default"}
    same |= {"environment": DEFAULT, "threads": None, "without": [], "learning_rate": None, "world_size": 1}
    try:
        here = _hashes(m.condition.model_copy(update=same), m.initial_seed, inputs)
    except (BenchlibError, OSError) as error:
        return [f"its data or weights cannot be made here: {error}"]
    return [_INPUTS[name] for name, digest in made.items() if here[name] != digest]


@functools.cache
def _hashes(condition: Condition, seed: int, inputs: Path) -> dict[str, str]:
    """Of the data, their order and the initial weights that a worker would be given here, as it reports them."""
    job = prepare_job(condition, seed, inputs)
    return {
        "data_sha256": files.digest(job.data),
        "weights_file_sha256": service.digest(files.arrays(job.weights)),
        "order_sha256": job.order(),
    }
