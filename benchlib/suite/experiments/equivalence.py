"""The experiment ``equivalence``: each workload in each framework, side by side, and proof that they are one model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Self

import pandas as pd
from pydantic import BaseModel, Field, model_validator

from benchlib import tables, workloads
from benchlib.condition import Condition, DeviceName, WorkloadName
from benchlib.equivalence import gate
from benchlib.equivalence.certificate import Certificate, unexercised
from benchlib.lab import Lab
from benchlib.plotting import Differences, Picture, naming
from benchlib.study import data_note
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments import side_by_side, subjects
from benchlib.suite.experiments.result import Declaration, Gathered, Result
from benchlib.tables import Listed
from benchlib.validation import Strict

if TYPE_CHECKING:
    from IPython.display import HTML


class Model(BaseModel):
    """A workload with the sizes in which it is checked."""

    model_config = Strict.model_config

    workload: WorkloadName
    data: str
    hyperparameters: dict[str, Any]


class Parameters(p.Parameters):
    """Each model in each subject, against the reference."""

    models: p.Grid[Model]
    device: DeviceName
    subjects: p.Subjects[p.Subject]
    training_steps: Annotated[int, Field(ge=0, le=10_000)]  # to be compared, too; 0: none

    @model_validator(mode="after")
    def _fits(self) -> Self:
        p.check_count("models, subjects", len(self.models) * len(self.subjects))
        conditions(self)
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be checked."""
    return [
        condition
        for number, model in enumerate(parameters.models)
        for condition in subjects.conditions(
            parameters,
            "subjects",
            **{name: (f"models.{number}.{name}", getattr(model, name)) for name in Model.model_fields},
        )
    ]


def measure(parameters: Parameters, lab: Lab) -> Equivalence:
    """Check, or take from disk what was checked before."""
    models = [model.workload for model in parameters.models]
    absent = subjects.left_out(parameters.subjects, models, [parameters.device])
    return Equivalence(lab, conditions(parameters), parameters.training_steps, absent)


class Equivalence(Result):
    """The certificates as a table and a figure, what was settled and neutralised, and the files side by side."""

    def __init__(self, lab: Lab, conditions: list[Condition], training_steps: int, absent: Sequence[str]) -> None:
        certificates = lab.certify(conditions, training_steps=training_steps)
        notes = [*(data_note(condition, lab.inputs) for condition in conditions), *absent]
        references = tables.references(certificates.values())
        super().__init__(_declaration(references), lab.folder, [Gathered(conditions, certificates)], notes)
        self.certificates = certificates
        self.checked = [(condition, certificates[condition.key]) for condition in conditions]

    @property
    def workloads(self) -> list[str]:
        """The names of those that were checked."""
        return list(dict.fromkeys(condition.workload for condition, _ in self.checked))

    def show_sources(self) -> HTML:
        """The files of each workload, one framework beside the other."""
        return side_by_side.html(self.workloads)


def _findings(result: Equivalence) -> Iterator[str]:
    """How many models are the reference's, and which are not; what was not seen of them."""
    same = sum(certificate.same for _, certificate in result.checked)
    yield (
        f"{same} of the {len(result.checked)} models that this notebook checks (what others time is checked there) "
        "compute what the reference computes, within the tolerance of each quantity, in every trial."
        f"{_rounding(one for _, one in result.checked)}"
    )
    named = naming.subjects(condition for condition, _ in result.checked)
    for condition, certificate in result.checked:
        if not certificate.same:
            why = f" ({certificate.why})" if certificate.why else ""
            yield f"{condition.workload} in {named[condition]}: {certificate.verdict}{why}; there is no ratio of it."
    for name, some in unexercised(certificate for _, certificate in result.checked).items():
        yield (
            f"{name}: of what its data can contain, the samples that were compared have only in part, or not: "
            f"{'; '.join(some)}. What the model does with the rest was not seen."
        )
    yield _of_training([one for condition, one in result.checked if workloads.load(condition.workload).learning_rate])


