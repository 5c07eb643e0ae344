"""The experiment ``equivalence``: each workload in each framework, side by side, and proof that they are one model."""

from __future__ import annotations

import html
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Self

import pandas as pd
from matplotlib.figure import Figure
from pydantic import BaseModel, Field, model_validator

from benchlib import frameworks, workloads
from benchlib.analysis.comparison import failures
from benchlib.analysis.equivalence import Certificate
from benchlib.condition import Condition, DeviceName, WorkloadName
from benchlib.knobs import Ledger
from benchlib.lab import Lab
from benchlib.measure import gate
from benchlib.suite import figures, showing, tables
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.result import Result, data_note
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
    subjects: p.Grid[p.Subject]
    training_steps: Annotated[int, Field(ge=0, le=10_000)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        p.check_count("models, subjects", len(self.models) * len(self.subjects))
        conditions(self)
        return self


def conditions(parameters: Parameters) -> list[Condition]:
    """All conditions that will be checked."""
    return [
        p.condition(
            {
                "workload": f"models.{number}.workload",
                "data": f"models.{number}.data",
                "hyperparameters": f"models.{number}.hyperparameters",
                **dict.fromkeys(subject.choices, f"subjects.{at}"),
            },
            workload=model.workload,
            **subject.choices,
            data=model.data,
            device=parameters.device,
            hyperparameters=model.hyperparameters,
        )
        for number, model in enumerate(parameters.models)
        for at, subject in enumerate(parameters.subjects)
    ]


def measure(parameters: Parameters, lab: Lab) -> Equivalence:
    """Check, or take from disk what was checked before."""
    checked = conditions(parameters)
    notes = dict.fromkeys(data_note(condition, lab.inputs) for condition in checked)
    certificates = lab.certify(checked, training_steps=parameters.training_steps)
    return Equivalence(lab, _Checked(checked, certificates), list(notes))


@dataclass(frozen=True)
class _Checked:
    """Conditions with their certificates, as a :class:`Result` takes what was measured."""

    conditions: list[Condition]
    certificates: dict[str, Certificate]  # by condition key

    def failures(self) -> pd.DataFrame:
        return failures([], self.certificates.values())

    def files(self) -> list[str]:
        return []

    def ledger(self) -> Ledger:
        return Ledger(list(self.certificates.values()))


class Equivalence(Result):
    """The certificates as a table and a figure, what was settled and neutralised, and the files side by side."""

    notebook = "equivalence"
    in_report = ("neutralised", "inputs")
    title = "Equivalence"

    def __init__(self, lab: Lab, checked: _Checked, notes: list[str]) -> None:
        super().__init__(lab.folder, [checked], notes)
        self.files = {
            certificate.condition: lab.certificate_path(certificate.condition).stem
            for certificate in checked.certificates.values()
        }
        self.checked = [(condition, checked.certificates[condition.key]) for condition in checked.conditions]

    def findings(self) -> list[str]:
        """How many models are the reference's, and which are not."""
        same = [condition for condition, certificate in self.checked if certificate.same]
        others = [
            f"{condition.workload} in {condition.subject}: {certificate.verdict}"
            + (f" ({certificate.reason})" if certificate.reason else "")
            + "; there is no ratio of it."
            for condition, certificate in self.checked
            if not certificate.same
        ]
        return [
            f"{len(same)} of {len(self.checked)} models compute what the reference computes, within the tolerance of "
            f"each quantity, in every trial.{_rounding(one for _, one in self.checked)}",
            *others,
            *_unexercised(self.checked),
            _of_training([one for condition, one in self.checked if workloads.load(condition.workload).learning_rate]),
        ]

    def tables(self) -> dict[str, tuple[str, pd.DataFrame]]:
        """``certificates``, ``settled``, ``neutralised`` and ``inputs``."""
        references = showing.references(certificate for _, certificate in self.checked)
        return {
            "certificates": (
                f"Largest relative difference from the reference, {references}, by quantity, and how much is allowed. "
                "Every trial counts; worst is the largest difference, with those that rounding explains, because the "
                "reference differs from itself by as much there: forgiven says how many.",
                self._certificates(),
            ),
            "settled": (
                "What had to be settled in each workload's files so that all frameworks run the same model, and how. "
                "It stays so when speed is measured.",
                self._settled(),
            ),
            "neutralised": (
                "What was set for the check only, and why.",
                self._neutralised(),
            ),
            "inputs": ("Hashes of what all frameworks were given.", self._inputs()),
        }

    @figures.styled
    def draw(self) -> dict[str, tuple[str, Figure]]:
        """``differences``."""
        frame = self._certificates()
        if not len(frame):
            return {}
        # Predictions are allowed no difference at all: none is 0 of it, any is too much.
        share = (frame["difference"] / frame["tolerance"]).mask(frame["difference"] == 0, 0.0)
        frame = frame.assign(label=frame["workload"] + ", " + frame["subject"], share=share)
        looks = figures.looks(frame["quantity"])
        figure, (axes,) = figures.panels(1, 1, height=0.6 + 0.2 * frame["label"].nunique())
        figures.dot_panel(axes, frame, looks, "share", "largest relative difference / tolerance", "label", "quantity")
        axes.axvline(1, color="0.2", linewidth=0.8)
        caption = (
            "How far each model is from the reference, relative to what is allowed: left of the line is the same "
            "model. A difference of 0 is drawn at the left edge."
        )
        return {"differences": (caption, figures.finish(figure, looks))}

    def show_sources(self) -> HTML:
        """The files of each workload, one framework beside the other."""
        from IPython.display import HTML

        parts = []
        for name in dict.fromkeys(condition.workload for condition, _ in self.checked):
            workload = workloads.load(name)
            offered = sorted(workload.frameworks(), key=frameworks.rank)
            files = [(workloads.folder(name) / f"{each}.py").read_text(encoding="utf-8") for each in offered]
            columns = "".join(f"<pre>{html.escape(text)}</pre>" for text in files)
            parts.append(
                f"<h3>{html.escape(workload.title)} (<code>{name}</code>)</h3><p>{html.escape(workload.source)}.</p>"
                f'<div class="side-by-side">{columns}</div>'
            )
        return HTML(_STYLE + "".join(parts))

    def _certificates(self) -> pd.DataFrame:
        rows = [
            {
                "workload": condition.workload,
                "subject": condition.subject,
                "verdict": certificate.verdict,
                "quantity": check.name,
                "difference": check.difference,
                "worst": check.worst,
                "forgiven": len(check.forgiven),
                "tolerance": check.tolerance,
                "trials": certificate.trials,
                tables.FILES: self.files[certificate.condition],
            }
            for condition, certificate in self.checked
            for check in certificate.checks
        ]
        columns = ["workload", "subject", "verdict", "trials", "quantity", "difference", "worst", "forgiven"]
        columns += ["tolerance", tables.FILES]
        return pd.DataFrame(rows, columns=columns)

    def _settled(self) -> pd.DataFrame:
        rows = [
            {"workload": name, "what": what, "how": how}
            for name in dict.fromkeys(condition.workload for condition, _ in self.checked)
            for what, how in workloads.load(name).settled.items()
        ]
        return pd.DataFrame(rows, columns=["workload", "what", "how"])

    def _neutralised(self) -> pd.DataFrame:
        rows = []
        for condition, certificate in self.checked:
            for name in gate.REASONS:
                usual, value = getattr(condition, name), getattr(certificate.condition, name)
                if value != usual:
                    rows.append(
                        {
                            "workload": condition.workload,
                            "what": name,
                            "usually": str(usual),
                            "here": str(value),
                            "why": gate.REASONS[name],
                        }
                    )
            for name, value in certificate.neutralised.items():
                usual = condition.hyperparameters.get(name, "as it is")
                rows.append(
                    {
                        "workload": condition.workload,
                        "what": name,
                        "usually": str(usual),
                        "here": str(value),
                        "why": gate.reason(certificate.condition, name),
                    }
                )
        return pd.DataFrame(rows, columns=["workload", "what", "usually", "here", "why"]).drop_duplicates()

    def _inputs(self) -> pd.DataFrame:
        rows = [{"workload": condition.workload, **certificate.inputs} for condition, certificate in self.checked]
        return pd.DataFrame(rows).drop_duplicates()


def _rounding(certificates: Iterable[Certificate]) -> str:
    forgiven = [one for one in certificates if any(check.forgiven for check in one.checks)]
    if not forgiven:
        return ""
    who = ", ".join(dict.fromkeys(f"{one.condition.workload} in {one.condition.subject}" for one in forgiven))
    return f" Of {who} rounding explains some differences: the reference differs from itself by as much there."


def _of_training(certificates: list[Certificate]) -> str:
    made = [one for one in certificates if one.training]
    if not made:
        return "A longer training was not compared here: the profile release does that."
    least = min(one.training for one in made)
    return (
        f"Of {len(made)} of the {len(certificates)} that train, at least {least} steps of training were compared, too."
    )


def _unexercised(checked: Iterable[tuple[Condition, Certificate]]) -> list[str]:
    """A sentence for each workload about what its data can contain, and what was compared did not."""
    unmet = {condition.workload: one.unexercised for condition, one in checked if one.unexercised}
    return [
        f"{name}: no sample that was compared has {', '.join(some)}: what the model does with it was not seen."
        for name, some in unmet.items()
    ]


_STYLE = """<style>
.side-by-side {display: grid; grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr); gap: 1em}
.side-by-side pre {font-size: 0.62em; line-height: 1.25; white-space: pre-wrap; overflow-wrap: anywhere}
</style>"""
