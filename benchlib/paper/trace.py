"""From a number that people read back to its measurements, and their differences from this machine, code and versions.

A row of a table is known by its label, a macro by its name, a figure by its bytes or its name. Under these a folder of
results has the keys of the files that the number was made from.
"""

from __future__ import annotations

import functools
import io
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from benchlib import env_vars, latex, manifest
from benchlib.cache import Measurement, Store, load
from benchlib.condition import Condition
from benchlib.equivalence.certificate import Certificate
from benchlib.errors import BenchlibError
from benchlib.lab import Lab
from benchlib.provenance import fingerprint, installed, knobs, machine
from benchlib.runner.jobs import prepare_job
from benchlib.tables import FILES, MEASURED
from benchlib.worker import files, service

FIGURES = (".svg", ".png", ".pdf")
_INPUTS = ("data", "weights_file", "order")  # whose hashes a worker says
MATCHES = "matches"  # verdict on a file that would get the same key if it was made here and now


class Number(NamedTuple):
    """A row, a macro or a figure."""

    label: str
    says: str
    keys: tuple[str, ...] = ()  # of the files that it was made from
    other: str = ""  # the results' own number, in words


class Source(NamedTuple):
    """A file that numbers were made from."""

    key: str
    says: tuple[str, ...]  # a line for each process in it
    verdict: str  # the differences here


def trace(file: Path, name: str | None = None, outputs: Path | None = None) -> int:
    """Print the numbers of ``file`` that have ``name`` in them, and the measurements behind them in ``outputs``. Return
    1 if a measurement does not match this machine, code and versions, or a number not the results; else 0.
    """
    folder = outputs or folder_of(file)
    if folder is None:
        raise BenchlibError(f"{file}: is in no folder of results: name it with --outputs outputs/PROFILE")
    shown, others = numbers(file, folder, name)
    for number in shown:
        print(f"{number.says}\n  {' '.join(['from', *number.keys]) if number.keys else 'names no measurement'}")
    behind = sources(dict.fromkeys(key for number in shown for key in number.keys), folder)
    print(f"\n{len(shown)} numbers from {len(behind)} files in {folder}:")
    for source in behind:
        print("", f"{source.key}: {source.verdict}", *(f"  {line}" for line in source.says), sep="\n")
    match = sum(source.verdict == MATCHES for source in behind)
    print(f"\n{match} of {len(behind)} files match this machine, these versions and this code.")
    if others:
        print(f"\n{file} differs from the results:", *others, sep="\n")
    return 1 if match < len(behind) or others else 0


def folder_of(file: Path) -> Path | None:
    """The folder of results that a table or figure lies in; None for a copy elsewhere."""
    return next((parent for parent in file.resolve().parents if (parent / "measurements").is_dir()), None)


def numbers(file: Path, folder: Path, name: str | None = None) -> tuple[list[Number], list[str]]:
    """The numbers of a file that have ``name`` in them, and a sentence on each that differs from the results."""
    if not file.is_file():
        raise BenchlibError(f"{file}: there is no such file; give a table or a figure of outputs/PROFILE")
    if file.suffix not in (".csv", ".tex", *FIGURES):
        raise BenchlibError(f"{file}: cannot be traced: give a file that ends in .csv, .tex, {', '.join(FIGURES)}")
    every = _figure(file, folder) if file.suffix in FIGURES else _table(file, folder)
    if not any(number.keys for number in every):
        raise BenchlibError(f"{file}: {folder} has no measurement under the names in it")
    chosen = [number for number in every if name is None or name.lstrip("\\") in number.says]
    if not chosen:
        raise BenchlibError(f"{file}: nothing in it has {name!r}; it has, for instance: {every[0].says}")
    if folder_of(file) == folder.resolve():
        wrong = manifest.all_wrong(folder).get(file.resolve().relative_to(folder.resolve()).as_posix())
        return chosen, [f"{file} {wrong}"] if wrong else []
    return chosen, [number.other for number in chosen if number.other]


