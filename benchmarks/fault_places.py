"""Where a trial of ``faults.py`` happens: a folder of its own with outputs, temporary files and a project, and the
process that is disturbed there.
"""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import fault_judge as judge
import fault_subject as subject
import nbformat
import psutil

PDF = "pdf"
"""The suite where nothing but the report's PDF is missing."""

STARTS_WITH = {
    "pytorch": ("inputs", "certificates"),
    "mindspore": ("inputs", "certificates"),
    "pytorch_group": ("inputs",),
    "mindspore_group": ("inputs",),
}
"""What a trial finds of a run without a fault: that which takes long and is disturbed in other trials. A trial of the
others starts from nothing.
"""

CELLS = {
    "measuring": f"""import sys
sys.path[:0] = [{str(subject.ROOT)!r}, {str(subject.ROOT / "benchmarks")!r}]
import fault_subject
fault_subject.prepare()
study = fault_subject.study(outputs)""",
    "report": "print('what was measured')",
}

STAND_IN = """#!/bin/sh
# In place of Chromium: takes as long, with a process of its own.
for option; do case "$option" in --print-to-pdf=*) page="${option#--print-to-pdf=}";; esac; done
sleep 2
printf '%%PDF-1.4 of a stand-in\\n%%%%EOF\\n' > "$page"
"""


@dataclass
class Place:
    """A folder for one run, its outputs and its temporary files; :meth:`remove` it."""

    folder: Path
    kind: str
    home: Path
    cleanup: ExitStack = field(default_factory=ExitStack)  # of processes, and of what is mounted

    def __post_init__(self) -> None:
        self.outputs, self.temporary, self.project = (self.folder / name for name in ("outputs", "tmp", "project"))
        for path in (self.outputs, self.temporary, self.project, self.home):
            path.mkdir(parents=True, exist_ok=True)
        self.log = self.folder / "said.txt"
        if self.kind in (subject.SUITE, PDF):
            _make_project(self.project)
            self.browser = shutil.which("chromium")
            if self.browser is None:
                stand_in = self.folder / "bin" / "chromium"
                stand_in.parent.mkdir()
                stand_in.write_text(STAND_IN, encoding="utf-8")
                stand_in.chmod(stand_in.stat().st_mode | stat.S_IXUSR)

    def mount(self, path: Path, mib: int) -> bool:
        """Put a small file system there, where this user may."""
        command = ["mount", "-t", "tmpfs", "-o", f"size={mib}m,mode=1777", "tmpfs", str(path)]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return False
        self.cleanup.callback(subprocess.run, ["umount", "--lazy", str(path)], check=False)
        return True

    def start(self, changes: Mapping[str, str | None], file_limit: int | None = None) -> subprocess.Popen:
        """Start the process that measures; ``changes`` of its environment (None: not there), ``file_limit`` in bytes
        for each file that it or a worker writes.
        """
        search = [str(subject.ROOT), str(subject.ROOT / "benchmarks")]
        path = f"{os.environ['PATH']}:{self.folder / 'bin'}"
        own = {"PYTHONPATH": os.pathsep.join(search), "TMPDIR": str(self.temporary), "HOME": str(self.home)}
        environment = {**os.environ, "PATH": path, **own, **changes}
        kind = subject.SUITE if self.kind == PDF else self.kind
        command = [sys.executable, "-m", "fault_subject", kind, str(self.outputs)]
        if file_limit is not None:
            command = ["prlimit", f"--fsize={file_limit}", *command]
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                command,
                cwd=self.project,
                env={name: value for name, value in environment.items() if value is not None},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.cleanup.callback(_kill, process)
        return process

    def said(self) -> str:
        """What has been printed since the last time this was asked."""
        text = self.log.read_text(encoding="utf-8", errors="replace")
        self.log.rename(self.folder / f"said-{len(list(self.folder.glob('said-*')))}.txt")
        return text

    def remove(self) -> None:
        """With what still runs, and all that is mounted there."""
        self.cleanup.close()
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True)
class Template:
    """A kind's run without a fault: what is measured, and how long it takes."""

    place: Place
    rows: set[judge.Row]
    seconds: float

    def copy_to(self, place: Place) -> None:
        """What a trial of this kind finds when it starts."""
        if place.kind == PDF:
            shutil.copytree(self.place.outputs, place.outputs, dirs_exist_ok=True)
            (place.outputs / "report.pdf").unlink()
        for name in STARTS_WITH.get(place.kind, ()):
            shutil.copytree(self.place.outputs / name, place.outputs / name)


def template(place: Place, limit_s: float) -> Template:
    """Run ``place`` without a fault; a RuntimeError if that goes wrong by itself."""
    started = time.monotonic()
    process = place.start({})
    code = wait(process, limit_s)
    said = place.said()
    seconds = time.monotonic() - started
    measurements, wrong = judge.rows(place.outputs)
    if code != 0 or wrong:
        raise RuntimeError(f"without any fault, {place.kind} ended with {code}:\n{said[-3000:]}\n{wrong}")
    # The pilot is always measured; what the planner asks for after it depends on the noise.
    rows = {row for row in judge.measured(measurements) if row[1] < subject.COMPARED["pilot"]}
    return Template(place, rows, seconds)


def wait(process: subprocess.Popen, limit_s: float) -> int | None:
    """The exit code; None if it had to be killed."""
    try:
        return process.wait(limit_s)
    except subprocess.TimeoutExpired:
        _kill(process)
        return None


def workers(process: subprocess.Popen) -> list[psutil.Process]:
    """The workers of a running process: of groups the launchers, too."""
    return [one for one in _below(process) if _says(one, "worker/__main__.py")]


def kernels(process: subprocess.Popen) -> list[psutil.Process]:
    """The kernels of a running process."""
    return [one for one in _below(process) if _says(one, "ipykernel_launcher")]


def browsers(process: subprocess.Popen) -> list[psutil.Process]:
    """What prints for a running process."""
    return [one for one in _below(process) if _says(one, "--print-to-pdf")]


def _kill(process: subprocess.Popen) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _below(process: subprocess.Popen) -> list[psutil.Process]:
    try:
        return psutil.Process(process.pid).children(recursive=True)
    except psutil.Error:
        return []


def _says(process: psutil.Process, word: str) -> bool:
    try:
        return any(word in part for part in process.cmdline())
    except psutil.Error:
        return False


def _make_project(project: Path) -> None:
    """A profile with one notebook that measures, and a report."""
    (project / "parameters" / "tiny").mkdir(parents=True)
    (project / "parameters" / "tiny" / "measuring.yaml").write_text("{}", encoding="utf-8")
    (project / "notebooks").mkdir()
    for name, source in CELLS.items():
        parameters = nbformat.v4.new_code_cell("outputs = None", metadata={"tags": ["parameters"]})
        kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
        cells = [parameters, nbformat.v4.new_code_cell(source)]
        if name != "report":
            cells[1].metadata["tags"] = ["design"]
            cells.append(nbformat.v4.new_code_cell("study.measure()\nstudy.finish()"))
        nbformat.write(
            nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernelspec}),
            project / "notebooks" / f"{name}.ipynb",
        )
