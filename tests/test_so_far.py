"""The page of a run that is at work: what there is, what is still to come, and never in the way of the report."""

from __future__ import annotations

from pathlib import Path

import explored
import pytest

from benchlib.suite import pages
from benchlib.suite.report import so_far


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(explored.ROOT)
    return tmp_path


def test_it_has_what_is_there_and_says_what_is_to_come(project: Path) -> None:
    explored.results(project, explored.COMPARED[2:])
    pages.SoFar(project, ["modes", "scaling", "report"]).done("modes", executed=True)
    page = (project / "report.html").read_text(encoding="utf-8")
    assert "At work." in page
    assert "still to come: scaling, report." in page
    assert page.count("<tr class=") == 2, "a ratio and what it is relative to"
    assert "What does graph mode give?" in page
    assert so_far.APPENDIX.removeprefix("## ") not in page, "that takes long, and is of no use yet"
    assert list(project.glob(".so-far*")) == []


def test_what_was_not_executed_and_the_last_one_make_no_page(project: Path) -> None:
    of_run = pages.SoFar(project, ["modes", "scaling", "report"])
    of_run.done("modes", executed=False)
    of_run.done("scaling", executed=True)
    of_run.done("report", executed=True)
    assert not (project / "report.html").exists(), "the report itself comes next"


def test_what_goes_wrong_with_it_stops_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(so_far, "write", full)
    pages.SoFar(project, ["modes", "scaling", "report"]).done("modes", executed=True)
    assert "report: what there is so far cannot be shown (OSError" in capsys.readouterr().out
