"""Executes one notebook in a kernel of this interpreter.

A saved notebook is no evidence of success: one whose kernel was killed in its last cell looks finished. What counts is
that :func:`execute` returned; until then its output is to be taken for a part.
"""

from __future__ import annotations

import os
import re
import signal
import site
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any, ClassVar

import nbformat
import papermill
import scrapbook
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from papermill.exceptions import PapermillExecutionError
from papermill.iorw import papermill_io
from traitlets import default
from traitlets.config import Config

from benchlib import scratch
from benchlib.errors import UNWRITABLE, unwritable
from benchlib.suite import pool


def _users_packages() -> str:
    """Where this interpreter has packages of the user's, if the kernel would not find that itself without Python's
    variables; "none" where it has none.
    """
    if not site.ENABLE_USER_SITE:
        return "none"
    is_usual = site.getuserbase() == os.path.join(os.path.expanduser("~"), ".local")
    return "usual" if is_usual else site.getusersitepackages()


KERNEL = [
    sys.executable,
    "-E",
    *([] if _users_packages() == "usual" else ["-s"]),
    "-P",
    pool.KERNEL_FILE,
    _users_packages(),
    "-f",
    "{connection_file}",
    "--log-level=CRITICAL",
    "--InteractiveShellApp.exec_PYTHONSTARTUP=False",
]
"""The command of the kernel, which heeds nothing of Python's that the user has set, but for where it finds packages of
the user's (PYTHONNOUSERSITE, PYTHONUSERBASE): there as this process does. ipykernel ends itself within about
a second of its parent's death (``JPY_PARENT_PID``). Its log is not wanted in the terminal: it calls the interrupt that
is part of every shutdown an error.
"""

MEMORY = (
    "give it more memory (a limit of a container, of a batch job or of ulimit counts, too), or choose smaller "
    "parameters, and run again: what was measured is kept"
)

AGAIN = "Run again: what was measured is kept"

START_S = 300  # until a kernel has to answer, on a disk that is slow and a machine that is busy


class NotebookFailed(Exception):
    """A notebook did not get to its end: in which cell, and why; ``exception`` names what the cell raised."""

    def __init__(self, cell: str, text: str, exception: str = "") -> None:
        super().__init__(f"{cell}: {text}")
        self.cell = cell
        self.text = text
        self.exception = exception


class ThisInterpreter(AsyncKernelManager):
    """Starts the kernel with this Python, whatever kernelspecs are installed under the notebook's kernel name. Its
    files, and those of IPython (a user's own might start something), are in the folder of its connection file.

    What is said between this process and the kernel is encrypted: others may use the machine too.
    """

    last: ClassVar[threading.local] = threading.local()
    """Its ``exit_code`` is that of this thread's last kernel; None: it was ended."""

    @property
    def kernel_spec(self) -> KernelSpec:
        metadata = {"supported_encryption": ["curve"]}
        own = {"IPYTHONDIR": str(Path(self.connection_file).parent)}
        return KernelSpec(argv=KERNEL, display_name="Python 3", language="python", metadata=metadata, env=own)

    async def cleanup_resources(self, restart: bool = False) -> None:
        process = self.provisioner.process if self.provisioner else None
        ThisInterpreter.last.exit_code = process.poll() if process else None
        await super().cleanup_resources(restart)

    @default("transport_encryption")
    def _transport_encryption_default(self) -> str:
        return "auto"


def execute(notebook: Path, parameters: dict[str, Any], output: Path) -> dict[str, Any] | None:
    """Execute ``notebook`` with ``parameters`` in the working directory, saving to ``output`` after each cell.

    Returns what the notebook glued as ``summary``, None if it glued none. Raises NotebookFailed if a cell fails, the
    kernel dies or does not start, or the notebook ends itself before its last cell.
    """
    try:
        output.unlink(missing_ok=True)
        executed = _executed(notebook, parameters, output)
    except PapermillExecutionError as error:
        pool.require_going()
        raise NotebookFailed(_cell(error.exec_count, error.source), _of_cell(error), error.ename) from error
    except Exception as error:  # a dead kernel, one that does not start ...: the other notebooks go on
        pool.require_going()
        raise NotebookFailed(_last_cell(output), _of_kernel(error, output)) from error
    if executed.metadata.papermill.exception:
        raise NotebookFailed(_last_cell(output), "the notebook ended itself before its last cell (sys.exit)")
    summary = scrapbook.read_notebook(str(output)).scraps.get("summary")
    return None if summary is None else summary.data


def _executed(notebook: Path, parameters: dict[str, Any], output: Path) -> nbformat.NotebookNode:
    """What papermill makes of the notebook. Nothing but ``output`` is left of it, nor of the workers of a kernel that
    was ended.
    """
    try:
        with scratch.scratch("kernel") as folder:
            return papermill.execute_notebook(
                notebook,
                output,
                parameters,
                kernel_name="python3",
                language="python",
                progress_bar=False,
                kernel_manager_class=ThisInterpreter,
                config=Config({"ThisInterpreter": {"connection_file": str(folder / "connection.json")}}),
                start_timeout=START_S,
                shutdown_kernel="immediate",  # all is on disk after the last cell, and nobody wants to wait for Ctrl-C
            )
    finally:
        scratch.remove_stale()
        # Of several notebooks at once, papermill would keep the directory of one for all that come later.
        papermill_io.get_handler("local").cwd(None)


def _of_cell(error: PapermillExecutionError) -> str:
    """Why a cell failed."""
    if error.ename == "CellExecutionError" and not error.evalue:  # papermill's word for: it failed, and showed no error
        return f"the kernel said no error, only that the cell failed. Where it had no memory left to say it, {MEMORY}"
    text = _plain(f"{error.ename}: {error.evalue}")
    return f"{text.rstrip(':')}: the kernel got no more memory: {MEMORY}" if error.ename == "MemoryError" else text


def _of_kernel(error: Exception, output: Path) -> str:
    """Why a notebook failed that no cell failed of. A kernel that did not answer in time was ended by us."""
    code = getattr(ThisInterpreter.last, "exit_code", None)
    if isinstance(error, OSError) and error.errno in UNWRITABLE:
        place = f"{output} (or a temporary file in {tempfile.gettempdir()})"
        return f"{unwritable(error, place)}; what was measured is kept"
    if isinstance(error, RuntimeError) and "died" in str(error) and code is not None:  # DeadKernelError, and at start
        if code == -signal.SIGKILL:
            return f"the kernel was killed (SIGKILL). Where the system did that for want of memory, {MEMORY}"
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        return f"the kernel ended by itself ({how}); what it said went to the terminal. {AGAIN}"
    if isinstance(error, RuntimeError):
        return f"{_plain(str(error))}. {AGAIN}"
    return _plain(f"{type(error).__name__}: {error}")


def _last_cell(output: Path) -> str:
    """The last cell that was started. A file that was cut is taken away: it tells nothing, and others need the room."""
    try:
        cells = nbformat.read(output, as_version=4).cells if output.exists() else []
    except (OSError, ValueError):
        output.unlink(missing_ok=True)
        return "a cell that is not known"
    code = [cell for cell in cells if cell.cell_type == "code"]
    started = [cell for cell in code if cell.metadata.get("papermill", {}).get("start_time")]
    return _cell(len(started), started[-1].source) if started else "its start"


def _cell(count: int, source: str) -> str:
    lines = [line.strip() for line in source.splitlines() if line.strip()]
    return f"In [{count}] ({lines[0][:80]})" if lines else f"In [{count}]"


def _plain(text: str) -> str:
    """Without the terminal colours that IPython puts into errors."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).strip()
