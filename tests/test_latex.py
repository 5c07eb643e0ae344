"""LaTeX that a paper takes in: whole, escaped, and each line with the files that it was made from."""

import math
import re
from pathlib import Path

import pandas as pd
import pytest

from benchlib import latex, tables


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


def test_a_table_has_a_row_for_each_of_the_frame_with_its_files_behind() -> None:
    text = latex.table(frame(), "Ratios of 100 %.", "tab:x")
    body = text.partition("\\midrule\n")[2].partition("\\bottomrule")[0].splitlines()
    assert body == [
        "gru on 50 \\%\\_words & 1.23 [1.20, 1.27] & 12,346 & faster \\\\ % measurements: aa11 bb22",
        "cnn \\& digits & -- & 9.25 & no ratio \\\\ % measurements: cc33",
    ]
    assert "\\begin{tabular}{lrrl}" in text
    assert "\\caption{Ratios of 100 \\%.}" in text
    assert text.count("{") == text.count("}")
    for name in ("table", "adjustbox", "tabular"):
        assert text.count(f"\\begin{{{name}}}") == text.count(f"\\end{{{name}}}") == 1
    assert tables.FILES not in text.partition("\\midrule")[0]


def test_each_headline_ratio_has_a_macro_of_letters_that_leads_to_its_files() -> None:
    name = "benchlibFrameworksRatiosGruOnFiveZeroWordsRatio"
    assert list(latex.macros(frame(), "frameworks ratios")) == [
        (name, f"\\newcommand{{\\{name}}}{{1.23 [1.20, 1.27]}} % measurements: aa11 bb22"),
        (f"{name}Only", f"\\newcommand{{\\{name}Only}}{{1.23}} % measurements: aa11 bb22"),
    ], "none for a number that is not known, nor for one that is no ratio"
    assert list(latex.macros(pd.DataFrame({"file": ["a"], "why": ["b"]}), "x")) == []
    assert set(latex.macros(frame().iloc[:1], "n")) <= set(latex.macros(frame(), "n")), "names stay as rows are added"


def test_a_name_of_several_rows_is_none_and_a_table_without_rows_is_left_out(tmp_path: Path) -> None:
    same = frame().assign(task=["a b", "a  b"], ratio=1.0, ratio_low=0.9, ratio_high=1.1)
    every = {"x": ("", same), "y": ("", frame()), "z": ("", pd.DataFrame())}
    path, macros = latex.save(every, tmp_path, "n")
    name = "benchlibNYGruOnFiveZeroWordsRatio"
    assert re.findall(r"\\(benchlib\w+)", macros.read_text()) == [name, f"{name}Only"]
    assert re.findall(r"\\label\{(.*)\}", path.read_text()) == ["tab:n-x", "tab:n-y"]


@pytest.mark.parametrize("text", ["a_b", "50 %", "x & y", "{a}", "c:\\d", "~^#$", "µ < 1 > 0 | é"])
def test_text_has_no_commands_in_it(text: str) -> None:
    left = re.sub(r"\\(text\w+\{\}|[&%$#_{}])|\$\\?[a-z-]+\$", "", latex.escape(text))
    assert not set(left) & set("&%$#_{}\\~^")
