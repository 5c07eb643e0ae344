"""The look of a series, the same in every figure and on every page: never by colour alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import seaborn as sns

from benchlib import frameworks
from benchlib.condition import Condition
from benchlib.environments import DEFAULT
from benchlib.plotting import naming
from benchlib.stats import frame as tidy

_COLORS = [sns.color_palette("colorblind")[place] for place in (0, 3, 2, 9, 4, 1, 5)]  # most distinct first
_FIRST = ["pytorch", "jax", "mindspore", "mxnet", "tensorflow"]  # whose colours another framework does not change
_MARKERS = ["o", "s", "D", "^", "v", "P", "X", "<", ">", "p", "*"]
_LINES = ["-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (2, 4))]
SHADES = (0.0, 0.15, -0.4, -0.2, 0.3, 0.45)  # how much lighter, or darker, subjects of one framework are
GREYS = ("0.15", "0.55", "0.35", "0.7")  # of series that are no framework's
THIRD_MODE = 20  # more than all kinds of the first two modes, so that a third mode has markers of its own
REACH = 5  # an interval that ends further than this factor from all points runs out of its panel


@dataclass(frozen=True)
class Look:
    """The look of one series."""

    color: tuple[float, ...] | str
    marker: str
    line: str | tuple


def assign_looks(names: Iterable[str]) -> dict[str, Look]:
    """A look for each name, in order; the same names in the same order look the same in every figure."""
    return {name: _cycle_look(number, _COLORS) for number, name in enumerate(dict.fromkeys(names))}


def _cycle_look(number: int, colors: Sequence[Any]) -> Look:
    return Look(*(cycle[number % len(cycle)] for cycle in (colors, _MARKERS, _LINES)))


def subject_looks(rows: pd.DataFrame) -> dict[str, Look]:
    """A look for each ``hue`` of rows of a frame that is a subject's: that of all figures, if no two are alike.
    Its framework has a colour; mode, precision, lane and environment make it lighter or darker, with their own markers.
    """
    looks = {
        row.hue: subject_look(*(getattr(row, name) for name in tidy.SUBJECT))
        for row in rows[["hue", *tidy.SUBJECT]].drop_duplicates("hue").itertuples()
    }
    return looks if len({*looks.values()}) == len(looks) else hue_looks(rows)


def hue_looks(rows: pd.DataFrame) -> dict[str, Look]:
    """A look for each ``hue`` of rows that is not a subject's: one of its framework's, or grey, if it is of several."""
    made, seen = dict[str, Look](), Counter[str]()
    for hue, of in rows.groupby("hue", sort=False)["framework"]:
        framework = of.iloc[0] if of.nunique() == 1 else ""
        made[hue] = _look(framework, seen[framework]) if framework else _cycle_look(seen[framework], GREYS)
        seen[framework] += 1
    return made


def condition_looks(conditions: Mapping[str, Condition]) -> dict[str, Look]:
    """A look for each condition, by name: of its framework's colour."""
    return hue_looks(pd.DataFrame([{"hue": name, "framework": one.framework} for name, one in conditions.items()]))


def subject_look(framework: str, environment: str, mode: str, precision: str, lane: str) -> Look:
    """The look of a subject."""
    apart = [mode != "eager", lane != "tuned", precision != "fp32", environment != DEFAULT]
    kind = sum(2**place for place, differs in enumerate(apart) if differs)
    kind += THIRD_MODE * (mode not in ("eager", "graph"))
    return _look(framework, kind)


def _look(framework: str, kind: int) -> Look:
    """The look of one kind of a framework: its colour, lighter or darker, with a marker and a line."""
    known = [*_FIRST, *sorted({*frameworks.names()} - {*_FIRST})]
    of = known.index(framework) if framework in known else len(known)
    color, shade = _COLORS[of % len(_COLORS)], SHADES[kind % len(SHADES)]
    color = tuple(part + (1 - part) * shade if shade > 0 else part * (1 + shade) for part in color)
    marker, line = (cycle[(of + step * kind) % len(cycle)] for cycle, step in ((_MARKERS, 5), (_LINES, 2)))
    return Look(color, marker, line)


def name_once(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with their subjects as :mod:`naming` calls them, and an environment that goes without saying as the default
    one, whose look is the usual one.
    """
    rows = naming.name_subjects(rows)
    for side in ("", "baseline_"):
        who, where, subject = (f"{side}{column}" for column in ("framework", "environment", "subject"))
        if who in rows and where in rows:
            unsaid = [
                pd.notna(name) and home == name and not text.startswith(f"{name} {home} ")
                for name, home, text in zip(rows[who], rows[where], rows[subject], strict=True)
            ]
            rows = rows.assign(**{where: rows[where].mask(pd.Series(unsaid, rows.index, dtype=bool), DEFAULT)})
    return rows
