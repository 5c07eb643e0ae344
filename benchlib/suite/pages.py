"""``report.html`` and ``report.pdf``: brought up to date with the executed report, or removed where there is none."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from benchlib import manifest
from benchlib.errors import BenchlibError
from benchlib.report.pdf import NoBrowser, print_pdf
from benchlib.suite.profile import REPORT
from benchlib.suite.run_lock import say


def bring_up_to_date(folder: Path) -> bool:
    """Make the pages anew unless they are of this report; remove them if it failed. False if the printing failed."""
    record, html, pdf = manifest.read(folder, REPORT), folder / "report.html", folder / "report.pdf"
    if record is None or record["status"] != "succeeded":
        for page in (html, pdf):
            page.unlink(missing_ok=True)  # of older results
        return True
    notebook = folder / "notebooks" / f"{REPORT}.ipynb"
    try:
        if not _is_made_of(html, notebook, record):
            from benchlib.report.export import export_html  # nbconvert takes long to import: not for nothing

            export_html(notebook, html)
            _keep(folder, record, [notebook, html])
        say(f"report: {html}")
        if not _is_made_of(pdf, html, record):
            pdf.unlink(missing_ok=True)  # printed from another page: must not be taken for this one
            print_pdf(html, pdf, "a4", datetime.fromisoformat(record["started_utc"]))
            _keep(folder, record, [notebook, html, pdf])
    except NoBrowser as error:
        say(str(error))
        return True
    except BenchlibError as error:
        say(f"report: {error}")
        return False
    say(f"report: {pdf}")
    return True


def _is_made_of(page: Path, source: Path, record: dict[str, Any]) -> bool:
    """Are both as they were when the page was made? By their contents: a clock that jumps makes old pages look new."""
    made = record.get("pages", {})
    return all(one.exists() and manifest.digest(one.read_bytes()) == made.get(one.name) for one in (page, source))


def _keep(folder: Path, record: dict[str, Any], files: list[Path]) -> None:
    """Write the hashes of these files, each made of the one before it, into the report's record."""
    record["pages"] = {file.name: manifest.digest(file.read_bytes()) for file in files}
    manifest.write(manifest.path_of(folder, REPORT), record)
