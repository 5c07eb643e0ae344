"""Executes one notebook in a kernel of this interpreter.

A saved notebook is no evidence of success: one whose kernel was killed in its last cell looks finished. What counts is
that :func:`execute` returned; until then its output is to be taken for a part.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import nbformat
import papermill
import scrapbook
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from papermill.exceptions import PapermillExecutionError
from traitlets import default

KERNEL = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}", "--log-level=CRITICAL"]
"""The command of the kernel. ipykernel ends itself within about a second of its parent's death (``JPY_PARENT_PID``).
Its log is not wanted in the terminal: it calls the interrupt that is part of every shutdown an error."""


class NotebookFailed(Exception):
    """A notebook did not get to its end: in which cell, and why."""

    def __init__(self, cell: str, text: str) -> None:
        super().__init__(f"{cell}: {text}")
        self.cell = cell
        self.text = text


class ThisInterpreter(AsyncKernelManager):
    """Starts the kernel with this Python, whatever kernelspecs are installed under the notebook's kernel name.

    What is said between this process and the kernel is encrypted: others may use the machine too.
    """

    @property
    def kernel_spec(self) -> KernelSpec:
        metadata = {"supported_encryption": ["curve"]}
        return KernelSpec(argv=KERNEL, display_name="Python 3", language="python", metadata=metadata)

    @default("transport_encryption")
    def _transport_encryption_default(self) -> str:
        return "auto"


def execute(notebook: Path, parameters: dict[str, Any], output: Path) -> dict[str, Any] | None:
    """Execute ``notebook`` with ``parameters`` in the working directory, saving to ``output`` after each cell.

    Returns what the notebook glued as ``summary``, None if it glued none. Raises NotebookFailed if a cell fails, the
    kernel dies or does not start, or the notebook ends itself before its last cell.
    """
    output.unlink(missing_ok=True)
    try:
        executed = papermill.execute_notebook(
            notebook,
            output,
            parameters,
            kernel_name="python3",
            language="python",
            progress_bar=False,
            kernel_manager_class=ThisInterpreter,
            shutdown_kernel="immediate",  # all is on disk after the last cell, and after Ctrl-C nobody wants to wait
        )
    except PapermillExecutionError as error:
        raise NotebookFailed(_cell(error.exec_count, error.source), _plain(f"{error.ename}: {error.evalue}")) from error
    except Exception as error:  # a dead kernel, one that does not start ...: the other notebooks go on
        raise NotebookFailed(_last_cell(output), _plain(f"{type(error).__name__}: {error}")) from error
    if executed.metadata.papermill.exception:
        raise NotebookFailed(_last_cell(output), "the notebook ended itself before its last cell (sys.exit?)")
    summary = scrapbook.read_notebook(str(output)).scraps.get("summary")
    return None if summary is None else summary.data


def _last_cell(output: Path) -> str:
    """The last cell that was started."""
    if not output.exists():
        return "its start"
    code = [cell for cell in nbformat.read(output, as_version=4).cells if cell.cell_type == "code"]
    started = [cell for cell in code if cell.metadata.get("papermill", {}).get("start_time")]
    return _cell(len(started), started[-1].source) if started else "its start"


def _cell(count: int, source: str) -> str:
    lines = [line.strip() for line in source.splitlines() if line.strip()]
    return f"In [{count}] ({lines[0][:80]})" if lines else f"In [{count}]"


def _plain(text: str) -> str:
    """Without the terminal colours that IPython puts into errors."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text).strip()
