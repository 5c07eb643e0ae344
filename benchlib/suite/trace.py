"""From a number that people read back to the measurements that it was made from.

A row of a table is known by its label, a macro by its name, a figure by its bytes or its name. Under these, a folder of
results has the keys of the files: which processes, of what, on what, when; and whether this machine, these versions and
this code would still give the same key. What is not what the results say is named.
"""

from __future__ import annotations

import io
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from benchlib import latex, records
from benchlib.errors import BenchlibError
from benchlib.suite.sources import MATCHES, sources
from benchlib.tables import FILES, MEASURED

FIGURES = (".svg", ".png", ".pdf")


@dataclass(frozen=True)
class Number:
    """A row, a macro or a figure: its label, what it says, and the keys of the files that it was made from."""

    label: str
    says: str
    keys: tuple[str, ...] = ()


def trace(file: Path, name: str | None = None, outputs: Path | None = None) -> int:
    """Print the numbers of ``file`` that have ``name`` in them, and the files behind them in the results ``outputs``.

    The results are those that it lies in if None. 1 if one of the files is not what would be made here now, or a number
    is not what the results say, else 0.
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
        print(f"\n{file} is not what the results say:", *others, sep="\n")
    return 1 if match < len(behind) or others else 0


def folder_of(file: Path) -> Path | None:
    """The folder of results that a table or figure lies in; None for a copy elsewhere."""
    return next((parent for parent in file.resolve().parents if (parent / "measurements").is_dir()), None)


def numbers(file: Path, folder: Path, name: str | None = None) -> tuple[list[Number], list[str]]:
    """The numbers of a file that have ``name`` in them, with the keys that the results have of their labels, and a
    sentence on each that is not what the results say. A BenchlibError where there is nothing to trace.
    """
    if not file.is_file():
        raise BenchlibError(f"{file}: there is no such file; give a table or a figure of outputs/PROFILE")
    if file.suffix not in (".csv", ".tex", *FIGURES):
        raise BenchlibError(f"{file}: cannot be traced: give a file that ends in .csv, .tex, {', '.join(FIGURES)}")
    every, others = _figure(file, folder) if file.suffix in FIGURES else _table(file, folder)
    if not any(number.keys for number in every):
        raise BenchlibError(f"{file}: {folder} has no measurement under the names in it")
    chosen = [number for number in every if name is None or name.lstrip("\\") in number.says]
    if not chosen:
        raise BenchlibError(f"{file}: nothing in it has {name!r}; it has, for instance: {every[0].says}")
    if folder_of(file) == folder.resolve():
        path = file.resolve().relative_to(folder.resolve()).as_posix()
        wrong = records.all_wrong(folder)
        return chosen, [f"{file} {wrong[path]}"] if path in wrong else []
    return chosen, [others[number.says] for number in chosen if number.says in others]


def _figure(file: Path, folder: Path) -> tuple[list[Number], dict[str, str]]:
    """A figure, with the keys of the rows that it shows: those of the table of its name."""
    content = file.read_bytes()
    same = [one for one in sorted(folder.glob(f"figures/[!.]*{file.suffix}")) if one.read_bytes() == content]
    stem = same[0].stem if same else file.stem
    rows = [row for table in sorted(folder.glob(f"*/{stem}.csv"))[:1] for row in _of_csv(table)]
    keys = tuple(dict.fromkeys(key for row in rows for key in row.keys))
    other = f"{file.name} is none of the figures in {folder}: it is older, or was changed"
    return [Number(stem, file.name, keys)], {} if same else {file.name: other}


def _table(file: Path, folder: Path) -> tuple[list[Number], dict[str, str]]:
    """The rows and macros of a file, and by what they say what the results have instead."""
    read, pattern = (_of_latex, "tables/[!.]*.tex") if file.suffix == ".tex" else (_of_csv, f"*/{file.stem}.csv")
    present, every, others = defaultdict(list), [], {}
    for original in [file] if folder_of(file) == folder.resolve() else sorted(folder.glob(pattern)):
        for number in read(original):
            present[number.label].append(number)
    for number in read(file):
        those = present[number.label]
        same = [one for one in those if one.says == number.says]
        every.append(replace(number, keys=tuple(dict.fromkeys(key for one in same or those for key in one.keys))))
        if not same:
            there = " | ".join(dict.fromkeys(one.says for one in those)) or "nothing has this name"
            others[number.says] = f"{number.says}\n  in {folder}: {there}"
    return every, others


def _of_csv(file: Path) -> list[Number]:
    text = file.read_text("utf-8-sig", errors="replace")
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


def _of_latex(file: Path) -> list[Number]:
    """Macros by their names; rows by their table's label and their cells before the first number."""
    found, table, in_body = [], "", False
    for line in file.read_text("utf-8-sig", errors="replace").splitlines():
        text, _, keys = line.partition(latex.COMMENT)
        text = re.sub(r"(?<!\\)((?:\\\\)*)%.*", r"\1", text).strip()  # a cleaner may leave the sign of a comment
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
