"""What findings have in common: rows of the tidy frame in words."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

from benchlib.stats.comparison import DISTURBED, MODELS_DIFFER, MODELS_NOT_CHECKED, NOT_MEASURED, SLOWS_DOWN
from benchlib.suite import tables
from benchlib.suite.selections import verdict

NO_RATIO = {
    MODELS_DIFFER: "no ratio: the models differ (see the certificates)",
    MODELS_NOT_CHECKED: "no ratio: the models could not be checked",
    NOT_MEASURED: "no ratio: not measured (see what failed)",
    SLOWS_DOWN: "no ratio: one of the two keeps getting slower, so there is no throughput to compare",
    DISTURBED: "no ratio: more than half of its rounds were disturbed in every take (see that the machine is quiet, "
    "delete the measurements and run again)",
}
"""What a sentence says instead of a ratio, by why there is none."""


def ratio_text(row: pd.Series) -> str:
    """A row of a ratio: the ratio, its verdict, and the A/A control, which says what can be resolved, if it has one."""
    control = _control_text(row)
    return f"{_verdict_text(row)} ({control})" if control else _verdict_text(row)


MANY = 6  # ratios of a sentence that lists them


def ratios_text(rows: pd.DataFrame, name: Callable[[pd.Series], str] = lambda row: row["subject"]) -> str:
    """Rows of a ratio, each with its ``name``; of many, how often they have which verdict, and both ends. The A/A
    control that all of those named share is said once.
    """
    known = rows.dropna(subset="estimate")
    if len(rows) <= MANY or not len(known):
        return _listed([row for _, row in rows.iterrows()], [f"{name(row)} " for _, row in rows.iterrows()])
    ends = [known.loc[at] for at in (known["estimate"].idxmin(), known["estimate"].idxmax())]
    named = [f"{which} {name(row)} " for which, row in zip(("lowest", "highest"), ends, strict=True)]
    return f"{counts_text(rows)}; {_listed(ends, named)}"


def _listed(rows: list[pd.Series], names: list[str]) -> str:
    controls = [control for row in rows if (control := _control_text(row))]
    if len(controls) < 2 or len({*controls}) > 1:
        return "; ".join(f"{name}{ratio_text(row)}" for name, row in zip(names, rows, strict=True))
    said = "; ".join(f"{name}{_verdict_text(row)}" for name, row in zip(names, rows, strict=True))
    return f"{said} (of all: {controls[0]})"


def _verdict_text(row: pd.Series) -> str:
    if pd.isna(row["verdict"]):
        return NO_RATIO[row["why"]]
    return f"{interval_text(row, ratio=True)}, {row['verdict']}"


def _control_text(row: pd.Series) -> str:
    """The A/A of a ratio; empty, if there is no ratio, or its comparison has none."""
    if pd.isna(row["verdict"]) or (pd.isna(row["control"]) and pd.isna(row["control_why"])):
        return ""
    if row["control_why"] == DISTURBED:
        return "no A/A: more than half of its rounds were disturbed, so what can be resolved is not known"
    control = tables.ratio(row["control"], row["control_low"], row["control_high"])
    if math.isfinite(row["control_low"]) and not row["control_low"] <= 1 <= row["control_high"]:
        control += ", which excludes 1: the baseline differs from itself, so a difference of that size shows nothing"
    return f"A/A {control}"


def interval_text(row: pd.Series, quantity: str = "", ratio: bool = False) -> str:
    """The estimate of a row, or of a quantity beside it, with its interval."""
    ends = (quantity, f"{quantity}_low", f"{quantity}_high") if quantity else ("estimate", "low", "high")
    return (tables.ratio if ratio else tables.interval)(*(row[name] for name in ends))


def counts_text(rows: pd.DataFrame) -> str:
    """How often rows of a ratio have which verdict: faster, slower, the same, undecided, or none."""
    verdicts = pd.Series([verdict(row) for _, row in rows.iterrows()])
    return ", ".join(f"{name} at {count}" for name, count in verdicts.value_counts().items())


def span_text(values: list[float], digits: int) -> str:
    """The least and the most of some values."""
    return ends_text([tables.number(value, digits) for value in sorted(values)])


def ends_text(ordered: list[str]) -> str:
    """The first and the last of some texts, or the one that they all are."""
    return ordered[0] if ordered[0] == ordered[-1] else f"{ordered[0]} to {ordered[-1]}"
