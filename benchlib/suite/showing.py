"""What every notebook and the report show alike: subjects, failures, images.

Imports nothing that draws: the report shows what is drawn already, and need not wait for matplotlib.
"""

from __future__ import annotations

import base64
import html
import math
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import pandas as pd

from benchlib.equivalence.certificate import Certificate
from benchlib.suite import tables

if TYPE_CHECKING:
    from IPython.display import HTML

PAGE = 7.2
"""Inches across a page's two columns."""


def failed(frame: pd.DataFrame) -> HTML:
    """What failed (a row each, with its ``label`` and ``failure``), the same failures of a condition together."""
    if not len(frame):
        return tables.bullets(["Nothing failed."])
    by_failure = frame.groupby(["label", "failure"], sort=False)
    files = by_failure["file"].agg(lambda names: " ".join(dict.fromkeys(filter(None, names))))
    groups = pd.DataFrame({"processes": by_failure.size(), "files": files}).reset_index()
    caption = "What failed. The next run tries it again, unless the framework refused it."
    return tables.html(groups.rename(columns={"label": "condition"}), caption)


def references(certificates: Iterable[Certificate]) -> str:
    """What models were compared with, in words."""
    others = dict.fromkeys(one.reference.implementation for one in certificates)
    others.pop("pytorch", None)
    usual = "PyTorch eager on the CPU"
    return f"{usual} (where that is not there: {', '.join(others)})" if others else usual


def image(svg: bytes, caption: str) -> HTML:
    """An SVG figure as notebooks and the report show it: embedded, in proportion to the page, with its caption."""
    from IPython.display import HTML

    inches = float(re.search(rb'width="([\d.]+)pt"', svg)[1]) / 72
    percent = math.floor(100 * inches / PAGE)
    width = f"width: {percent}%; max-width: {1.4 * inches:.1f}in"
    style = f"display: inline-block; vertical-align: top; margin: 1em 0; padding-right: 1em; {width}"
    style += "; box-sizing: border-box"
    source = base64.b64encode(svg).decode()
    text, kind = html.escape(caption), "benchlib-figure half" if percent <= 50 else "benchlib-figure"
    return HTML(
        f'<figure class="{kind}" style="{style}"><img alt="{text}" style="width: 100%; background: white" '
        f'src="data:image/svg+xml;base64,{source}"><figcaption>{text}</figcaption></figure>'
    )
