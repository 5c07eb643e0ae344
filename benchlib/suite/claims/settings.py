"""What a case was measured with, against what the work says that it used."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pandas as pd

from benchlib import workloads
from benchlib.suite import published
from benchlib.suite.claims.verdicts import Case
from benchlib.suite.published import Claim

OTHER_DATA, OTHER_WORKLOAD = "on stand-in data", "with other workloads than the work's"
OTHER_THRESHOLD, OTHER_EPOCHS = "to another threshold than the work's", "after another number of epochs than the work's"
"""How what was measured here differs from what the work says that it used."""


class Setting(NamedTuple):
    """What a case was measured with, as :class:`Case` takes it."""

    told: str = ""
    stands_in: tuple[str, ...] = ()

    def of(self, case: Case) -> Case:
        """The case with this setting."""
        return replace(case, setting=self.told, stands_in=self.stands_in)


def setting_of(claim: Claim, row: pd.Series, *told: str, threshold: float | None = None) -> Setting:
    """What a row of a frame was measured with, on which data and perhaps to which threshold, against what the work says
    that it used.
    """
    workload, data = row["workload"], row["data"]
    used = published.sources()[claim.source].used
    theirs = published.threshold(claim.source, workload) if threshold is not None else None
    to = [] if threshold is None else [f"to {_value(workload, threshold)}"]
    the_work, stands_in = "", ()
    if workload not in used:
        the_work, stands_in = f"the work: {', '.join(used)}", (OTHER_WORKLOAD,)
    elif data != used[workload]:
        reached = "" if theirs is None else f" to {_value(workload, theirs)}"
        the_work, stands_in = f"the work: {used[workload]}{reached}", (OTHER_DATA,)
    elif theirs is not None and theirs != threshold:
        the_work, stands_in = f"the work: to {_value(workload, theirs)}", (OTHER_THRESHOLD,)
    return Setting("; ".join(filter(None, [*told, *to, the_work])), stands_in)


def _value(workload: str, value: float) -> str:
    """Of a workload's metric, as people read it."""
    metric = workloads.load(workload).metric
    return f"{100 * value:g} %" if metric == "accuracy" else f"{metric.upper()} {value:g}"
