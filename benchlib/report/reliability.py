"""The reliability of the results: identical processes against each other, and differences of the models."""

from __future__ import annotations

from typing import Any

import pandas as pd
from IPython.display import HTML

from benchlib import tables
from benchlib.equivalence import gate
from benchlib.equivalence.certificate import TRUST, coverage_gaps
from benchlib.equivalence.tolerances import DROPOUT_TOLERANCES
from benchlib.plotting import naming
from benchlib.report.load import Results
from benchlib.stats.comparison import is_within


def controls(results: Results) -> pd.DataFrame:
    """Return the A/A controls that have an interval."""
    return results.rows("control_ratio").dropna(subset=["estimate", "low", "high"])


def resolution(results: Results) -> HTML:
    """Show the A/A of each notebook and host: the shares that include 1 and are within the margin, and the widths."""
    groups = controls(results).fillna({"host": ""}).groupby(["notebook", "host"], sort=False)
    rows = [{"notebook": name, "host": host, **summarise(own)} for (name, host), own in groups]
    caption = (
        "The baseline against itself (A/A). About 19 of 20 intervals should include 1. A difference that is smaller "
        "than the half width cannot be seen. A ratio whose interval lies within a margin of 1 is called the same."
    )
    return tables.html(pd.DataFrame(rows), caption)


def summarise(rows: pd.DataFrame) -> dict[str, Any]:
    """Summarise some A/A."""
    half = 50 * (rows["high"] - rows["low"]) / rows["estimate"]
    return {
        "comparisons": len(rows),
        "A/A interval includes 1": f"{((rows['low'] <= 1) & (rows['high'] >= 1)).sum()} of {len(rows)}",
        "within the margin of 1": f"{is_within(rows['low'], rows['high'], rows['margin']).sum()} of {len(rows)}",
        "half_width_median": half.median(),
        "half_width_largest": half.max(),
    }


def certificates(results: Results) -> HTML:
    """Show whether each model is the reference's and how far apart they are; those that are not, one by one."""
    every = results.certificates
    if not every:
        return tables.bullets(["No model was checked."])
    named, rows, notes = naming.subjects(one.condition for one in every), [], []
    for one in every:
        workload, device = one.condition.workload, one.condition.device
        row = {"workload": workload, "subject": naming.spelled(named[one.condition]), "device": device}
        row["verdict"] = one.verdict if one.same else naming.spelled(f"{one.verdict}: {one.condition} {one.why}")
        checks = {each.name: each.difference for each in one.checks if each.name not in DROPOUT_TOLERANCES}
        rows.append(row | checks)
        for name, value in one.neutralised.items():
            notes.append(f"{workload}, for the gate only: {name} {value} ({gate.reason(one.condition, name)}).")
    groups = pd.DataFrame(rows).groupby(["workload", "subject", "device", "verdict"], sort=False)
    frame = groups.max().map("{:.1e}".format).replace("nan", tables.MISSING).reset_index()
    frame.insert(3, "conditions", groups.size().to_numpy())
    caption = (
        f"Largest relative difference from the reference, {tables.references(every)}, over all trials on the same "
        "batches. Differences that rounding explains are left out; the certificates list them."
    )
    unmet = (f"{name}, not in all that was compared: {'; '.join(some)}." for name, some in coverage_gaps(every).items())
    return HTML(tables.html(frame, caption).data + tables.bullets([*dict.fromkeys(notes), *unmet, TRUST]).data)
