"""What people read of who was measured: an environment that is called like its framework goes without saying ("jax
graph tuned"), where the framework is not in the default one beside it. A condition's own text says all of it, always.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd

from benchlib.condition import Condition, implementation
from benchlib.environments import DEFAULT

Home = tuple[str, str]
"""A framework and its environment."""


def implementations(homes: Iterable[Home]) -> dict[Home, str]:
    """Of those that are shown together, what each is called."""
    every = dict.fromkeys(homes)
    return {
        (name, where): name if name == where and (name, DEFAULT) not in every else implementation(name, where)
        for name, where in every
    }


def subjects(conditions: Iterable[Condition]) -> dict[Condition, str]:
    """Of conditions that are shown together, what the subject of each is called."""
    every = list(conditions)
    named = implementations((one.framework, one.environment) for one in every)
    return {one: named[one.framework, one.environment] + one.subject.removeprefix(one.implementation) for one in every}


def in_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of a frame with their subjects, and those of their baselines, as they are called."""
    sides = [side for side in ("", "baseline_") if f"{side}framework" in rows and f"{side}environment" in rows]
    homes = (
        pair for side in sides for pair in rows[[f"{side}framework", f"{side}environment"]].itertuples(index=False)
    )
    for home, name in implementations(tuple(pair) for pair in homes if all(map(pd.notna, pair))).items():
        full = f"{implementation(*home)} "
        for side in sides if full != f"{name} " else ():
            subject = rows[f"{side}subject"]
            longer = (rows[f"{side}framework"] == home[0]) & (rows[f"{side}environment"] == home[1])
            longer &= subject.str.startswith(full, na=False)
            shorter = f"{name} " + subject.str.removeprefix(full)
            rows = rows.assign(**{f"{side}subject": subject.mask(longer, shorter)})
    return rows


def implementation_of(row: Mapping[str, Any]) -> str:
    """Framework and environment of a row, as its subject names them."""
    full = implementation(row["framework"], row["environment"])
    return full if row["subject"].startswith(f"{full} ") else row["framework"]
