"""The report: what all notebooks of a profile gave, gathered from their summaries and measurements."""

from __future__ import annotations

from pathlib import Path

from benchlib import records
from benchlib.condition import Condition
from benchlib.lab import Lab
from benchlib.suite.experiments import parameters as p
from benchlib.suite.report import certainty, glance, page_one, questions, results, setting
from benchlib.suite.report.gathered import Gathered


class Parameters(p.Parameters):
    """The report has none."""


def conditions(parameters: Parameters) -> list[Condition]:
    """The report measures nothing."""
    return []


class Report(Gathered):
    """What the notebook ``report`` shows, part by part."""

    def __init__(self, lab: Lab) -> None:
        notebooks = {*records.names(lab.folder), *(path.stem for path in Path("notebooks").glob("[!.]*.ipynb"))}
        super().__init__(lab, sorted(notebooks - {"report"}, key=lambda name: (name == "claims", name)))

    show_first_page = page_one.picture
    show_questions = questions.questions
    show_believed = questions.of_certainty
    show_resolution = certainty.resolution
    show_certificates = certainty.certificates
    show_missing = results.missing
    show_glance = glance.glance
    show_verdicts = results.verdicts
    show_findings = results.findings
    show_notes = results.notes
    show_others = questions.others
    show_compared = setting.compared
    show_machine = setting.machine
    show_knobs = setting.ledger
    show_settings = setting.settings
    show_failures = results.failures
    show_again = results.again
