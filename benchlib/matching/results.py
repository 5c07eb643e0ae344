"""A comparison, or certificates, as files: a page, a table, a figure, and a notebook to go on from."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from benchlib import latex, reprs, shown, tables
from benchlib.equivalence.certificate import Certificate
from benchlib.errors import BenchlibError
from benchlib.shown import Shown
from benchlib.stats.comparison import Comparison

STYLE = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
STYLE += "svg,img{max-width:100%;height:auto}td,th{padding:.2rem .6rem;text-align:left;border-bottom:1px solid #ddd}"
STYLE += "table{border-collapse:collapse;font-size:.9rem;display:block;overflow-x:auto;margin:1rem 0}.wide"
STYLE += "{overflow-x:auto}.wide img{min-width:36rem}pre{white-space:pre-wrap}caption{text-align:left;max-width:88vw}"


def to_latex(result: Shown) -> str:
    """The ratios of a comparison as a LaTeX table, whose lines name their measurements."""
    caption, frame = _ratios(result)
    return "\n".join([latex.NEEDS, latex.table(frame, caption, "tab:comparison")])


def save(result: Shown, folder: Path | str, name: str = "comparison") -> list[Path]:
    """Write ``name`` as .csv, .md and .tex to ``folder/tables``, and as a figure to ``folder/figures``."""
    from benchlib.plotting import figures  # whoever measures does without matplotlib

    (caption, frame), folder = _ratios(result), Path(folder)
    paths = tables.save(frame, folder / "tables", name, caption)
    paths.append(folder / "tables" / f"{name}.tex")
    paths[-1].write_text(to_latex(result), encoding="utf-8")
    return [*paths, *figures.save(result.plot(), folder / "figures", name)]


shown.RENDERERS.update(latex=to_latex, save=save)


def _ratios(result: Shown) -> tuple[str, pd.DataFrame]:
    if not isinstance(result, Comparison):
        raise BenchlibError(f"a {type(result).__name__} has no ratios to save: save a comparison")
    caption = str(reprs.parts(result)[0][0])
    frame = result.ratios().rename(columns={"low": "ratio_low", "high": "ratio_high"})
    frame["condition"] = frame["label"].mask(frame["role"] == "control", "A/A: the baseline again")
    names = ["condition", "ratio", "ratio_low", "ratio_high", "processes", "verdict", tables.FILES]
    return caption, pd.DataFrame(frame)[names]


def page(name: str, said: Iterable[str], certificates: Iterable[Certificate], compared: Comparison | None) -> str:
    """All of it as one page that asks nobody for anything."""
    of: Any = next(iter(compared.measurements if compared else certificates))
    where = f"{of.machine.get('cpu')}, {of.machine.get('cores')} cores; {of.commit}"
    body = [f"<h1>{html.escape(name)}</h1>", *(f"<p>{html.escape(one)}</p>" for one in said)]
    if compared is not None:
        where += f"; training steps, measured on {min(m.started_utc for m in compared.measurements)[:10]}"
        body += [f'<div class="wide">{compared.plot()._repr_html_()}</div>', reprs.html(compared)]
    body.append(f"<p>{html.escape(where)}</p>")
    for one in certificates:
        body += [f"<h2>{html.escape(str(one.condition))}: {html.escape(one.verdict)}</h2>", reprs.html(one)]
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(name)}</title>'
    head += f'<style>{STYLE}</style><meta name="viewport" content="width=device-width">'
    return f"{head}{''.join(body)}</html>"


def notebook(files: Iterable[str], modes: Iterable[str], name: str, precision: float) -> str:
    """A notebook for the folder of results, with the same comparison in five lines of Python."""
    lines = [
        "from benchlib import Lab, workload_from",
        "",
        f'workload = workload_from({", ".join(map(repr, files))}, name={name!r}, outputs="..")',
        'lab = Lab(outputs=".")',
        f"compared = lab.compare(workload.conditions({', '.join(map(repr, modes))}), precision={precision})",
        "compared",
    ]
    cells = ["\n".join(lines), "compared.plot()", "print(compared.to_latex())"]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    empty: dict[str, object] = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    described = [{**empty, "id": f"cell-{number}", "source": [one]} for number, one in enumerate(cells)]
    return json.dumps({"cells": described, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}, indent=1)
