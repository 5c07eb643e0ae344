"""The tidy frames of a profile's notebooks, and which of their rows a claim is about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

from benchlib import workloads
from benchlib.analysis import frame as tidy
from benchlib.store import Store
from benchlib.suite import records


class Results:
    """The tidy frames of a profile's notebooks, as they saved them; each is read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stale: dict[str, str] = {}  # of the notebooks whose rows were asked for: what has changed since they ran
        self._frames: dict[str, pd.DataFrame] = {}
        self._places: dict[str, list[str]] = {}

    def places(self, files: str) -> list[str]:
        """What the measurements in these files were made on, each once: the machine, and its accelerator if they used
        one. Files that cannot be read are left out; the report names them.
        """
        return list(dict.fromkeys(place for key in files.split() for place in self._places_of(key)))

    def rows(self, notebook: str, quantity: str) -> pd.DataFrame:
        """Of a quantity in a notebook's frame; none where the notebook did not succeed, its frame is of another
        benchlib, or is not the one that the notebook wrote.
        """
        if notebook not in self._frames:
            self._frames[notebook] = self._read(notebook)
        frame = self._frames[notebook]
        return frame[frame["quantity"] == quantity]

    def _read(self, notebook: str) -> pd.DataFrame:
        record, path = records.read(self.folder, notebook) or {}, f"tables/{notebook}_frame.parquet"
        if record.get("status") != "succeeded" or path not in record["files"]:
            return tidy.of_rows([])
        alone = {"files": {path: record["files"][path]}}  # of the other files nothing is read here
        if list(records.wrong_files(alone, self.folder)):
            return tidy.of_rows([])  # another run, or a hand, has changed it: not what the record tells of
        if "stale" in record:
            self.stale[notebook] = record["stale"]
        return tidy.load(self.folder / path)

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


def of_mindspore_graph(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of MindSpore in graph mode."""
    return frame[(frame["framework"] == "mindspore") & (frame["mode"] == "graph")]


def against_pytorch(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows that are relative to PyTorch: another baseline is not what a claim about the two is about."""
    return frame[frame["baseline_framework"] == "pytorch"]


def of_training(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of workloads that train something; of accelerators, if there are any."""
    frame = frame[frame["workload"].map(lambda name: workloads.load(name).kind == "training").astype(bool)]
    on = frame["device"] != "cpu"
    return frame[on] if on.any() else frame


def all_else_same(frame: pd.DataFrame, *but: str) -> pd.Series:
    """In which rows nothing distinguishes a subject from its baseline but these columns."""
    pairs = [frame[name] == frame[f"baseline_{name}"] for name in tidy.SUBJECT if name not in but]
    return pd.concat(pairs, axis=1).all(axis=1)


def task_and_subject(row: pd.Series) -> str:
    """What a row of several tasks is of."""
    return f"{row['task']}, {row['subject']}"


def studied(row: pd.Series) -> str:
    """The workload and the data of a row, in words."""
    return f"{row['workload']} on {row['data']}"


def missing_frameworks(frame: pd.DataFrame, what: str) -> list[str]:
    """What is missing where not both frameworks have rows."""
    return [f"{what} in {name}" for name in ("pytorch", "mindspore") if name not in set(frame["framework"])]