def _figure(file: Path, folder: Path) -> list[Number]:
    """A figure, with the keys of the rows that it shows: those of the table of its name."""
    content = file.read_bytes()
    same = [one for one in sorted(folder.glob(f"figures/[!.]*{file.suffix}")) if one.read_bytes() == content]
    stem = same[0].stem if same else file.stem
    rows = [row for table in sorted(folder.glob(f"*/{stem}.csv"))[:1] for row in _read_csv(table)]
    keys = tuple(dict.fromkeys(key for row in rows for key in row.keys))
    other = "" if same else f"{file.name} is none of the figures in {folder}: it is older, or was changed"
    return [Number(stem, file.name, keys, other)]


def _table(file: Path, folder: Path) -> list[Number]:
    """The rows and macros of a file."""
    read, pattern = (_read_latex, "tables/[!.]*.tex") if file.suffix == ".tex" else (_read_csv, f"*/{file.stem}.csv")
    present, every = defaultdict(list), []
    for original in [file] if folder_of(file) == folder.resolve() else sorted(folder.glob(pattern)):
        for number in read(original):
            present[number.label].append(number)
    for number in read(file):
        those = present[number.label]
        same = [one for one in those if one.says == number.says]
        keys = tuple(dict.fromkeys(key for one in same or those for key in one.keys))
        there = " | ".join(dict.fromkeys(one.says for one in those)) or "nothing has this name"
        every.append(number._replace(keys=keys, other="" if same else f"{number.says}\n  in {folder}: {there}"))
    return every


def _text(file: Path) -> str:
    utf_16 = file.read_bytes().startswith((b"\xff\xfe", b"\xfe\xff"))  # byte-order marks
    return file.read_text("utf-16" if utf_16 else "utf-8-sig", errors="replace")


def _read_csv(file: Path) -> list[Number]:
    text = _text(file)
    separator = max(",;\t", key=text.partition("\n")[0].count)  # as spreadsheets of many languages save it
    decimal = "," if re.search(r"[;\t]-?\d+,\d+[;\t\r\n]", text) else "."
    try:
        frame = pd.read_csv(io.StringIO(text), sep=separator, decimal=decimal, dtype={FILES: str, "file": str})
    except ValueError as error:
        raise BenchlibError(f"{file}: cannot be read as CSV: {error}") from None
    frame = frame.rename(columns={} if FILES in frame else {"file": FILES})  # of the table of all measurements
    chosen = [name for name in frame if name not in {*MEASURED, FILES} and not name.endswith(("_low", "_high"))]
    telling = [name for name in chosen if frame[name].nunique() > 1] or chosen[:1]
    values = [name for name in MEASURED if name in frame and pd.api.types.is_numeric_dtype(frame[name])]
    found = []
    for row in frame.to_dict("records"):
        label = ", ".join(f"{name} {row[name]}" for name in telling if pd.notna(row[name]))
        what = ", ".join(f"{name} {row[name]:.6g}" for name in values if pd.notna(row[name]))
        keys = str(row[FILES]).split() if pd.notna(row.get(FILES)) else []
        found.append(Number(label, f"{label}: {what}", tuple(keys)))
    return found


def _read_latex(file: Path) -> list[Number]:
    """Macros by their names; rows by their table's label and their cells before the first number."""
    found, table, in_body = [], "", False
    for line in _text(file).splitlines():
        text, _, keys = line.partition(latex.COMMENT)
        text = re.sub(r"(?<!\\)((?:\\\\)*)%.*", r"\1", text)  # a cleaner may leave the sign of a comment
        text = " ".join(text.split())  # columns may have been aligned
        if label := re.fullmatch(r"\\label\{tab:(.*)\}", text):
            table = label[1]
        elif macro := re.match(r"\\newcommand\{(\\benchlib\w+)\}", text):
            found.append(Number(macro[1], text, tuple(keys.split())))
        elif text in ("\\midrule", "\\bottomrule"):
            in_body = text == "\\midrule"
        elif in_body and text.endswith("\\\\"):
            label = re.split(r"&\s*[\d{\[-]", text)[0].strip()
            found.append(Number(f"{table}: {label}", f"{table}: {text}", tuple(keys.split())))
    return found


def sources(keys: Iterable[str], folder: Path) -> list[Source]:
    """The files with these keys under ``folder``, each with its differences here."""
    wrong = manifest.all_wrong(folder)
    return [_source(key, folder, wrong) for key in keys]