def _rounding(certificates: Iterable[Certificate]) -> str:
    every = list(certificates)
    forgiven = [one for one in every if any(check.forgiven for check in one.checks)]
    if not forgiven:
        return ""
    named = naming.subjects(one.condition for one in every)
    who = ", ".join(dict.fromkeys(f"{one.condition.workload} in {named[one.condition]}" for one in forgiven))
    return (
        f" Of {who} rounding explains some differences: the reference differs from itself by as much there, to a "
        "factor of two."
    )


def _of_training(certificates: list[Certificate]) -> str:
    lengths = [one.training for one in certificates if one.training]
    if not lengths:
        return "A longer training was not compared here: the profile release does that."
    return (
        f"Of {len(lengths)} of the {len(certificates)} that train, the losses of at least {min(lengths)} steps of "
        "training were compared, too (of deep convolutional models from the same weights before each, of what rounding "
        "parts before every second)."
    )


def _certificates(result: Equivalence) -> pd.DataFrame:
    named = naming.subjects(condition for condition, _ in result.checked)
    return pd.DataFrame(
        {
            "workload": condition.workload,
            "subject": named[condition],
            "verdict": certificate.verdict,
            "trials": certificate.trials,
            "quantity": check.name,
            "difference": check.difference,
            "worst": check.worst,
            "forgiven": len(check.forgiven),
            "tolerance": check.tolerance,
            tables.FILES: certificate.file,
        }
        for condition, certificate in result.checked
        for check in certificate.checks
    )


def _settled(result: Equivalence) -> pd.DataFrame:
    return pd.DataFrame(
        {"workload": name, "what": what, "how": how}
        for name in result.workloads
        for what, how in workloads.load(name).settled.items()
    )


def _neutralised(result: Equivalence) -> pd.DataFrame:
    return pd.DataFrame(one for pair in result.checked for one in _neutral(*pair)).drop_duplicates()


def _neutral(condition: Condition, certificate: Certificate) -> Iterator[dict[str, str]]:
    """What was another in the check than it is usually."""
    checked, sizes = certificate.condition, condition.hyperparameters
    changes = {name: (getattr(condition, name), getattr(checked, name), why) for name, why in gate.REASONS.items()}
    changes = {name: change for name, change in changes.items() if change[0] != change[1]}
    for name, value in certificate.neutralised.items():
        changes[name] = (sizes.get(name, "as it is"), value, gate.reason(checked, name))
    for name, (usual, value, why) in changes.items():
        yield {"workload": condition.workload, "what": name, "usually": str(usual), "here": str(value), "why": why}


def _inputs(result: Equivalence) -> pd.DataFrame:
    rows = [{"workload": condition.workload, **certificate.inputs} for condition, certificate in result.checked]
    return pd.DataFrame(rows).drop_duplicates()


def _declaration(references: str) -> Declaration:
    return Declaration(
        notebook="equivalence",
        title="Equivalence",
        question="Are the files of a workload one model in every framework?",
        in_report=("neutralised", "inputs"),
        tables={
            "certificates": Listed(
                f"Largest relative difference from the reference, {references}, by quantity, and how much is allowed. "
                "Every trial counts; worst is the largest difference, with those that rounding explains, because the "
                "reference differs from itself by as much there: forgiven says how many.",
                _certificates,
            ),
            "settled": Listed(
                "What had to be settled in each workload's files so that all frameworks run the same model, and how. "
                "It stays so when speed is measured.",
                _settled,
            ),
            "neutralised": Listed("What was set for the check only, and why.", _neutralised),
            "inputs": Listed("Hashes of what all frameworks were given.", _inputs),
        },
        figures={
            "differences": Picture(
                caption="How far each model is from the reference, relative to what is allowed: left of the line is "
                "the same model. The quantity that is farthest, in its framework's colour, is named. What is less than "
                "a ten-thousandth of what is allowed, as a difference of 0, is drawn at the left edge.",
                panels=[Differences()],
            )
        },
        findings=[_findings],
    )
