"""From a number that people read back to the measurements that it was made from.

A table's rows and a macro carry the keys of their files (``tables.FILES``, ``latex.COMMENT``), a figure has them in
its metadata. Here they are read, in the file or in a copy of it, and looked up in a folder of results: which processes,
of what, on what, when; and whether this machine, these versions and this code would still give the same key. What was
changed by hand, and a copy that is older than the results, is said. A copy that has lost its keys (a cleaner of LaTeX
strips comments, one of figures metadata) is traced by what its numbers are called.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path

import pandas as pd

from benchlib.errors import BenchlibError
from benchlib.suite import experiments, latex, records
from benchlib.suite.sources import MATCHES, sources, stale
from benchlib.suite.tables import FILES, MEASURED

FIGURES = (".svg", ".png", ".pdf")


@dataclass(frozen=True)
class Number:
    """A row of a table, a macro or a figure: what it says, the keys of the files that it was made from (none, if it was
    not made from measurements), and what it is called, in a copy as in the original.
    """

    says: str
    keys: tuple[str, ...]
    name: str
    by_name: bool = field(default=False, compare=False)  # the keys are those of its name in the results


def trace(file: Path, name: str | None = None, outputs: Path | None = None) -> int:
    """Print the numbers of ``file`` (see :func:`numbers`), then each of their files in the results ``outputs`` (those
    that it lies in if None); 1 if one is not what would be made here now, or the file is not what they say, else 0.
    """
    folder = outputs or folder_of(file)
    shown = numbers(file, name, folder)
    if folder is None:
        raise BenchlibError(f"{file}: is in no folder of results: name it with --outputs outputs/PROFILE")
    for number in shown:
        start = f"has lost its keys; in {folder} its name is from" if number.by_name else "from"
        print(f"{number.says}\n  {' '.join([start, *number.keys]) if number.keys else 'names no measurement'}")
    behind = sources(dict.fromkeys(key for number in shown for key in number.keys), folder)
    print(f"\n{len(shown)} numbers from {len(behind)} files in {folder}:")
    for source in behind:
        print("", f"{source.key}: {source.verdict}", *(f"  {line}" for line in source.says), sep="\n")
    match = sum(source.verdict == MATCHES for source in behind)
    print(f"\n{match} of {len(behind)} files match this machine, these versions and this code.")
    others, outdated = differences(file, shown, folder), stale([source.key for source in behind], folder)
    if others:
        print(f"\n{file} is not what the results say:")
    for line in (*others, *outdated):
        print(line)
    return 1 if match < len(behind) or others or outdated else 0


def numbers(file: Path, name: str | None = None, folder: Path | None = None) -> list[Number]:
    """The numbers of a table (CSV, Markdown, LaTeX), a file of macros or a figure; of those only what has ``name`` in
    it, such as a macro's name or a word of a row. One without keys has those of its name in the results in ``folder``.
    A BenchlibError where there is nothing to trace.
    """
    if not file.is_file():
        raise BenchlibError(f"{file}: there is no such file; give a table or a figure of outputs/PROFILE")
    readers = {".csv": _of_csv, ".md": _of_markdown, ".tex": _of_latex, **dict.fromkeys(FIGURES, _of_figure)}
    if file.suffix not in readers:
        raise BenchlibError(f"{file}: cannot be traced: give a file that ends in {', '.join(readers)}")
    every = readers[file.suffix](file)
    if folder is not None and not all(number.keys for number in every):
        present = _present(file, folder)
        every = [number if number.keys else _by_name(number, present[number.name]) for number in every]
    if not any(number.keys for number in every):
        where = (
            f"no number in {folder} has its names" if folder else "give --outputs outputs/PROFILE to go by its names"
        )
        raise BenchlibError(
            f"{file}: names no measurement: a table's column {FILES}, LaTeX's comments {latex.COMMENT} and a figure's "
            f"metadata do, until a tool takes them away; {where}"
        )
    chosen = [number for number in every if name is None or name.lstrip("\\") in number.says]
    if not chosen:
        raise BenchlibError(f"{file}: nothing in it has {name!r}; it has, for instance: {every[0].says}")
    return chosen


def folder_of(file: Path) -> Path | None:
    """The folder of results that a table or figure lies in; None for a copy elsewhere."""
    return next((parent for parent in file.resolve().parents if (parent / "measurements").is_dir()), None)


def differences(file: Path, shown: Iterable[Number], folder: Path) -> list[str]:
    """What of the numbers ``shown`` in ``file`` is not what the results in ``folder`` say, a sentence each: the file
    was changed by hand, or is a copy of older results.
    """
    if folder_of(file) == folder.resolve():
        wrong = records.all_wrong(folder, experiments.NOTEBOOKS)
        paths = dict.fromkeys((file.resolve(), file.resolve().with_suffix(".csv") if file.suffix == ".md" else file))
        names = [path.resolve().relative_to(folder.resolve()).as_posix() for path in paths]
        return [f"{folder / name} {wrong[name]}" for name in names if name in wrong]
    if file.suffix in FIGURES:
        original = folder / "figures" / file.name
        same = original.is_file() and original.read_bytes() == file.read_bytes()
        return [] if same else [f"{file}: is not {original}, or that is not there"]
    present = _present(file, folder)
    return [
        _difference(number, present[number.name], folder)
        for number in shown
        if not any(
            one.says == number.says and (number.by_name or one.keys == number.keys) for one in present[number.name]
        )
    ]


def _present(file: Path, folder: Path) -> dict[str, list[Number]]:
    """By name, the numbers that the results in ``folder`` have where ``file`` may be a copy from."""
    read, pattern = {
        ".tex": (_of_latex, "tables/[!.]*.tex"),
        **dict.fromkeys(FIGURES, (_of_figure, f"figures/{file.name}")),
    }.get(file.suffix, (_of_csv, f"tables/{file.stem}.csv"))
    present = defaultdict(list)
    for original in sorted(folder.glob(pattern)):
        for number in read(original):
            present[number.name].append(number)
    return present


def _by_name(number: Number, present: list[Number]) -> Number:
    """A number without keys, with those of its name: of what says the same, or of all."""
    those = [one for one in present if one.says == number.says] or present
    keys = tuple(dict.fromkeys(key for one in those for key in one.keys))
    return replace(number, keys=keys, by_name=bool(keys))


def _difference(number: Number, present: list[Number], folder: Path) -> str:
    """What the results say of a number that they do not have, where ``present`` are those of its name."""
    if not present:
        return f"{number.says}\n  is in no table of {folder}"
    if any(number.says == one.says for one in present):
        return f"{number.says}\n  is made from other measurements in {folder}"
    return f"{number.says}\n  in {folder}: {' | '.join(one.says for one in present)}"


def _of_csv(file: Path) -> list[Number]:
    text = _text(file)
    separator = max(",;\t", key=text.partition("\n")[0].count)  # as spreadsheets of many languages save it
    decimal = "," if re.search(r"[;\t]-?\d+,\d+[;\t\r\n]", text) else "."
    try:
        frame = pd.read_csv(io.StringIO(text), sep=separator, decimal=decimal, dtype={FILES: str, "file": str})
    except ValueError as error:
        raise BenchlibError(f"{file}: cannot be read as CSV: {error}") from None
    if FILES not in frame and "file" in frame:  # the table of all measurements
        frame = frame.rename(columns={"file": FILES})
    chosen = [name for name in frame if name not in {*MEASURED, FILES} and not name.endswith(("_low", "_high"))]
    telling = [name for name in chosen if frame[name].nunique() > 1] or chosen[:1]
    values = [name for name in MEASURED if name in frame and pd.api.types.is_numeric_dtype(frame[name])]
    return [_of_row(row, telling, values) for row in frame.to_dict("records")]


def _of_row(row: dict[str, object], telling: list[str], values: list[str]) -> Number:
    who = ", ".join(f"{name} {row[name]}" for name in telling if pd.notna(row[name]))
    what = ", ".join(f"{name} {row[name]:.6g}" for name in values if pd.notna(row[name]))
    keys = str(row[FILES]).split() if pd.notna(row.get(FILES)) else []
    return Number(f"{who}: {what}" if what else who, tuple(keys), who)


def _of_markdown(file: Path) -> list[Number]:
    beside = file.with_suffix(".csv")
    if not beside.is_file():
        raise BenchlibError(f"{file}: a Markdown table is traced by {beside.name} beside it, which is not there")
    return _of_csv(beside)


def _of_latex(file: Path) -> list[Number]:
    """Macros as they stand there; rows with the name of their table, and their cells as they read on paper."""
    every, table, heads, before, in_body = [], "", [], "", False
    for line in _text(file).splitlines():
        text, _, keys = line.partition(latex.COMMENT)
        text = re.sub(r"(?<!\\)((?:\\\\)*)%.*", r"\1", text)  # a cleaner may leave the sign of a comment
        if label := re.fullmatch(r"\\label\{tab:(.*)\}", text.strip()):
            table = label[1].replace("-", " ")
        elif macro := re.match(r"\\newcommand\{(\\benchlib\w+)\}", text):
            every.append(Number(text.strip(), tuple(keys.split()), macro[1]))
        elif text.strip() in ("\\midrule", "\\bottomrule"):
            in_body, heads = text.strip() == "\\midrule", latex.heads(before)
        elif in_body and text.rstrip().endswith("\\\\"):
            cells = latex.cells(text)
            name = ", ".join(takewhile(lambda cell: not re.match(r"-?[\d.,]+$|\[|–$", cell), cells))
            named = [f"{head} {cell}" if head else cell for head, cell in zip(heads, cells, strict=False) if cell]
            says = ", ".join(named).replace(", [", " [")
            every.append(Number(f"{table}: {says}", tuple(keys.split()), f"{table}: {name}"))
        before = text
    return every


def _of_figure(file: Path) -> list[Number]:
    """By the metadata that ``figures.save`` wrote."""
    content = file.read_bytes()
    if file.suffix == ".svg":
        block = re.search(rb"<dc:subject>(.*?)</dc:subject>", content, re.DOTALL)
        keys = re.findall(rb"<rdf:li>(.*?)</rdf:li>", block[1]) if block else []
    elif file.suffix == ".pdf":
        keywords = re.search(rb"/Keywords \(([^)]*)\)", content)
        keys = keywords[1].split() if keywords else []
    else:
        head = b"tEXtKeywords\0"
        at = content.find(head)
        end = at + 4 + int.from_bytes(content[at - 4 : at], "big")  # a chunk's length stands before its name
        keys = content[at + len(head) : end].split() if at >= 0 else []
    return [Number(file.name, tuple(key.decode(errors="replace") for key in keys), file.name)]


def _text(file: Path) -> str:
    """The text of a file, in the encodings in which spreadsheets and editors save it."""
    content = file.read_bytes()
    wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
    for encoding in ("utf-16",) if wide else ("utf-8-sig", "cp1252"):
        with contextlib.suppress(UnicodeDecodeError):
            return content.decode(encoding)
    raise BenchlibError(f"{file}: is not text that can be read: save it as UTF-8")
