"""``report.html`` and ``report.pdf``: brought up to date with the executed report, or put aside where there is none."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from benchlib.errors import BenchlibError
from benchlib.suite import records
from benchlib.suite.at_work import say
from benchlib.suite.plan import REPORT
from benchlib.suite.report.pdf import NoBrowser, print_pdf


def bring_up_to_date(folder: Path) -> bool:
    """Make ``report.html`` from the executed report, and ``report.pdf`` from that, where they are older; put them aside
    if the report failed. False if the printing failed.
    """
    record, html, pdf = records.read(folder, REPORT), folder / "report.html", folder / "report.pdf"
    if record is None or record["status"] != "succeeded":
        for page in (html, pdf):
            if page.exists():
                os.replace(page, _aside(page))
                say(f"report: it could not be made again; {_aside(page)} is that of before, of older results")
        return True
    try:
        _make_html(folder / "notebooks" / f"{REPORT}.ipynb", html)
        for page in (html, pdf):
            _aside(page).unlink(missing_ok=True)
        say(f"report: {html}")
        if _is_older(pdf, html):
            pdf.unlink(missing_ok=True)  # printed from another page: nobody shall take it for this one
            print_pdf(html, pdf, "a4", datetime.fromisoformat(record["started_utc"]))
    except NoBrowser as error:
        say(str(error))
        return True
    except BenchlibError as error:
        say(f"report: {error}")
        return False
    say(f"report: {pdf}")
    return True


def _make_html(notebook: Path, html: Path) -> None:
    if _is_older(html, notebook):
        from benchlib.suite.report.export import export_html  # nbconvert takes long to import: not for nothing

        export_html(notebook, html)


def _aside(page: Path) -> Path:
    """Where a page of the report is kept while there is none of the present results."""
    return page.with_name(f"older-{page.name}")


def _is_older(page: Path, source: Path) -> bool:
    """Is a page not there, or older than what it is made from?"""
    return not page.exists() or page.stat().st_mtime < source.stat().st_mtime
