"""Execution of notebooks with papermill, in kernels of this interpreter. Only the return of :func:`execute` is proof: a
saved notebook whose kernel was killed in its last cell looks finished.
"""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path
from typing import Any

import nbformat
import papermill
import scrapbook
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import DeadKernelError
from papermill.exceptions import PapermillExecutionError
from traitlets import default
from traitlets.config import Config

from benchlib import env_vars, scratch
from benchlib.errors import REMEDIES, write_error

MEMORY = "give it more memory, or choose smaller parameters, and run again: the measurements are kept"
LONGEST_FOLDER = 80  # characters; a socket's name has at most 107
START_S = 300  # until a kernel has to answer, on a disk that is slow and a machine that is busy


class NotebookFailed(Exception):
    """A notebook did not get to its end: in which cell, and why; ``exception`` names the exception of the cell."""

    def __init__(self, cell: str, text: str, exception: str = "") -> None:
        super().__init__(f"{cell}: {text}")
        self.cell, self.text, self.exception = cell, text, exception


class Kernel(AsyncKernelManager):
    """Finds no kernelspec but ipykernel's own, which is this interpreter's, whatever is installed as "python3"."""

    @default("kernel_spec_manager")
    def _native(self) -> KernelSpecManager:
        return KernelSpecManager(kernel_dirs=[])

    async def start_kernel(self, **options: Any) -> None:
        """Without the settings of Python that the user's shell has."""
        await super().start_kernel(env=env_vars.for_programs(os.environ), **options)


def execute(notebook: Path, parameters: dict[str, Any], output: Path) -> dict[str, Any] | None:
    """Execute ``notebook``, saving to ``output`` after each cell; return the ``summary`` that it glued, if any.

    Raises NotebookFailed if a cell fails, the kernel dies or does not start, or the notebook ends itself early.
    """
    try:
        output.unlink(missing_ok=True)
        with scratch.scratch("kernel") as folder:
            # Sockets in the kernel's own folder, where their names fit: two kernels could be given one TCP port.
            transport = "ipc" if len(str(folder)) < LONGEST_FOLDER else "tcp"
            kernel = {"connection_file": str(folder / "connection.json"), "transport": transport}
            executed = papermill.execute_notebook(
                notebook,
                output,
                parameters,
                kernel_name="python3",
                language="python",
                progress_bar=False,
                kernel_manager_class=Kernel,
                config=Config({"Kernel": kernel}),
                # A user's start-up files are for their own notebooks, and a folder's json.py stands in for no module.
                extra_arguments=[f"--ipython-dir={folder}", "--ignore-cwd", "--log-level=CRITICAL"],
                start_timeout=START_S,
                shutdown_kernel="immediate",  # all is on disk after the last cell, and Ctrl-C should not wait
            )
    except PapermillExecutionError as error:
        raise NotebookFailed(_cell(error.exec_count, error.source), _cell_failure(error), error.ename) from error
    except Exception as error:  # a dead kernel, one that does not start ...: the other notebooks go on
        raise NotebookFailed(_last_cell(output), _kernel_failure(error, output)) from error
    finally:
        scratch.remove_stale()  # of workers whose kernel was killed
    if executed.metadata.papermill.exception:
        raise NotebookFailed(_last_cell(output), "the notebook ended itself before its last cell (sys.exit)")
    summary = scrapbook.models.Notebook(executed).scraps.get("summary")
    return None if summary is None else summary.data


def _cell_failure(error: PapermillExecutionError) -> str:
    """Why a cell failed."""
    if error.ename == "CellExecutionError" and not error.evalue:  # papermill's word for: it failed, and showed no error
        return f"the kernel said no error, only that the cell failed. Where it had no memory left to say it, {MEMORY}"
    text = _plain(f"{error.ename}: {error.evalue}").rstrip(":")
    return f"{text}: {MEMORY}" if error.ename == "MemoryError" else text


def _kernel_failure(error: Exception, output: Path) -> str:
    """Why a notebook failed of which no cell failed."""
    if isinstance(error, OSError) and error.errno in REMEDIES:
        return write_error(error, f"{output} (or a temporary file in {tempfile.gettempdir()})")
    if isinstance(error, DeadKernelError):
        return f"the kernel was killed, or ended itself. Where the system did that for want of memory, {MEMORY}"
    return f"{_plain(f'{type(error).__name__}: {error}')}. Run again: the measurements are kept"


def _last_cell(output: Path) -> str:
    """The last cell that was started. A file that was cut is taken away: others need the room."""
    try:
        cells = nbformat.read(output, as_version=4).cells if output.exists() else []
    except (OSError, ValueError):
        output.unlink(missing_ok=True)
        return "a cell that is not known"
    code = [cell for cell in cells if cell.cell_type == "code"]
    started = [cell for cell in code if cell.metadata.get("papermill", {}).get("start_time")]
    return _cell(len(started), started[-1].source) if started else "its start"


def _cell(count: int, source: str) -> str:
    return f"In [{count}] ({source.strip().partition(chr(10))[0][:80]})"


def _plain(text: str) -> str:
    """Without the terminal colours that IPython puts into errors."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).strip()