def _source(key: str, folder: Path, wrong: Mapping[str, str]) -> Source:
    store, path = Store(folder / "measurements"), folder / "certificates" / f"{key}.json"
    try:
        if (measured := store.load(key)) is not None:
            says = [_process(one) for one in measured]
            changes = [change for one in measured for change in _list_changes(one, folder / "inputs")]
        elif (one := load(Certificate, path)) is not None:
            trained = [f"{one.training} steps of training compared"] if one.training else []
            says = ["; ".join([f"certificate: {one.condition}: {one.verdict}", *trained, *_versions(one)])]
            here = [Lab(outputs=folder).certificate_path(one.condition, steps) for steps in {0, one.training}]
            changes = [] if path.resolve() in here else ["code, versions, machine or tolerances have changed since"]
        else:
            return Source(key, (), f"is not there: neither {store.path(key)} nor a certificate of that name")
    except BenchlibError as error:
        return Source(key, (), f"cannot be used: {error}")
    changes += [what for file, what in wrong.items() if Path(file).stem == key]
    return Source(key, tuple(says), "; ".join(dict.fromkeys(changes)) or MATCHES)


def _process(m: Measurement) -> str:
    """A process in a line."""
    used = m.machine.get({"cuda": "gpus", "npu": "npus"}.get(m.condition.device, ""), [])
    hardware = [m.machine.get("cpu", "-"), f"{m.machine.get('cores', '-')} cores", *map(str, used)]
    when = f"repetition {m.repetition}, seed {m.seed}, {len(m.blocks)} blocks, {m.started_utc}"
    failed = [f"failed: {m.failure.splitlines()[0]}"] if m.failure else []
    return "; ".join([f"{m.role} {m.condition}", when, ", ".join(hardware), *_versions(m), *failed])


def _versions(made: Measurement | Certificate) -> list[str]:
    return [", ".join(f"{name} {version}" for name, version in made.versions.items()), made.commit]


def _list_changes(m: Measurement, inputs: Path) -> list[str]:
    """The differences of a measurement from here and now; empty: it would get the same key."""
    condition, framework, environment = m.condition, m.condition.framework, m.condition.environment
    changes = [] if m.code == fingerprint.digest(condition, m.kind) else ["the code has changed since"]
    changes += _differences("another machine", m.machine, here := machine.identity(condition.device), here)
    try:
        if m.knobs:  # else its worker could not be started
            changes += _differences("other knobs", m.knobs, knobs.find(condition))
            inherited, names = env_vars.for_key(condition, os.environ), env_vars.key_names(condition)
            changes += _differences("other libraries", m.inherited, inherited, names)
        if not installed.offers(environment, framework):
            return [*changes, f"{condition.implementation} is not installed here"]
        packages = installed.packages(framework, condition.workload, environment) if m.packages else {}
        there = {**m.packages, **m.versions}
        here = {**packages, **installed.versions(framework, environment), **installed.compiler(condition)}
        names = [*(name for name in here if name in there), *m.packages, *packages]
        changes += _differences("other versions", there, here, names)
        read = {one: m.built[f"{one}_sha256"] for one in _INPUTS if f"{one}_sha256" in m.built}
        here = _hashes(condition, m.initial_seed, inputs) if read else {}
        return [*changes, *_differences("other inputs", read, here, read)]
    except (BenchlibError, OSError) as error:
        return [*changes, f"cannot be compared with this machine: {error}"]


def _differences(what: str, there: Mapping, here: Mapping, names: Iterable[str] = ()) -> list[str]:
    """A sentence on those of ``names`` (all, if empty) that are not alike there and here, if there are any."""
    others = [
        f"{name} {there.get(name, 'none')}, here {here.get(name, 'none')}"
        for name in dict.fromkeys(names or [*there, *here])
        if there.get(name) != here.get(name)
    ]
    return [f"{what}: {', '.join(others)}"] if others else []


@functools.cache
def _hashes(condition: Condition, seed: int, inputs: Path) -> dict[str, str]:
    """The hashes of the inputs that a worker would be given here, as it reports them."""
    job = prepare_job(condition, seed, inputs)
    weights = service.digest(files.arrays(job.weights))
    return {"data": files.digest(job.data), "weights_file": weights, "order": job.order()}
