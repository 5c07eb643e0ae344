"""Readable names of the measured subjects. An environment that is called like its framework is left out ("jax graph
tuned"), where the framework is not in the default one beside it. A condition's own text says all of it, always.
"""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from benchlib.condition import Condition, implementation
from benchlib.environments import DEFAULT
from benchlib.tables import spelled as spelled

Home = tuple[str, str]  # a framework and its environment


def implementations(homes: Iterable[Home]) -> dict[Home, str]:
    """The names of implementations that are shown together."""
    every = dict.fromkeys(homes)
    return {
        (name, where): name if name == where and (name, DEFAULT) not in every else implementation(name, where)
        for name, where in every
    }


def subjects(conditions: Iterable[Condition]) -> dict[Condition, str]:
    """The names of the subjects of conditions that are shown together."""
    every = list(conditions)
    named = implementations((one.framework, one.environment) for one in every)
    return {one: named[one.framework, one.environment] + one.subject.removeprefix(one.implementation) for one in every}


def name_subjects(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows of a frame with their subjects, and those of their baselines, as they are called."""
    sides = [side for side in ("", "baseline_") if f"{side}framework" in rows and f"{side}environment" in rows]
    homes = [zip(rows[f"{side}framework"], rows[f"{side}environment"], strict=True) for side in sides]
    named = implementations(home for each in homes for home in each if all(map(pd.notna, home)))
    shorter = {f"{implementation(*home)} ": f"{name} " for home, name in named.items() if name == home[0] == home[1]}
    for side in sides:
        subject = rows[f"{side}subject"]
        for full, name in shorter.items():
            subject = subject.mask(subject.str.startswith(full, na=False), name + subject.str.removeprefix(full))
        rows = rows.assign(**{f"{side}subject": subject})
    return rows
