"""``report.html`` of a run that is at work: what there is so far, and what is still to come.

It is made in this process, without a kernel, after each notebook: it has to be cheap, and nothing depends on it. The
report that is made at the end is another, and takes its place.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from datetime import datetime
from itertools import takewhile
from pathlib import Path
from typing import Any

import nbformat

from benchlib.suite.report.export import export_html

APPENDIX = "## Appendix"
"""How the cell begins from which on nothing is shown yet."""


def write(notebook: Path, folder: Path, to_come: Sequence[str]) -> None:
    """Show in ``folder/report.html`` what the cells of ``notebook`` give by now, and the names that are ``to_come``."""
    content = nbformat.read(notebook, as_version=4)
    content.cells = list(takewhile(lambda cell: not cell.source.startswith(APPENDIX), content.cells))
    execute(content, folder)
    told = (
        f"**At work.** Made at {datetime.now():%H:%M:%S} of what is there so far; still to come: {', '.join(to_come)}."
    )
    content.cells.insert(1, nbformat.v4.new_markdown_cell(told))
    export(content, folder / "report.html")


def execute(content: nbformat.NotebookNode, folder: Path) -> None:
    """Give the cells of a notebook the HTML that they show, of the results in ``folder``."""
    space: dict[str, Any] = {}
    for cell in content.cells:
        if cell.cell_type == "code":
            parameters = "parameters" in cell.metadata.get("tags", [])
            shown = _run(f"outputs = {str(folder)!r}" if parameters else cell.source, space)
            html = getattr(shown, "data", None)
            cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": html})] if html else []


def export(content: nbformat.NotebookNode, page: Path) -> None:
    """A notebook as a page, whole or not at all."""
    executed = page.with_name(f".so-far-{page.stem}.ipynb")
    try:
        nbformat.write(content, executed)
        export_html(executed, page)
    finally:
        executed.unlink(missing_ok=True)


def _run(source: str, space: dict[str, Any]) -> Any:
    """The value of the last expression of a cell, as a notebook shows it."""
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "<report>", "exec"), space)
    return eval(compile(ast.Expression(last.value), "<report>", "eval"), space) if last else None
