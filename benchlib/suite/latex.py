"""Tables and numbers for a paper: LaTeX that a paper takes in, so that it cannot drift from its data.

Needs the packages array, booktabs, siunitx and graphicx. Every row and every macro ends in a comment with the keys of
the files that it was made from: ``python -m benchlib trace FILE`` reads them, in a copy of the file too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype

from benchlib.suite import tables
from benchlib.suite.tables import FILES

NEEDS = "% In the preamble: \\usepackage{array,booktabs,siunitx,graphicx}"
COMMENT = "% measurements:"
"""Before the keys of the files that a line was made from."""

WIDE = 5  # columns that fit into one column of a paper; what has more takes the page's width, at most
MOST = 14  # typeset columns that can be read on a page
LONG = 28  # characters of a cell, beyond which its column breaks lines
LONG_HEAD = 12  # of a head over numbers


def save(every: Mapping[str, tuple[str, pd.DataFrame]], folder: Path, notebook: str) -> list[Path]:
    """Write ``folder/NOTEBOOK.tex``, all tables (by name: caption and frame) of a notebook, and
    ``folder/NOTEBOOK_macros.tex``, a macro for each of their numbers.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{notebook}.tex", folder / f"{notebook}_macros.tex"]
    shown = [_table_or_why_not(frame, caption, notebook, name) for name, (caption, frame) in every.items()]
    paths[0].write_text("\n".join([NEEDS, *shown]), encoding="utf-8")
    lines = [line for name, (_, frame) in every.items() for line in macros(frame, f"{notebook} {name}")]
    paths[1].write_text("\n".join([*_distinct(lines), ""]), encoding="utf-8")
    return paths


def table(frame: pd.DataFrame, caption: str, label: str) -> str:
    """A table in the style of booktabs, its numbers aligned by siunitx and rounded as in the report: an estimate, and
    beside it its interval. One of more columns than a page shows becomes several tables, each with the columns that
    name its rows.
    """
    text, same = tables.display(frame)
    by_heading = {tables.heading(name): name for name in frame}
    said = f"{caption} {same}".strip()
    parts = _parts(frame, text, by_heading)
    if len(parts) == 1:
        return _table(frame, text, by_heading, said, label)
    return "\n".join(
        _table(frame, text[part], by_heading, f"{said} Part {number} of {len(parts)}.", f"{label}-{number}")
        for number, part in enumerate(parts, start=1)
    )


