"""The tidy frames of a profile's notebooks, and where their measurements were made."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import pandas as pd

from benchlib import records
from benchlib.stats import frame as tidy
from benchlib.store import Store


class Results:
    """The tidy frames of a profile's notebooks, as they saved them; each is read once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stale: dict[str, str] = {}  # of the notebooks whose rows were asked for: what has changed since they ran
        self._frame = functools.cache(self._read)
        self._places = functools.cache(self._places_of)

    def places(self, files: str) -> list[str]:
        """What the measurements in these files were made on, each once: the machine, and its accelerator if they used
        one. Files that cannot be read are left out; the report names them.
        """
        return list(dict.fromkeys(place for key in files.split() for place in self._places(key)))

    def rows(self, notebook: str, quantity: str) -> pd.DataFrame:
        """Of a quantity in a notebook's frame; none where the notebook failed, or its frame was changed since."""
        frame = self._frame(notebook)
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
        try:
            measured = Store(self.folder / "measurements").documents(key)
        except (OSError, ValueError, KeyError):
            measured = []
        return [_place(one) for one in measured]


def _place(measurement: dict[str, Any]) -> str:
    machine, device = measurement["machine"], measurement["condition"]["device"]
    used = {"cuda": machine.get("gpus", []), "npu": machine.get("npus", [])}.get(device, [])
    return ", ".join([*dict.fromkeys(used), f"{machine['cores']} cores of {machine['cpu']}"])
