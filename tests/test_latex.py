"""LaTeX that a paper takes in: whole, aligned, escaped, and each line with the files that it was made from."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pandas as pd
import pytest

from benchlib.suite import latex, tables


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "task": ["gru on 50 %_words", "cnn & digits"],
            "ratio": [1.2345, math.nan],
            "ratio_low": [1.2, math.nan],
            "ratio_high": [1.27, math.nan],
            "memory_mib": [12345.6, 9.25],
            "verdict": ["faster", "no ratio"],
            "measurements": ["aa11 bb22", "cc33"],
        }
    )


def cells(line: str) -> list[str]:
    return re.split(r"(?<!\\)&", line.split(latex.COMMENT)[0].strip().removesuffix("\\\\"))


def test_table_has_a_column_for_each_number_its_interval_beside_it_and_the_files_behind() -> None:
    text = latex.table(frame(), "Ratios of 100 %.", "tab:x")
    kinds = re.search(r"\\begin\{tabular\}\{(.*)\}", text)[1]
    columns = re.findall(r"S\[table-format=[^]]*\]|l", kinds)
    assert columns == ["l", "S[table-format=1.2]", "l", "S[table-format=5.2]", "l"]
    body = text.partition("\\midrule\n")[2].partition("\\bottomrule")[0].splitlines()
    assert [len(cells(line)) for line in body] == [5, 5]
    assert [cell.strip() for cell in cells(body[0])] == [
        "gru on 50 \\%\\_words",
        "1.23",
        "[1.20, 1.27]",
        "12346",
        "faster",
    ]
    assert [cell.strip() for cell in cells(body[1])] == ["cnn \\& digits", "{--}", "", "9.25", "no ratio"]
    assert body[0].endswith("% measurements: aa11 bb22")
    assert "\\caption{Ratios of 100 \\%.}" in text
    assert text.count("{") == text.count("}")
    for name in ("table", "tabular"):
        assert text.count(f"\\begin{{{name}}}") == text.count(f"\\end{{{name}}}") == 1


def test_macros_are_letters_only_distinct_and_lead_to_their_files() -> None:
    names, lines = zip(*latex.macros(frame(), "frameworks ratios"), strict=True)
    assert (
        "\\newcommand{\\benchlibFrameworksRatiosGruOnFiveZeroWordsRatio}{1.23 [1.20, 1.27]} % measurements: aa11 bb22"
        in lines
    )
    assert (
        "\\newcommand{\\benchlibFrameworksRatiosGruOnFiveZeroWordsRatioOnly}{1.23} % measurements: aa11 bb22" in lines
    )
    assert not any("CnnDigitsRatio" in line for line in lines), "no macro for a number that is not known"
    assert all(line.startswith(f"\\newcommand{{\\{name}}}{{") for name, line in zip(names, lines, strict=True))
    assert all(name.isalpha() and name.isascii() for name in names)
    assert len(set(names)) == len(names)


def test_macros_whose_names_would_be_the_same_are_not_made_and_said(tmp_path: Path) -> None:
    same = frame().assign(task=["a b", "a  b"], measurements=["aa11", "bb22"])
    _, path = latex.save({"x": ("", same)}, tmp_path, "n")
    text = path.read_text(encoding="utf-8")
    assert "% benchlibNXABMemoryMib: 2 rows would have this name" in text
    assert re.findall(r"^\\newcommand\{\\(\w+)\}", text, re.MULTILINE) == ["benchlibNXABRatio", "benchlibNXABRatioOnly"]


def test_a_table_without_rows_is_left_out_and_said(tmp_path: Path) -> None:
    tables_path, macros_path = latex.save({"x": ("", frame().iloc[:0]), "y": ("", pd.DataFrame())}, tmp_path, "n")
    text = tables_path.read_text(encoding="utf-8")
    assert "tabular" not in text
    assert f"% x: {tables.NOTHING}\n" in text
    assert f"% y: {tables.NOTHING}\n" in text
    assert "newcommand" not in macros_path.read_text(encoding="utf-8")


def test_a_number_keeps_its_name_when_rows_are_added() -> None:
    alone = list(latex.macros(frame().iloc[:1], "n"))
    assert set(alone) <= set(latex.macros(frame(), "n"))


@pytest.mark.parametrize("text", ["a_b", "50 %", "x & y", "{a}", "c:\\d", "~^#$", "µ < 1 > 0 | é"])
def test_text_has_no_commands_in_it(text: str) -> None:
    left = re.sub(r"\\(text\w+\{\}|[&%$#_{}])|\$\\?[a-z-]+\$", "", latex.escaped(text))
    assert not set(left) & set("&%$#_{}\\~^")


def test_what_no_table_shows_has_no_macro() -> None:
    assert list(latex.macros(pd.DataFrame({"file": ["a"], "why": ["b"]}), "x")) == []
    assert tables.FILES not in latex.table(frame(), "", "x").partition("\\midrule")[0]


def test_a_table_of_more_columns_than_a_page_shows_becomes_two_that_name_their_rows(tmp_path: Path) -> None:
    by_heading = {tables.heading(name): name for name in tables.MEASURED if name not in {"ratio", "control", "verdict"}}
    measured = [*by_heading.values()][: latex.MOST + 3]
    wide = pd.DataFrame(
        {"task": ["cnn", "gru"], **{name: [1.0, 2.0] for name in measured}, "measurements": ["a1", "b2"]}
    )
    path, _ = latex.save({"processes": ("How it went.", wide)}, tmp_path, "modes")
    text = path.read_text(encoding="utf-8")
    assert text.count("\\begin{tabular}") == 2
    bodies = re.findall(r"\\toprule\n(.*?)\\bottomrule", text, re.DOTALL)
    heads = [latex.heads(body.splitlines()[0]) for body in bodies]
    assert [head[0] for head in heads] == ["task", "task"]
    assert all(len(head) <= latex.MOST for head in heads)
    assert [head for part in heads for head in part[1:]] == [tables.heading(name) for name in measured], "each once"
    assert all("cnn" in body and "% measurements: a1" in body for body in bodies)
    assert "\\label{tab:modes-processes-1}" in text
    assert "Part 2 of 2" in text


def test_an_estimate_with_its_interval_is_two_of_the_columns_that_a_page_shows() -> None:
    names = [name for name in tables.MEASURED if name not in {"control", "verdict"}][: latex.MOST - 2]
    ends = {f"{name}{end}": [1.0, 2.0] for name in names[1::2] for end in ("_low", "_high")}
    wide = pd.DataFrame({"task": ["cnn", "gru"], **{name: [1.0, 2.0] for name in names}, **ends})
    kinds = re.findall(r"\\begin\{tabular\}\{(.*)\}", latex.table(wide, "", "x"))
    typeset = [len(re.findall(r"S\[table-format=[^]]*\]|l|p\{", one)) for one in kinds]
    assert sum(typeset) == 2 * 1 + len(names) + len(names[1::2])
    assert max(typeset) <= latex.MOST
    assert max(typeset) - min(typeset) <= 2, "of about the same width"