def _parts(frame: pd.DataFrame, text: pd.DataFrame, by_heading: Mapping[str, str]) -> list[list[str]]:
    """The columns of each table that a frame becomes: none is typeset in more than ``MOST`` columns, and an estimate
    with its interval takes two.
    """
    takes = {heading: 1 + (f"{by_heading[heading]}_low" in frame) for heading in text}
    if sum(takes.values()) <= MOST:
        return [list(text)]
    naming = [heading for heading in text if by_heading[heading] in {*NAMING, *_OF_WORKS}][: MOST // 2]
    naming = naming or list(text)[:1]
    others = [heading for heading in text if heading not in naming]
    room = MOST - sum(takes[heading] for heading in naming)
    fewest = len(_packed(others, takes, room))
    # Of about the same width, rather than full ones and a rest.
    even = next(wide for wide in range(2, room + 1) if len(_packed(others, takes, wide)) == fewest)
    return [naming + part for part in _packed(others, takes, even)]


def _packed(headings: Iterable[str], takes: Mapping[str, int], room: int) -> list[list[str]]:
    """The headings in their order, in parts that take no more than ``room``."""
    parts: list[list[str]] = [[]]
    for heading in headings:
        if sum(takes[one] for one in parts[-1]) + takes[heading] > room:
            parts.append([])
        parts[-1].append(heading)
    return parts


def _table(frame: pd.DataFrame, text: pd.DataFrame, by_heading: Mapping[str, str], caption: str, label: str) -> str:
    """The columns of a frame that ``text`` has, as one table."""
    columns = [column for name in text for column in _columns(frame, by_heading[name], text[name])]
    long = [column for column in columns if column.long]
    for column in long:
        column.kind = f">{{\\raggedright\\arraybackslash}}p{{{min(0.7, 0.9 / len(long)):.2f}\\textwidth}}"
    rows = zip(zip(*(column.cells for column in columns), strict=True), _comments(frame), strict=True)
    body = [
        f"\\begin{{tabular}}{{{''.join(column.kind for column in columns)}}}",
        "\\toprule",
        " & ".join(column.head for column in columns if column.head is not None) + " \\\\",
        "\\midrule",
        *(" & ".join(cells) + " \\\\" + comment for cells, comment in rows),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    wide = len(columns) > WIDE or long
    if wide:
        # Measured first, so that only what is wider or higher than the page is made smaller.
        body = ["\\sbox0{%", *body, "}%", *_FITTED]
    place = "table*" if wide else "table"
    said = escaped(caption)
    start = [f"\\begin{{{place}}}", "\\centering", "\\footnotesize", f"\\caption{{{said}}}", f"\\label{{{label}}}"]
    return "\n".join([*start, *body, f"\\end{{{place}}}", ""])


def macros(frame: pd.DataFrame, prefix: str) -> Iterator[tuple[str, str]]:
    """A macro for each number, by its name and as its line. The name is made of ``prefix``, of what its row is about,
    and of its column. ``\\benchlib...`` is the estimate with its interval, ``\\benchlib...Only`` the estimate.
    """
    text, _ = tables.display(frame)
    names, comments = _names(frame), _comments(frame)
    for name in frame:
        if name not in tables.MEASURED or tables.heading(name) not in text or not is_numeric_dtype(frame[name]):
            continue
        for who, value, comment in zip(names, text[tables.heading(name)], comments, strict=True):
            if value == tables.MISSING:
                continue
            macro = "benchlib" + _camel(f"{prefix} {who} {name}")
            yield macro, f"\\newcommand{{\\{macro}}}{{{escaped(value)}}}{comment}"
            if f"{name}_low" in frame:
                only = escaped(value.partition(" ")[0])
                yield f"{macro}Only", f"\\newcommand{{\\{macro}Only}}{{{only}}}{comment}"


@dataclass
class _Column:
    """A column of LaTeX: its kind for ``tabular``, its head (None: that of the column before), and its cells."""

    kind: str
    head: str | None
    cells: list[str]
    long: bool = False


def _columns(frame: pd.DataFrame, name: str, text: pd.Series) -> list[_Column]:
    """The column ``name`` of a frame, which reads as ``text``: one, or for an estimate with an interval two."""
    heading = tables.heading(name)
    if f"{name}_low" in frame:
        parts = [cell.partition(" ") for cell in text]
        estimates = [estimate for estimate, _, _ in parts]
        head = f"\\multicolumn{{2}}{{c}}{{{_head(heading)}}}"
        intervals = _Column("l", None, [escaped(rest) for _, _, rest in parts])
        return [_Column(_aligned(estimates), head, [_number(cell) for cell in estimates]), intervals]
    if is_numeric_dtype(frame[name]):
        return [_Column(_aligned(text), f"{{{_head(heading)}}}", [_number(cell) for cell in text])]
    return [_Column("l", escaped(heading), [escaped(cell) for cell in text], max(map(len, text)) > LONG)]


def _comments(frame: pd.DataFrame) -> list[str]:
    """What stands behind each row of LaTeX: the keys of its files, if it has any."""
    files = frame[FILES] if FILES in frame else [""] * len(frame)
    return [f" {COMMENT} {keys}" if isinstance(keys, str) and keys else "" for keys in files]


NAMING = (
    "claim",
    "case",
    "task",
    "workload",
    "size",
    "passes",
    "subject",
    "where",
    "change",
    "scaling",
    "world_size",
    "batch_size",
    "learning_rate",
    "seed",
    "quantity",
    "noise",
)
"""Columns that name a row in its macros, whatever other rows there are: a number keeps its name when a row is added."""

_OF_TASK = ("batch_size", "learning_rate")  # which a task has one of each
_OF_WORKS = ("framework", "device", "hyperparameter", "value")  # of tables that are not about subjects


def _names(frame: pd.DataFrame) -> list[str]:
    """A row each, by :data:`NAMING`."""
    naming = [name for name in NAMING if name in frame and not ("task" in frame and name in _OF_TASK)]
    naming += [name for name in _OF_WORKS if name in frame and "subject" not in frame]
    numeric = {name for name in naming if is_numeric_dtype(frame[name])}
    rows = frame[naming].to_dict("records")
    return [
        " ".join(f"{name} {row[name]}" if name in numeric else str(row[name]) for name in naming if pd.notna(row[name]))
        for row in rows
    ]


_SPECIAL = {
    **{"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"},
    **{"–": "--", "−": "$-$", "×": "$\\times$", "°": "\\textdegree{}"},
    **{char: f"\\{char}" for char in "&%$#_{}"},
    **{"<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}"},
}


def escaped(text: str) -> str:
    """Text as LaTeX sets it, with none of its commands in it, in one line."""
    return "".join(_SPECIAL.get(char, char) for char in text.replace("\n", " "))


def cells(row: str) -> list[str]:
    """The cells of a row of :func:`table`, as they read on paper.

    >>> cells(r"gru on 50 \\%\\_words & 1.23 & [1.20, 1.27] & {--} & {\\num{1e-07}} \\\\")
    ['gru on 50 %_words', '1.23', '[1.20, 1.27]', '–', '1e-07']
    """
    plain = {latex: char for char, latex in _SPECIAL.items()}
    special = re.compile("|".join(re.escape(latex) for latex in plain))
    parts = re.split(r"(?<!\\)&", row.strip().removesuffix("\\\\"))
    bare = (re.sub(r"\\num\{(.*)\}", r"\1", re.sub(r"^\{(.*)\}$", r"\1", cell.strip())) for cell in parts)
    return [special.sub(lambda match: plain[match[0]], cell) for cell in bare]


def heads(row: str) -> list[str]:
    """The heads of :func:`cells`, from the row of heads: that of an estimate is empty over its interval.

    >>> heads(r"task & \\multicolumn{2}{c}{\\parbox[b]{1.7cm}{\\centering throughput ratio}} & {A/A} \\\\")
    ['task', 'throughput ratio', '', 'A/A']
    """
    row = re.sub(r"\\parbox\[b\]\{1\.7cm\}\{\\centering (.*?)\}", r"\1", row)
    return cells(re.sub(r"\\multicolumn\{2\}\{c\}\{(.*?)\}", r"{\1} &", row))


_FITTED = (
    "\\ifdim\\dimexpr\\ht0+\\dp0\\relax>0.85\\textheight\\resizebox{!}{0.85\\textheight}{\\usebox0}%",
    "\\else\\ifdim\\wd0>\\textwidth\\resizebox{\\textwidth}{!}{\\usebox0}\\else\\usebox0\\fi\\fi",
)


def _table_or_why_not(frame: pd.DataFrame, caption: str, notebook: str, name: str) -> str:
    if not len(frame):
        return f"% {name}: {tables.NOTHING}\n"
    return table(frame, caption, f"tab:{notebook}-{name}")


def _head(name: str) -> str:
    """A head over numbers: a long one breaks its line, because the numbers are narrow."""
    if len(name) <= LONG_HEAD:
        return escaped(name)
    return f"\\parbox[b]{{1.7cm}}{{\\centering {escaped(name)}}}"


def _aligned(cells: Iterable[str]) -> str:
    """A column of siunitx that is as wide as its widest number."""
    numbers = [plain for cell in cells if (plain := cell.replace(",", "")) and re.fullmatch(r"-?\d+(\.\d+)?", plain)]
    whole = max((len(number.lstrip("-").partition(".")[0]) for number in numbers), default=1)
    decimals = max((len(number.partition(".")[2]) for number in numbers), default=0)
    sign = "-" if any(number.startswith("-") for number in numbers) else ""
    return f"S[table-format={sign}{whole}.{decimals}]"


def _number(cell: str) -> str:
    """A cell of a column of siunitx: what is no plain number stands in braces, which leaves it as it is."""
    plain = cell.replace(",", "")
    if re.fullmatch(r"-?\d+(\.\d+)?", plain):
        return plain
    tiny = re.fullmatch(r"-?\d+(\.\d+)?e-?\d+", plain)
    return f"{{\\num{{{plain}}}}}" if tiny else f"{{{escaped(cell)}}}"


def _camel(text: str) -> str:
    """Words as one name of letters only, as LaTeX wants it: digits are spelled, a point is Point."""
    text = re.sub(r"(?<=\d)\.(?=\d)", " point ", text)
    text = re.sub(r"\d", lambda digit: f" {_DIGITS[int(digit[0])]} ", text)
    return "".join(word[0].upper() + word[1:] for word in re.findall(r"[A-Za-z]+", text))


_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def _distinct(lines: list[tuple[str, str]]) -> list[str]:
    """The lines; where several rows would give one name, none gets it: it would not say which number it is."""
    count = Counter(name for name, _ in lines)
    return [line for name, line in lines if count[name] == 1] + [
        f"% {name}: {rows} rows would have this name, so none has it" for name, rows in count.items() if rows > 1
    ]
