"""The start page of ``make lab``: each notebook with its question, its state and links; and JupyterLab on it.

Notebooks open as copies beside a profile's results, with the profile's parameters.
"""

from __future__ import annotations

import contextlib
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
from benchlib.suite import outputs
from benchlib.suite.plan import gathers, parameter_files, planned
from benchlib.suite.run_lock import say

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
    states, files = outputs.states(profile), parameter_files(profile)
    rows = "\n".join(_row(state, files.get(state.name), profile) for state in states)
    html = Path("outputs", profile, "report.html")
    report = f"The [report]({_link(html)}) of the last run is there. " if html.exists() else ""
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(_PAGE.format(profile=profile, now=_local(datetime.now(UTC)), report=report, rows=rows), "utf-8")
    return PAGE


_PAGE = """# benchlib

Profile `{profile}`, as of {now}. {report}What a result means: [README](../README.md).

Open a notebook, change its values below *# Parameters* if you like, and choose *Run > Run All Cells*: only what is new
is measured. *Kernel > Interrupt Kernel* stops the workers and keeps what was measured. What you open is your copy, in
`outputs/{profile}/lab`; what you run there changes no state below. `make report PROFILE={profile} MINUTES=10` measures
more of what is there; `make lab PROFILE={profile}` writes this page again.

| notebook | question | state | result |
|---|---|---|---|
{rows}

**run**: its result is there, made of what is here now. **stale**: there is one, made of something else. **failed**: it
stopped at an error. **missing**: there is none. `make report PROFILE={profile}` runs what is not *run*.
"""


def copy(notebook: Path, file: Path | None, profile: str) -> tuple[Path, bool]:
    """The path of a notebook's copy with the parameters in ``file``, and whether somebody has changed its cells.

    One that was changed is left as it is; outputs are no change.
    """
    import papermill  # it takes long to import

    logging.getLogger("papermill").setLevel(logging.ERROR)
    path = Path("outputs", profile, FOLDER, notebook.name)
    values = {**planned(notebook.stem, file).parameters, "outputs": ".."}  # from the copy's folder
    made = papermill.execute_notebook(notebook, None, values, prepare_only=True, progress_bar=False)
    made.metadata.benchlib = _digest(made)
    if path.exists():
        try:
            there = nbformat.read(path, as_version=4)
        except ValueError:
            return path, True
        if there.metadata.get("benchlib") != _digest(there):
            return path, True
        if _digest(there) == _digest(made):
            return path, False
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(made, path)
    return path, False


def _digest(notebook: nbformat.NotebookNode) -> str:
    """Of the cells without their outputs."""
    return manifest.digest([[cell.cell_type, cell.source] for cell in notebook.cells])


def _row(state: outputs.State, file: Path | None, profile: str) -> str:
    name, notebook = state.name, Path("notebooks", f"{state.name}.ipynb")
    with contextlib.suppress(BenchlibError):  # of which the state tells
        if notebook.exists() and (file or gathers(name)):
            path, changed = copy(notebook, file, profile)
            name = f"[{name}]({_link(path)})"
            name += f" (with changes of yours; delete `{path}` to have it anew)" if changed else ""
    date = f" {_local(datetime.fromisoformat(state.started_utc))}" if state.started_utc else ""
    why = f": {_cell(state.why)}" if state.why else ""
    executed = f"[executed]({_link(state.executed)})" if state.executed else ""
    return f"| {name} | {_cell(question(state.name))} | **{state.word}**{date}{why} | {executed} |"


def question(name: str) -> str:
    """What a notebook asks, from its first cell of text; without a question, what that says below its title."""
    try:
        text = next((one.source for one in cells(Path("notebooks", f"{name}.ipynb")) if one.kind == "markdown"), "")
    except BenchlibError:
        return ""
    found = _QUESTION.search(text)
    return found[1] if found else text.partition("\n\n")[2].partition("\n\n")[0]


def _local(time: datetime) -> str:
    return f"{time.astimezone():%Y-%m-%d %H:%M}"


def _cell(text: str) -> str:
    """Text for a cell of a table: one line, and no stroke that would end it."""
    return " ".join(text.split()).replace("|", "\\|")


def _link(path: Path) -> str:
    """As the page names a file of the project; JupyterLab follows relative links."""
    return Path(os.path.relpath(path, PAGE.parent)).as_posix()
