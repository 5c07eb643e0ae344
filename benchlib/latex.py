"""Tables and numbers for a paper: LaTeX that a paper takes in, so that it cannot drift from its data.

Every row and every macro ends in a comment with the keys of the files that it was made from, for ``benchlib trace``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd
from pandas.api.types import is_numeric_dtype

from benchlib import tables
from benchlib.tables import FILES

NEEDS = "% In the preamble: \\usepackage{array,booktabs,graphicx}"
COMMENT = "% measurements:"
"""Before the keys of the files that a line was made from."""

WIDE = 4  # columns that fit into one column of a paper; what has more takes the page's width, at most
LONG = 28  # characters of a cell, beyond which its column breaks lines
TEXT = ">{\\raggedright\\arraybackslash}p{0.3\\textwidth}"
FITTED = (
    "\\ifdim\\dimexpr\\ht0+\\dp0\\relax>0.85\\textheight\\resizebox{!}{0.85\\textheight}{\\usebox0}%",
    "\\else\\ifdim\\wd0>\\textwidth\\resizebox{\\textwidth}{!}{\\usebox0}\\else\\usebox0\\fi\\fi",
)

HEADLINES = ("ratio", "within_ratio", "threshold_ratio", "claimed_ratio")
"""Columns whose numbers have macros."""

NAMING = ("claim", "case", "task", "workload", "size", "passes", "subject", "where", "change", "scaling", "world_size")
NAMING += ("batch_size", "learning_rate", "quantity")
"""Columns that name a row in its macros: a number keeps its name when another row is added."""

OF_TASK = ("batch_size", "learning_rate")  # which a task has one of each


SPECIAL = {
    **{"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}"},
    **{"–": "--", "−": "$-$", "×": "$\\times$", "°": "\\textdegree{}"},
    **{char: f"\\{char}" for char in "&%$#_{}"},
    **{"<": "\\textless{}", ">": "\\textgreater{}", "|": "\\textbar{}"},
}


def save(every: Mapping[str, tuple[str, pd.DataFrame]], folder: Path, notebook: str) -> list[Path]:
    """Write ``folder/NOTEBOOK.tex``, all tables (by name: caption and frame) of a notebook, and
    ``folder/NOTEBOOK_macros.tex``, a macro for each of their headline ratios.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{notebook}.tex", folder / f"{notebook}_macros.tex"]
    shown = [table(frame, caption, f"tab:{notebook}-{name}") for name, (caption, frame) in every.items() if len(frame)]
    paths[0].write_text("\n".join([NEEDS, *shown]), encoding="utf-8")
    lines = [line for name, (_, frame) in every.items() for line in macros(frame, f"{notebook} {name}")]
    count = Counter(name for name, _ in lines)  # a name of several rows would not say which number it is
    paths[1].write_text("".join(f"{line}\n" for name, line in lines if count[name] == 1), encoding="utf-8")
    return paths


def table(frame: pd.DataFrame, caption: str, label: str) -> str:
    """A table in the style of booktabs, as the report shows it. What is larger than the page is made smaller."""
    text, same = tables.display(frame)
    numeric = {tables.heading(name) for name in frame if is_numeric_dtype(frame[name])}
    long = {name for name in text if name not in numeric and text[name].str.len().max() > LONG}
    kinds = ["r" if name in numeric else TEXT if name in long else "l" for name in text]
    heads = [
        f"\\parbox[b]{{1.7cm}}{{\\raggedleft {escaped(name)}}}" if name in numeric else escaped(name) for name in text
    ]
    rows = zip(text.itertuples(index=False), _comments(frame), strict=True)
    body = [
        f"\\begin{{tabular}}{{{''.join(kinds)}}}",
        "\\toprule",
        f"{' & '.join(heads)} \\\\",
        "\\midrule",
        *(f"{' & '.join(map(escaped, cells))} \\\\{comment}" for cells, comment in rows),
        "\\bottomrule",
        "\\end{tabular}",
    ]
    if len(kinds) > WIDE or long:
        place, body = "table*", ["\\sbox0{%", *body, "}%", *FITTED]
    else:
        place = "table"
    start = [f"\\begin{{{place}}}", "\\centering\\footnotesize", f"\\caption{{{escaped(f'{caption} {same}'.strip())}}}"]
    return "\n".join([*start, f"\\label{{{label}}}", *body, f"\\end{{{place}}}", ""])


def macros(frame: pd.DataFrame, prefix: str) -> Iterator[tuple[str, str]]:
    """A macro for each headline ratio, by its name and as its line. The name is made of ``prefix``, of what its row is
    about, and of its column. ``\\benchlib...`` is the estimate with its interval, ``\\benchlib...Only`` the estimate.
    """
    naming = [name for name in NAMING if name in frame and not ("task" in frame and name in OF_TASK)]
    of_rows = frame[naming].to_dict("records")
    for name in [one for one in HEADLINES if one in frame and f"{one}_low" in frame]:
        values = map(tables.ratio, *(frame[f"{name}{end}"] for end in ("", "_low", "_high")))
        for row, value, comment in zip(of_rows, values, _comments(frame), strict=True):
            if value == tables.MISSING:
                continue
            who = [f"{'' if isinstance(row[one], str) else one} {row[one]}" for one in naming if pd.notna(row[one])]
            macro = f"benchlib{_camel(' '.join([prefix, *who, name]))}"
            for end, text in {"": value, "Only": value.partition(" ")[0]}.items():
                yield f"{macro}{end}", f"\\newcommand{{\\{macro}{end}}}{{{escaped(text)}}}{comment}"


def escaped(text: str) -> str:
    """Text as LaTeX sets it, with none of its commands in it, in one line."""
    return "".join(SPECIAL.get(char, char) for char in text.replace("\n", " "))


def _comments(frame: pd.DataFrame) -> list[str]:
    """What stands behind each row of LaTeX: the keys of its files, if it has any."""
    files = frame[FILES] if FILES in frame else [""] * len(frame)
    return [f" {COMMENT} {keys}" if isinstance(keys, str) and keys else "" for keys in files]


def _camel(text: str) -> str:
    """Words as one name of letters only, as LaTeX wants it: digits are spelled, a point is Point."""
    text = re.sub(r"(?<=\d)\.(?=\d)", " point ", text)
    text = re.sub(r"\d", lambda digit: f" {_DIGITS[int(digit[0])]} ", text)
    return "".join(word[0].upper() + word[1:] for word in re.findall(r"[A-Za-z]+", text))


_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
