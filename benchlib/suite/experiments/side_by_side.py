"""The files of workloads, one framework beside the other."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TYPE_CHECKING

from benchlib import frameworks, workloads

if TYPE_CHECKING:
    from IPython.display import HTML


def html(names: Iterable[str]) -> HTML:
    """Of workloads, each with its title and its source."""
    from IPython.display import HTML

    parts = []
    for name in names:
        workload = workloads.load(name)
        offered = sorted(frameworks.of(workload), key=frameworks.rank)
        files = [workloads.file(name, each).read_text(encoding="utf-8") for each in offered]
        columns = "".join(f"<pre>{escape(text)}</pre>" for text in files)
        parts.append(
            f"<h3>{escape(workload.title)} (<code>{name}</code>)</h3><p>{escape(workload.source)}.</p>"
            f'<div class="side-by-side">{columns}</div>'
        )
    return HTML(_STYLE + "".join(parts))


_STYLE = """<style>
.side-by-side {display: grid; grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr); gap: 1em}
.side-by-side pre {font-size: 0.62em; line-height: 1.25; white-space: pre-wrap; overflow-wrap: anywhere}
</style>"""
