"""The start page of ``make lab``: each notebook with its question, its last run and a copy to open; and JupyterLab."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

import nbformat

from benchlib import manifest
from benchlib.errors import BenchlibError
from benchlib.notebooks import cells
from benchlib.progress import say
from benchlib.suite.profile import gathers, notebooks, parameter_files, path_of, plan_notebook

PAGE = Path("outputs", "start.md")
FOLDER = "lab"  # of the copies, in a folder of results
SETTINGS = Path(__file__).parent / "jupyterlab"  # defaults: Markdown opens as it reads. A user's own win over them
_QUESTION = re.compile(r"\*\*The question\.\*\*\s*(.+?)(?:\n\s*\n|\Z)", re.DOTALL)


def open_lab(profile: str, more: Iterable[str] = ()) -> None:
    """Write the start page for ``profile``, and become JupyterLab, opened on it, with ``more`` options of its own."""
    options = ["--ServerApp.root_dir=.", f"--LabApp.app_settings_dir={SETTINGS}"]
    options += [f"--LabApp.default_url=/lab/tree/{write(profile).as_posix()}", *more]
    if os.geteuid() == 0 and "--allow-root" not in options:
        say("where JupyterLab refuses to run as root: benchlib lab -- --allow-root, or make lab ARGS=--allow-root")
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *options])


def write(profile: str) -> Path:
    """Write the start page; its path."""
    files, html = parameter_files(profile), Path("outputs", profile, "report.html")
    rows = "\n".join(_row(name, files.get(name), profile) for name in notebooks())
    report = f"The [report]({_link(html)}) of the last run is there. " if html.exists() else ""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(_PAGE.format(profile=profile, now=_local(datetime.now(UTC)), report=report, rows=rows), "utf-8")
    return PAGE


_PAGE = """# benchlib

Profile `{profile}`, as of {now}. {report}The meaning of results: [README](../README.md).

Open a notebook, change its values below *# Parameters* if you like, and choose *Run > Run All Cells*: only new
conditions are measured. *Kernel > Interrupt Kernel* stops the workers and keeps the measurements. The notebook is your
copy, in `outputs/{profile}/lab`; its runs do not change the table below. `make lab PROFILE={profile}` writes this page
again; `make report PROFILE={profile} MINUTES=10` makes the results more precise.

| notebook | question | last run |
|---|---|---|
{rows}

`make report PROFILE={profile}` runs the notebooks that have not run, have failed, or are stale.
"""


def copy(notebook: Path, file: Path | None, profile: str) -> tuple[Path, bool]:
    """A notebook's copy with the parameters in ``file``; if a user has changed its cells, as it is, and True."""
    import papermill  # it takes long to import

    logging.getLogger("papermill").setLevel(logging.ERROR)
    path = Path("outputs", profile, FOLDER, notebook.name)
    values = {**plan_notebook(notebook.stem, file).parameters, "outputs": ".."}  # from the copy's folder
    made = papermill.execute_notebook(notebook, None, values, prepare_only=True, progress_bar=False)
    made.metadata.benchlib = _digest(made)
    if path.exists():
        try:
            there = nbformat.read(path, as_version=4)
        except ValueError:
            return path, True
        changed = there.metadata.get("benchlib") != _digest(there)
        if changed or _digest(there) == _digest(made):
            return path, changed
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(made, path)
    return path, False


def _digest(notebook: nbformat.NotebookNode) -> str:
    """A hash of the cells without their outputs."""
    return manifest.digest([[cell.cell_type, cell.source] for cell in notebook.cells])


def _row(name: str, file: Path | None, profile: str) -> str:
    notebook, shown, asks, ran = path_of(name), name, "", _last_run(Path("outputs", profile), name)
    try:
        asks = question(notebook)
        if file or gathers(name):
            path, changed = copy(notebook, file, profile)
            shown = f"[{name}]({_link(path)})"
            shown += f" (with changes of yours; delete `{path}` to get the profile's)" if changed else ""
    except BenchlibError as error:
        ran = f"cannot run: {error}"
    # A cell is one line, without a stroke that would end it.
    row = (" ".join(text.split()).replace("|", "\\|") for text in (shown, asks, ran))
    return f"| {' | '.join(row)} |"


def _last_run(folder: Path, name: str) -> str:
    record, executed = manifest.read(folder, name), folder / "notebooks" / f"{name}.ipynb"
    if record is None:
        return "none"
    when = f"**{record['status']}** {_local(datetime.fromisoformat(record['started_utc']))}"
    if record["status"] == "failed":
        return f"{when} in {record['error']['cell']}: {record['error']['text']}"
    return f"{when}, [executed]({_link(executed)})" if executed.exists() else when


def question(notebook: Path) -> str:
    """The question of a notebook, from its first cell of text; without one, that cell's text below its title."""
    text = next((one.source for one in cells(notebook) if one.kind == "markdown"), "")
    found = _QUESTION.search(text)
    return found[1] if found else text.partition("\n\n")[2].partition("\n\n")[0]


def _local(time: datetime) -> str:
    return f"{time.astimezone():%Y-%m-%d %H:%M}"


def _link(path: Path) -> str:
    """The page's link to a file of the project; JupyterLab follows relative links."""
    return Path(os.path.relpath(path, PAGE.parent)).as_posix()
