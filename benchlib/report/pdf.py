"""An HTML page printed to PDF by Chromium, with the layout of the page's own style."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from benchlib import env_vars, scratch
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
    """Print the page ``html`` to ``pdf``, whole or not at all; ``date`` is the one that the PDF names.

    The same page, paper and date give the same bytes. Raises NoBrowser, or another BenchlibError if it fails.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise NoBrowser("no PDF was made, for there is no Chromium here: install it, or print the page in any browser")
    # Beside the PDF: a Chromium that is a snap has a /tmp of its own, and would print that this is empty.
    page, printed = pdf.with_name(f".partial-{pdf.stem}.html"), pdf.with_name(f".partial-{pdf.name}")
    try:
        text = re.sub("<script>.*?</script>", "", html.read_text(encoding="utf-8"), flags=re.DOTALL)
        text = text.replace("<details>", "<details open>")
        page.write_text(text.replace("</head>", f"<style>@page {{ size: {paper} }}</style></head>", 1), "utf-8")
        with scratch.scratch("chromium") as profile:
            folders = [f"--user-data-dir={profile}", f"--print-to-pdf={printed.absolute()}"]
            wrong = _run([browser, *OPTIONS, *folders, page.absolute().as_uri()])
        if not printed.is_file() or not printed.read_bytes().rstrip().endswith(b"%%EOF"):  # cut by a full disk
            wrong = wrong or "exit code 0, no whole file"
        if wrong:
            raise BenchlibError(f"{browser} failed to print {html} to {pdf.name}: {wrong}; print it in any browser")
        printed.write_bytes(_reproducible(printed.read_bytes(), date))
        os.replace(printed, pdf)
    finally:
        page.unlink(missing_ok=True)
        printed.unlink(missing_ok=True)


def _run(command: list[str]) -> str:
    """Run a browser to its end, with all of its processes; return its error."""
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    given = env_vars.for_programs(os.environ)
    with subprocess.Popen(command, start_new_session=True, env=given, **pipes) as process:
        try:
            output = process.communicate(timeout=PATIENCE_S)[0].decode(errors="replace").strip()
        except subprocess.TimeoutExpired:
            return f"it had not ended after {PATIENCE_S} s"
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
    return f"exit code {process.returncode}: {output[-500:]}" if process.returncode else ""


def _reproducible(pdf: bytes, date: datetime) -> bytes:
    """Replace the dates by ``date``, and the names of parts by numbers from 0, in as many bytes."""
    stamp = f"D:{date.astimezone(UTC):%Y%m%d%H%M%S}+00'00'".encode()
    pdf = re.sub(rb"(?<=Date \()D:\d{14}\+00'00'(?=\))", stamp, pdf)
    first = min(map(int, NODE.findall(pdf)), default=0)
    return NODE.sub(lambda number: b"%08d" % (int(number[0]) - first), pdf)
