"""How a series is drawn, the same in every figure and on every page: by colour, marker and line, never by colour alone.

Imports nothing that draws: pages need colours too, and need not wait for matplotlib.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from benchlib import frameworks
from benchlib.analysis import frame as tidy
from benchlib.environments import DEFAULT
from benchlib.suite import naming

_COLORS = [
    tuple(int(code[at : at + 2], 16) / 255 for at in (0, 2, 4))
    for code in ("0173b2", "d55e00", "029e73", "56b4e9", "cc78bc", "de8f05", "ca9161")
]
"""Of seaborn's palette for colour-blind readers, most distinct first."""

_MARKERS = ["o", "s", "D", "^", "v", "P", "X", "<", ">", "p", "*"]
_LINES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (2, 4))]

SHADES = (0.0, 0.15, -0.4, -0.2, 0.3, 0.45)
"""By how much a colour is made lighter, or darker, for subjects of one framework: most of what differs first."""


REACH = 5
"""An interval that ends further than this factor from all points runs out of its panel: the others can then be read."""


@dataclass(frozen=True)
class Look:
    """How one series is drawn: never by colour alone."""

    color: tuple[float, ...] | str
    marker: str
    line: str | tuple


def looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each name, in order; the same names in the same order look the same in every figure."""
    names = list(dict.fromkeys(names))
    return {
        name: Look(*(cycle[i % len(cycle)] for cycle in (_COLORS, _MARKERS, _LINES))) for i, name in enumerate(names)
    }


def subject_looks(rows: pd.DataFrame) -> dict[str, Look]:
    """A look for each ``hue`` of rows of a frame that is a subject's, the same in every figure: its framework has a
    colour; mode, precision, lane and environment make it lighter or darker, and have their markers and lines. Of five
    frameworks both modes have markers of their own, and of one framework all that it can be.
    """
    return {
        row.hue: subject_look(*(getattr(row, name) for name in tidy.SUBJECT))
        for row in rows[["hue", *tidy.SUBJECT]].drop_duplicates("hue").itertuples()
    }


def subject_look(framework: str, environment: str, mode: str, precision: str, lane: str) -> Look:
    """The look of a subject: see :func:`subject_looks`."""
    known = sorted(frameworks.names(), key=frameworks.rank)
    of = known.index(framework) if framework in known else len(known)
    apart = [mode != "eager", lane != "tuned", precision != "fp32", environment != DEFAULT]
    kind = sum(2**place for place, differs in enumerate(apart) if differs)
    color, shade = _COLORS[of % len(_COLORS)], SHADES[kind % len(SHADES)]
    color = tuple(part + (1 - part) * shade if shade > 0 else part * (1 + shade) for part in color)
    marker, line = (cycle[(of + step * kind) % len(cycle)] for cycle, step in ((_MARKERS, 5), (_LINES, 2)))
    return Look(color, marker, line)


def named_once(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with their subjects as :mod:`naming` calls them, and an environment that goes without saying as the default
    one, whose look is the usual one.
    """
    rows = naming.in_rows(rows)
    for side in ("", "baseline_"):
        who, where, subject = (f"{side}{column}" for column in ("framework", "environment", "subject"))
        if who in rows and where in rows:
            unsaid = [
                pd.notna(name) and home == name and not text.startswith(f"{name} {home} ")
                for name, home, text in zip(rows[who], rows[where], rows[subject], strict=True)
            ]
            rows = rows.assign(**{where: rows[where].mask(pd.Series(unsaid, rows.index, dtype=bool), DEFAULT)})
    return rows
