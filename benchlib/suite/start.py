"""The start page of ``make lab``: each notebook with its question, where it stands, and links; and JupyterLab on it."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from benchlib.errors import BenchlibError
from benchlib.suite import opened, outputs
from benchlib.suite.at_work import say
from benchlib.suite.plan import gathers, parameter_files

PAGE = Path("outputs", "start.md")

SETTINGS = Path(__file__).parent / "jupyterlab"
"""JupyterLab's defaults here: Markdown opens as it reads. What a user has set in JupyterLab wins over them. (An address
with ``?factory=Markdown Preview`` would do, too, but JupyterLab prints a broken one when it adds its token to that.)
"""

_QUESTION = re.compile(r"\*\*The question\.\*\*\s*(.+?)(?:\n\s*\n|\Z)", re.DOTALL)


def open_lab(profile: str, more: Iterable[str] = ()) -> None:
    """Write the start page for ``profile``, and become JupyterLab, opened on it, with ``more`` options of its own. The
    working directory is the project's folder.
    """
    page = write(profile)
    options = [
        "--ServerApp.root_dir=.",
        f"--LabApp.app_settings_dir={SETTINGS}",
        f"--LabApp.default_url=/lab/tree/{page.as_posix()}",
        *more,
    ]
    if os.geteuid() == 0 and "--allow-root" not in options:
        say("where JupyterLab refuses to run as root: benchlib lab -- --allow-root, or make lab ARGS=--allow-root")
    os.execv(sys.executable, [sys.executable, "-m", "jupyterlab", *options])


def write(profile: str) -> Path:
    """Write the start page; its path."""
    states = outputs.states(profile)
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(_page(profile, states), encoding="utf-8")
    return PAGE


def _page(profile: str, states: list[outputs.State]) -> str:
    files = parameter_files(profile)
    rows = "\n".join(_row(state, *_opens(state.name, files, profile)) for state in states)
    html = Path("outputs", profile, "report.html")
    report = f"The [report]({_link(html)}) of the last run is there. " if html.exists() else ""
    return f"""# benchlib

Profile `{profile}`, as of {_local(datetime.now(UTC))}. {report}What a result means: [README](../README.md).

Open a notebook, change its values below *# Parameters* if you like, and choose *Run > Run All Cells*: only what is new
is measured. To measure more of what is there, change its `precision` or `budget_s`, or run
`make report PROFILE={profile} MINUTES=10`.
*Kernel > Interrupt Kernel* stops the workers and keeps what was measured. A notebook opens with the parameters of
`{profile}`, in a copy of yours in `outputs/{profile}/{opened.FOLDER}`.

| notebook | question | state | result |
|---|---|---|---|
{rows}

**run**: its result is there, made of what is here now. **stale**: there is one, made of something else. **failed**: it
stopped at an error. **missing**: there is none. What you run here stays in the notebook and changes no state:
`make report PROFILE={profile}` runs what is not *run*, with what was measured here, and `make lab PROFILE={profile}`
writes this page anew.
"""


def _opens(name: str, files: dict[str, Path], profile: str) -> tuple[Path | None, str]:
    """What opens where a notebook's name is clicked, None if nothing can; and what is to be said of it."""
    notebook = Path("notebooks", f"{name}.ipynb")
    if not notebook.exists() or (name not in files and not gathers(name)):
        return None, ""
    try:
        path, changed = opened.copy(notebook, files.get(name), profile)
    except (BenchlibError, ValueError, KeyError):  # state or question say what is wrong with file or notebook
        return None, ""
    return path, f" (with changes of yours; without `{path}` it is made anew)" if changed else ""


def _row(state: outputs.State, opens: Path | None, remark: str) -> str:
    name = (f"[{state.name}]({_link(opens)})" if opens else state.name) + remark
    date = f" {_local(datetime.fromisoformat(state.started_utc))}" if state.started_utc else ""
    why = f": {_cell(state.why)}" if state.why else ""
    executed = f"[executed]({_link(state.executed)})" if state.executed else ""
    question = _cell(_question(Path("notebooks", f"{state.name}.ipynb")))
    return f"| {name} | {question} | **{state.word}**{date}{why} | {executed} |"


def _question(notebook: Path) -> str:
    """What the notebook asks, from its first cell of text; without a question, what that says below its title."""
    # Not with nbformat: its import takes longer than all the rest of a start.
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError):
        return "(the notebook cannot be read)"
    text = next(("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"), "")
    question = _QUESTION.search(text)
    return question[1] if question else text.partition("\n\n")[2].partition("\n\n")[0]


def _local(time: datetime) -> str:
    return f"{time.astimezone():%Y-%m-%d %H:%M}"


def _cell(text: str) -> str:
    """Text for a cell of a table: one line, and no stroke that would end it."""
    return " ".join(text.split()).replace("|", "\\|")


def _link(path: Path) -> str:
    """As the page names a file of the project; JupyterLab follows relative links."""
    return Path(os.path.relpath(path, PAGE.parent)).as_posix()
