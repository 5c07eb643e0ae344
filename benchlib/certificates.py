"""Certificates as people read them: tables and sentences of the models that a study has certified."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

import pandas as pd

from benchlib import frameworks, tables, workloads
from benchlib.condition import Condition
from benchlib.equivalence import gate
from benchlib.equivalence.certificate import Certificate, unexercised
from benchlib.plotting import naming
from benchlib.study import Study

if TYPE_CHECKING:
    from IPython.display import HTML


def checked(study: Study) -> list[tuple[Condition, Certificate]]:
    """The conditions that were certified, in order."""
    return [(one, study.certificates[one.key]) for one in study.every]


def same_models(study: Study) -> Iterator[str]:
    """How many models are the reference's, and which are not; what was not seen of them."""
    every = checked(study)
    named = naming.subjects(study.every)
    same = sum(certificate.same for _, certificate in every)
    yield (
        f"{same} of the {len(every)} models that this notebook checks compute what the reference computes, within the "
        "tolerance of each quantity, in every trial."
    )
    forgiven = [one for one, certificate in every if any(check.forgiven for check in certificate.checks)]
    if forgiven:
        who = ", ".join(f"{one.workload} in {named[one]}" for one in forgiven)
        yield f"Rounding explains some differences of {who}: the reference differs from itself by as much there."
    for one, certificate in every:
        if not certificate.same:
            why = f" ({certificate.why})" if certificate.why else ""
            yield f"{one.workload} in {named[one]}: {certificate.verdict}{why}; there is no ratio of it."
    for name, some in unexercised(certificate for _, certificate in every).items():
        yield f"{name}: not seen, or in part, for no sample that was compared has it: {'; '.join(some)}."
    trained = [certificate.training for _, certificate in every if certificate.training]
    if trained:
        yield f"Of {len(trained)} models the losses of at least {min(trained)} steps of training were compared, too."


def differences(study: Study) -> pd.DataFrame:
    """The largest difference of each quantity of each model, and what is allowed."""
    named = naming.subjects(study.every)
    return pd.DataFrame(
        {
            "workload": one.workload,
            "subject": named[one],
            "verdict": certificate.verdict,
            "trials": certificate.trials,
            "quantity": check.name,
            "difference": check.difference,
            "worst": check.worst,
            "forgiven": len(check.forgiven),
            "tolerance": check.tolerance,
            tables.FILES: certificate.file,
        }
        for one, certificate in checked(study)
        for check in certificate.checks
    )


def settled(study: Study) -> pd.DataFrame:
    """What the files of each workload settle."""
    names = dict.fromkeys(one.workload for one in study.every)
    rows = ((name, *pair) for name in names for pair in workloads.load(name).settled.items())
    return pd.DataFrame(rows, columns=["workload", "what", "how"])


def neutralised(study: Study) -> pd.DataFrame:
    """What was another in the check than it is usually."""
    return pd.DataFrame(one for pair in checked(study) for one in _neutral(*pair)).drop_duplicates()


def _neutral(condition: Condition, certificate: Certificate) -> Iterator[dict[str, str]]:
    gated, sizes = certificate.condition, condition.hyperparameters
    changes = {name: (getattr(condition, name), getattr(gated, name), why) for name, why in gate.REASONS.items()}
    changes = {name: change for name, change in changes.items() if change[0] != change[1]}
    for name, value in certificate.neutralised.items():
        changes[name] = (sizes.get(name, "as it is"), value, gate.reason(gated, name))
    for name, (usual, value, why) in changes.items():
        yield {"workload": condition.workload, "what": name, "usually": str(usual), "here": str(value), "why": why}


def inputs(study: Study) -> pd.DataFrame:
    """Hashes of what all frameworks were given."""
    rows = [{"workload": one.workload, **certificate.inputs} for one, certificate in checked(study)]
    return pd.DataFrame(rows).drop_duplicates()


def side_by_side(study: Study) -> HTML:
    """The files of each workload, one framework beside the other."""
    from IPython.display import HTML

    parts = [_STYLE]
    for name in dict.fromkeys(one.workload for one in study.every):
        workload = workloads.load(name)
        offered = sorted(frameworks.of(workload), key=frameworks.rank)
        files = [workloads.file(name, each).read_text(encoding="utf-8") for each in offered]
        parts += [f"<h3>{escape(workload.title)} (<code>{name}</code>)</h3><p>{escape(workload.source)}.</p>"]
        parts += ['<div class="side-by-side">', *(f"<pre>{escape(text)}</pre>" for text in files), "</div>"]
    return HTML("".join(parts))


_STYLE = """<style>
.side-by-side {display: grid; grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr); gap: 1em}
.side-by-side pre {font-size: 0.62em; line-height: 1.25; white-space: pre-wrap; overflow-wrap: anywhere}
</style>"""
