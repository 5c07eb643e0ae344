"""The tables of a profile's notebooks, and which of their rows a claim is about."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from benchlib import frameworks, workloads
from benchlib.analysis.comparison import MARGIN
from benchlib.environments import DEFAULT
from benchlib.store import Store
from benchlib.suite import records, tables, tasks


class Results:
    """The tables of a profile's notebooks, as their CSV files say; each is read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._records: dict[str, dict[str, Any]] = {}
        self._frames: dict[tuple[str, str], pd.DataFrame] = {}
        self._places: dict[str, list[str]] = {}

    def parameters(self, notebook: str) -> dict[str, Any]:
        """With which a notebook ran."""
        return self._record(notebook).get("parameters", {})

    def margin(self, notebook: str) -> float:
        """Within which of 1 a ratio of a notebook's tables is the same: as the verdicts in them have it."""
        return self.parameters(notebook).get("margin", MARGIN)

    def task(self, notebook: str, name: str) -> dict[str, Any]:
        """The parameters of a notebook's task, by the name that its tables give it."""
        every = self.parameters(notebook).get("tasks", [])
        return dict(zip(tasks.names(every), every, strict=True)).get(name, {})

    def studied(self, notebook: str) -> tuple[str, str]:
        """The workload and the data of a notebook whose parameters name one of each."""
        parameters = self.parameters(notebook)
        return parameters.get("workload", notebook), parameters.get("data", "its data")

    def places(self, files: str) -> list[str]:
        """What the measurements in these files were made on, each once: the machine, and its accelerator if they used
        one. Files that cannot be read are left out; the report names them.
        """
        return list(dict.fromkeys(place for key in files.split() for place in self._places_of(key)))

    def table(self, notebook: str, name: str, *needs: str) -> pd.DataFrame:
        """Unrounded; empty where there is none, its notebook did not succeed, or it is of an older benchlib and has
        not the columns that a rule ``needs``; or where it is not the one that the notebook wrote.
        """
        if (notebook, name) not in self._frames:
            self._frames[notebook, name] = self._read(notebook, name)
        frame = self._frames[notebook, name]
        return frame if {tables.FILES, *needs} <= set(frame) else pd.DataFrame()

    def _read(self, notebook: str, name: str) -> pd.DataFrame:
        record, path = self._record(notebook), f"tables/{notebook}_{name}.csv"
        if record.get("status") != "succeeded" or path not in record["files"]:
            return pd.DataFrame()
        alone = {"files": {path: record["files"][path]}}  # of the other files nothing is read here
        if list(records.wrong_files(alone, self.folder)):
            return pd.DataFrame()  # another run, or a hand, has changed it: not what the record tells of
        return pd.read_csv(self.folder / path)

    def _record(self, notebook: str) -> dict[str, Any]:
        if notebook not in self._records:
            self._records[notebook] = records.read(self.folder, notebook) or {}
        return self._records[notebook]

    def _places_of(self, key: str) -> list[str]:
        if key not in self._places:
            try:
                measured = Store(self.folder / "measurements").documents(key)
            except (OSError, ValueError, KeyError):
                measured = []
            self._places[key] = list(dict.fromkeys(_place(m) for m in measured))
        return self._places[key]


def _place(measurement: dict[str, Any]) -> str:
    machine, device = measurement["machine"], measurement["condition"]["device"]
    used = {"cuda": machine.get("gpus", []), "npu": machine.get("npus", [])}.get(device, [])
    return ", ".join([*dict.fromkeys(used), f"{machine['cores']} cores of {machine['cpu']}"])


class Subject(NamedTuple):
    """What a table calls a subject, in its parts."""

    framework: str
    mode: str
    precision: str
    lane: str
    environment: str = DEFAULT

    @classmethod
    def of(cls, subject: str) -> Subject:
        framework, *words, lane = subject.split()
        precision = (
            "fp32" if words[-1] in frameworks.every_mode() else words.pop()
        )  # an environment may be called like a mode
        mode = words.pop()
        return cls(framework, mode, precision, lane, *words)

    @property
    def is_mixed(self) -> bool:
        return self.precision != "fp32"


def studied_text(results: Results, notebook: str) -> str:
    """The workload and the data of a notebook that has one of each, in words."""
    return " on ".join(results.studied(notebook))


def rows_of_task(frame: pd.DataFrame, workload: str) -> pd.DataFrame:
    """The rows of tasks with this workload."""
    return frame[frame["task"].str.startswith(f"{workload} on ")] if len(frame) else frame


def mindspore_graph_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of MindSpore in graph mode."""
    if not len(frame):
        return frame
    return frame[[Subject.of(who)[:2] == ("mindspore", "graph") for who in frame["subject"]]]


def task_and_subject(row: pd.Series) -> str:
    """What a row of several tasks is of."""
    return f"{row['task']}, {row['subject']}"


def rows_against_pytorch(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that are relative to PyTorch: another baseline is not what a claim about the two is about."""
    return frame[frame["baseline"].str.startswith("pytorch ")] if len(frame) else frame


def across_frameworks(frame: pd.DataFrame) -> pd.Series:
    """Which rows have a baseline of another framework."""
    return frame["subject"].str.split().str[0] != frame["baseline"].str.split().str[0]


def within_frameworks(results: Results) -> pd.DataFrame:
    """The ratios within one framework that the notebook modes has of training, each with its comparison's A/A."""
    frame = accelerated_rows(training_rows(results.table("modes", "within", "within_ratio", "baseline")))
    if not len(frame):
        return frame
    controls = results.table("modes", "ratios", "control_low")
    if len(controls):
        names = ["control", "control_low", "control_high", "control_why"]
        controls = controls.reindex(columns=["task", *names])  # an older benchlib's table has no control_why
        controls = controls.dropna(subset=["control_low", "control_why"], how="all").drop_duplicates("task")
        frame = frame.merge(controls, on="task", how="left")
    return frame


def training_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of tasks that train something."""
    if not len(frame):
        return frame
    return frame[[workloads.load(task.partition(" ")[0]).kind == "training" for task in frame["task"]]]


def accelerated_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of accelerators, if there are any; the notebook names a task's device where there are several."""
    on = frame["task"].str.endswith((", cuda", ", npu")) if len(frame) else []
    return frame[on] if len(frame) and on.any() else frame


def missing_frameworks(frame: pd.DataFrame, what: str) -> list[str]:
    """What is missing where not both frameworks have rows."""
    there: Iterable[str] = {subject.split()[0] for subject in frame["subject"]} if len(frame) else ()
    return [f"{what} in {name}" for name in ("pytorch", "mindspore") if name not in there]
