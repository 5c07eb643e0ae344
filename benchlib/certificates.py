"""Certificates as people read them: tables and sentences of the models that a study has certified."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

import pandas as pd

from benchlib import frameworks, tables, workloads
from benchlib.condition import Condition
from benchlib.equivalence import gate
from benchlib.equivalence.certificate import Certificate, coverage_gaps
from benchlib.plotting import naming
from benchlib.study import Study

if TYPE_CHECKING:
    from IPython.display import HTML


def certified_conditions(study: Study) -> list[tuple[Condition, str, Certificate]]:
    """The conditions that were certified, in order, with the names of their subjects."""
    named = naming.subjects(study.every)
    return [(one, tables.spelled(named[one]), study.certificates[one.key]) for one in study.every]


def same_models(study: Study) -> Iterator[str]:
    """The number of models that are the reference's, those that are not, and the cases that were not seen."""
    every = certified_conditions(study)
    certificates = [certificate for _, _, certificate in every]
    same = sum(one.same for one in certificates)
    yield f"{same} of the {len(every)} models that this notebook checks compute the same as the reference."
    for one, who, certificate in every:
        if not certificate.same:
            yield f"{one.workload} in {who}: {certificate.verdict} ({certificate.why}); there is no ratio of it."
    if without := {f"{one.workload} in {who}": its.without_masks for one, who, its in every if its.without_masks}:
        because = "; ".join(f"{name}, because {why}" for name, why in without.items())
        yield f"Dropout at work in the largest batch was not compared in {because}."
    for name, some in coverage_gaps(certificates).items():
        yield f"{name}: not seen, or in part, for no sample that was compared has it: {'; '.join(some)}."
    if trained := [one.training for one in certificates if one.training]:
        yield f"Of {len(trained)} models the losses of at least {min(trained)} steps of training were compared, too."


def differences(study: Study) -> pd.DataFrame:
    """The largest difference of each quantity of each model, and its tolerance."""
    return pd.DataFrame(
        {
            "workload": one.workload,
            "subject": who,
            "verdict": certificate.verdict,
            "trials": certificate.trials,
            "quantity": check.name,
            "difference": check.difference,
            "worst": check.worst,
            "reference": check.own,
            "tolerance": check.tolerance,
            tables.FILES: certificate.file,
        }
        for one, who, certificate in certified_conditions(study)
        for check in certificate.checks
    )


def settled(study: Study) -> pd.DataFrame:
    """The decisions that the files of each workload record."""
    names = dict.fromkeys(one.workload for one in study.every)
    rows = ((name, *pair) for name in names for pair in workloads.load(name).settled.items())
    return pd.DataFrame(rows, columns=["workload", "what", "how"])


def neutralised(study: Study) -> pd.DataFrame:
    """The settings that the check changes, and why."""
    rows = []
    for one, _, certificate in certified_conditions(study):
        gated = certificate.condition
        changes = [(name, getattr(one, name), getattr(gated, name), why) for name, why in gate.REASONS.items()]
        changes = [change for change in changes if change[1] != change[2]]
        for name, value in certificate.neutralised.items():
            changes.append((name, one.hyperparameters.get(name, "as it is"), value, gate.reason(gated, name)))
        rows += [(one.workload, name, str(usual), str(value), why) for name, usual, value, why in changes]
    return pd.DataFrame(rows, columns=["workload", "what", "usually", "here", "why"]).drop_duplicates()


def side_by_side(study: Study) -> HTML:
    """The files of each workload, one framework beside the other."""
    from IPython.display import HTML

    grid = "display: grid; grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr); gap: 1em"
    style, parts = "font-size: 0.62em; line-height: 1.25; white-space: pre-wrap; overflow-wrap: anywhere", []
    for name in dict.fromkeys(one.workload for one in study.every):
        workload = workloads.load(name)
        offered = sorted(frameworks.of_workload(workload), key=frameworks.rank)
        files = [workloads.file(name, each).read_text(encoding="utf-8") for each in offered]
        parts += [f"<h3>{escape(workload.title)} (<code>{name}</code>)</h3><p>{escape(workload.source)}.</p>"]
        columns = "".join(f'<pre style="{style}">{escape(text)}</pre>' for text in files)
        parts.append(f'<div style="{grid}">{columns}</div>')
    return HTML("".join(parts))
