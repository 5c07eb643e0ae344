"""How sure the results are: what identical processes show against each other, and how far models differ."""

from __future__ import annotations

from typing import Any

import pandas as pd
from IPython.display import HTML

from benchlib import tables, workloads
from benchlib.equivalence import gate
from benchlib.equivalence.certificate import Certificate, unexercised
from benchlib.equivalence.tolerances import DROPOUT_TOLERANCES
from benchlib.plotting import naming
from benchlib.stats.comparison import is_within
from benchlib.suite.report.gathered import Gathered


def controls(report: Gathered) -> dict[str, pd.DataFrame]:
    """By notebook, the rows of its frame that are an A/A with an interval."""
    columns = ["estimate", "low", "high", "margin"]
    by_notebook = {
        name: frame.loc[frame["quantity"] == "control_ratio", columns].dropna(subset=columns[:3])
        for name, frame in report.frames.items()
    }
    return {name: rows for name, rows in by_notebook.items() if len(rows)}


def resolution(report: Gathered) -> HTML:
    """What the A/A controls of each notebook show: how often their interval includes 1, how often it lies within
    the margin of 1, and how wide it is.
    """
    rows = [{"notebook": notebook, **resolved(frame)} for notebook, frame in controls(report).items()]
    if not rows:
        return tables.bullets(["No A/A was measured: nothing is known of the resolution."])
    caption = (
        "The baseline against itself (A/A). About 19 of 20 intervals should include 1; a difference smaller than "
        "the half width cannot be seen. Within the margin (what its notebook calls the same) an interval shows "
        "that the two differ by no more. A comparison that two notebooks show counts in each of them."
    )
    return tables.html(pd.DataFrame(rows), caption)


def resolved(rows: pd.DataFrame) -> dict[str, Any]:
    """What the A/A controls in some rows of a frame show, as a row of a table."""
    low, high = rows["low"], rows["high"]
    half = 50 * (high - low) / rows["estimate"]
    including, within = ((low <= 1) & (high >= 1)).sum(), is_within(low, high, rows["margin"]).sum()
    return {
        "comparisons": len(rows),
        "A/A interval includes 1": f"{including} of {len(rows)}",
        "within the margin of 1": f"{within} of {len(rows)}",
        "half_width_median": half.median(),
        "half_width_largest": half.max(),
    }


def certificates(report: Gathered) -> HTML:
    """Is each condition's model the reference's, and how far apart are they? Those that are not, one by one."""
    every = report.certificates
    if not every:
        return tables.bullets(["No model was checked."])
    named = naming.subjects(one.condition for one in every)
    rows = [_certified(certificate, named[certificate.condition]) for certificate in every]
    names = ["workload", "subject", "device", "verdict"]
    checks = list(dict.fromkeys(name for row in rows for name in row if name not in names))
    groups = pd.DataFrame(rows, columns=[*names, *checks]).groupby(names, sort=False)
    frame = groups[checks].max().map("{:.1e}".format).replace("nan", tables.MISSING).reset_index()
    frame.insert(3, "conditions", groups.size().to_numpy())
    caption = (
        f"Equivalence: largest relative difference from the reference, {tables.references(every)}, in the "
        "same state on the same batches, over the conditions that were checked and all trials; less what rounding "
        "explains, which the certificates have, with what dropout was seen to do."
    )
    return HTML(tables.html(frame, caption).data + tables.bullets([*_neutralised(every), *_unexercised(every)]).data)


def _certified(certificate: Certificate, subject: str) -> dict[str, Any]:
    condition, verdict = certificate.condition, certificate.verdict
    if not certificate.same:
        verdict = f"{verdict}: {condition} {certificate.reason}".strip()
    checks = {check.name: check.difference for check in certificate.checks if check.name not in DROPOUT_TOLERANCES}
    named = {"workload": condition.workload, "subject": subject, "device": condition.device}
    return {**named, "verdict": verdict, **checks}


def _neutralised(every: list[Certificate]) -> list[str]:
    """For each workload what was switched off or set for the gate only, and why."""
    sentences = (
        f"{workloads.load(certificate.condition.workload).name}, for the gate only: {name} {value} "
        f"({gate.reason(certificate.condition, name)})."
        for certificate in every
        for name, value in certificate.neutralised.items()
    )
    return list(dict.fromkeys(sentences))


def _unexercised(every: list[Certificate]) -> list[str]:
    """For each workload what its data can contain, and the samples that were compared did not, or not all of it."""
    return [
        f"{name}, not exercised, or not in full, by the samples of a comparison: {'; '.join(some)}."
        for name, some in unexercised(every).items()
    ]
