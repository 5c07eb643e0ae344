"""An HTML page printed to PDF by Chromium. That is no Python package: where it is missing, an error says what to do.

The page's own style does the layout (``template/report/report.css``); what is set here is the paper, and the date.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from benchlib import scratch
from benchlib.errors import BenchlibError

PAPERS = ("a4", "letter")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = ("--headless", "--disable-gpu", "--no-first-run", "--no-pdf-header-footer", "--generate-pdf-document-outline")
OPTIONS += ("--no-sandbox",)  # it needs rights that containers lack; the page is ours, and runs no script here
PATIENCE_S = 120
NODE = re.compile(rb"(?<=\(node)\d{8}(?=\))")


class NoBrowser(BenchlibError):
    """There is no Chromium here to print with."""


def print_pdf(html: Path, pdf: Path, paper: str, date: datetime) -> None:
    """Print the page ``html`` to ``pdf``, which is there whole or not at all; ``date`` is the one that the PDF names.

    The same page, paper and date give the same bytes, with the same Chromium and fonts. Raises NoBrowser where there is
    no Chromium, and another BenchlibError if it fails.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise NoBrowser(
            "no PDF was made, for there is no Chromium here: install it (apt-get install chromium) and run this again, "
            "or open the HTML in any browser and print it"
        )
    # Beside the PDF: a Chromium that is a snap has a /tmp of its own, and would print that this is empty.
    page, printed = pdf.with_name(f".partial-{pdf.stem}.html"), pdf.with_name(f".partial-{pdf.name}")
    try:
        text = re.sub("<script>.*?</script>", "", html.read_text(encoding="utf-8"), flags=re.DOTALL)
        text = text.replace("<details>", "<details open>")
        style = f"<style>@page {{ size: {paper} }}</style></head>"
        page.write_text(text.replace("</head>", style, 1), encoding="utf-8")
        with scratch.scratch("chromium") as profile:
            folders = [f"--user-data-dir={profile}", f"--print-to-pdf={printed.absolute()}"]
            said = _run([browser, *OPTIONS, *folders, page.absolute().as_uri()])
        if not printed.is_file() or not printed.read_bytes().rstrip().endswith(b"%%EOF"):  # cut by a full disk
            said = said or "exit code 0, no whole file"
        if said:
            raise BenchlibError(
                f"{browser} failed to print {html} to {pdf.name}: try again, or use any browser; {said}"
            )
        printed.write_bytes(_settled(printed.read_bytes(), date))
        os.replace(printed, pdf)
    finally:
        page.unlink(missing_ok=True)
        printed.unlink(missing_ok=True)


def _run(command: list[str]) -> str:
    """Run a browser to its end, with all of its processes; what went wrong, empty if nothing did."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, start_new_session=True, **pipes) as process:
        try:
            output = process.communicate(timeout=PATIENCE_S)[0].decode(errors="replace").strip()
        except subprocess.TimeoutExpired:
            return f"it had not ended after {PATIENCE_S} s"
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
    return f"exit code {process.returncode}: {output[-500:]}" if process.returncode else ""


def _settled(pdf: bytes, date: datetime) -> bytes:
    """With ``date`` as that of creation and change, and the names of its parts (for screen readers) counted from 0:
    Chromium begins at any number. In as many bytes, because the file has a table of where everything is.
    """
    stamp = f"D:{date.astimezone(UTC):%Y%m%d%H%M%S}+00'00'".encode()
    pdf = re.sub(rb"(?<=Date \()D:\d{14}\+00'00'(?=\))", stamp, pdf)
    first = min(map(int, NODE.findall(pdf)), default=0)
    return NODE.sub(lambda number: b"%08d" % (int(number[0]) - first), pdf)
