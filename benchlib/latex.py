"""LaTeX tables and macros of a notebook. Each line ends in a comment with its measurements, for ``benchlib trace``."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype

from benchlib import tables
from benchlib.tables import FILES

NEEDS = "% In the preamble: \\usepackage{adjustbox,array,booktabs}"
COMMENT = "% measurements:"  # before the keys of the files that a line was made from

WIDE = 4  # columns that fit into one column of a paper; a table with more takes the page's width, at most
LONG = 28  # characters of a cell, beyond which its column breaks lines
TEXT = ">{\\raggedright\\arraybackslash}p{0.3\\textwidth}"
FITTED = "max width=\\linewidth,max totalheight=0.85\\textheight"

HEADLINES = ("ratio", "within_ratio", "threshold_ratio", "claimed_ratio")
"""Columns whose numbers have macros."""

NAMING = ("claim", "case", "task", "workload", "size", "passes", "subject", "where", "change", "scaling", "world_size")
NAMING += ("batch_size", "learning_rate", "quantity")
"""Columns that name a row in its macros, so that a number keeps its name when another row is added."""

SPECIAL = {
    **{"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"},
    **{"–": "--", "−": "$-$", "×": "$\\times$", "°": "\\textdegree{}"},
    **{char: f"\\{char}" for char in "&%$#_{}"},
    **{"<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}"},
}


def save(every: Mapping[str, tuple[str, pd.DataFrame]], folder: Path, notebook: str) -> list[Path]:
    """Write all tables of a notebook (by name: caption and frame), and macros of their headline ratios."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{notebook}.tex", folder / f"{notebook}_macros.tex"]
    shown = [table(frame, caption, f"tab:{notebook}-{name}") for name, (caption, frame) in every.items() if len(frame)]
    paths[0].write_text("\n".join([NEEDS, *shown]), encoding="utf-8")
    lines = [line for name, (_, frame) in every.items() for line in macros(frame, f"{notebook} {name}")]
    count = Counter(name for name, _ in lines)  # a name of several rows would not say which number it is
    paths[1].write_text("".join(f"{line}\n" for name, line in lines if count[name] == 1), encoding="utf-8")
    return paths


def table(frame: pd.DataFrame, caption: str, label: str) -> str:
    """A table in the style of booktabs, no larger than a page."""
    text, same = tables.display(frame)
    numeric = {tables.heading(name) for name in frame if is_numeric_dtype(frame[name])}
    long = {name for name in text if name not in numeric and text[name].str.len().max() > LONG}
    kinds = ["r" if name in numeric else TEXT if name in long else "l" for name in text]
    place = "table*" if len(kinds) > WIDE or long else "table"
    rows = zip(text.itertuples(index=False), _comments(frame), strict=True)
    lines = [
        f"\\begin{{{place}}}",
        "\\centering\\footnotesize",
        f"\\caption{{{escape(f'{caption} {same}'.strip())}}}",
        f"\\label{{{label}}}",
        f"\\begin{{adjustbox}}{{{FITTED}}}",
        f"\\begin{{tabular}}{{{''.join(kinds)}}}",
        "\\toprule",
        f"{' & '.join(map(escape, text))} \\\\",
        "\\midrule",
        *(f"{' & '.join(map(escape, cells))} \\\\{comment}" for cells, comment in rows),
        "\\bottomrule",
        *(f"\\end{{{name}}}" for name in ("tabular", "adjustbox", place)),
    ]
    return "\n".join([*lines, ""])


def macros(frame: pd.DataFrame, prefix: str) -> Iterator[tuple[str, str]]:
    """Macros of each headline ratio, by name and as a line: ``Only`` at its end is the estimate without interval."""
    of_task = ("batch_size", "learning_rate") if "task" in frame else ()  # a task has one of each
    naming = [name for name in NAMING if name in frame and name not in of_task]
    of_rows = frame.to_dict("records")
    for name in [one for one in HEADLINES if one in frame and f"{one}_low" in frame]:
        values = map(tables.ratio, *(frame[f"{name}{end}"] for end in ("", "_low", "_high")))
        for row, value, comment in zip(of_rows, values, _comments(frame), strict=True):
            if value == tables.MISSING:
                continue
            who = [f"{'' if isinstance(row[one], str) else one} {row[one]}" for one in naming if pd.notna(row[one])]
            macro = f"benchlib{_camel(' '.join([prefix, *who, name]))}"
            for end, text in {"": value, "Only": value.partition(" ")[0]}.items():
                yield f"{macro}{end}", f"\\newcommand{{\\{macro}{end}}}{{{escape(text)}}}{comment}"


def escape(text: str) -> str:
    """Text in one line without LaTeX's commands."""
    return "".join(SPECIAL.get(char, char) for char in text.replace("\n", " "))


def _comments(frame: pd.DataFrame) -> list[str]:
    """The comment behind each row: the keys of its files, if it has any."""
    files = frame[FILES] if FILES in frame else [""] * len(frame)
    return [f" {COMMENT} {keys}" if isinstance(keys, str) and keys else "" for keys in files]


def _camel(text: str) -> str:
    """Words as one name of letters only: digits are spelled, a point is Point."""
    text = re.sub(r"(?<=\d)\.(?=\d)", " point ", text)
    spelled = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
    text = re.sub(r"\d", lambda digit: f" {spelled[int(digit[0])]} ", text)
    return "".join(word[0].upper() + word[1:] for word in re.findall(r"[A-Za-z]+", text))
