"""What the notebooks of one profile gave: their summaries, frames and measurements, as far as they are there and are
what the notebooks made.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import scrapbook
from papermill.exceptions import PapermillException

from benchlib import records
from benchlib.condition import Condition
from benchlib.equivalence.certificate import Certificate
from benchlib.errors import BenchlibError
from benchlib.lab import Lab
from benchlib.stats import frame as tidy
from benchlib.store import Measurement


class Gathered:
    """The summaries of ``notebooks``, and what is missing of them, or stale, in words by notebook."""

    def __init__(self, lab: Lab, notebooks: Iterable[str]) -> None:
        self.lab, self.folder, self.notebooks = lab, lab.folder, tuple(notebooks)
        self.summaries: dict[str, dict[str, Any]] = {}
        self.missing: dict[str, str] = {}
        self.stale: dict[str, str] = {}
        for notebook in self.notebooks:
            record = records.read(self.folder, notebook)
            try:
                summary = _summary(self.folder, notebook, record)
            except BenchlibError as error:
                self.missing[notebook] = str(error)
                continue
            if "stale" in record:
                self.stale[notebook] = record["stale"]
                summary["title"] += " (stale)"
            self.summaries[notebook] = summary

    @property
    def conditions(self) -> list[Condition]:
        """Of all notebooks."""
        return [Condition(**one) for summary in self.summaries.values() for one in summary["conditions"]]

    @cached_property
    def certificates(self) -> list[Certificate]:
        """Of all notebooks, one for each condition: of several that which shows another model, or the most training."""
        texts = dict.fromkeys(one for summary in self.summaries.values() for one in summary["certificates"])
        of_conditions: dict[Condition, Certificate] = {}
        for one in map(Certificate.model_validate_json, texts):
            before = of_conditions.setdefault(one.condition, one)
            of_conditions[one.condition] = max(before, one, key=lambda each: (not each.same, each.training))
        return [*of_conditions.values()]

    @cached_property
    def frames(self) -> dict[str, pd.DataFrame]:
        """By notebook, its tidy frame, where that is there as the notebook made it."""
        paths = {name: f"tables/{name}_frame.parquet" for name in self.summaries}
        return {
            name: tidy.load(self.folder / path)
            for name, path in paths.items()
            if path in self.summaries[name]["tables"] and self.why_not(path) is None
        }

    @property
    def measured(self) -> list[Measurement]:
        """The measurements that the summaries are made of, in the order of time; the folder may hold others, of older
        code or parameters.
        """
        return self._measurements[0]

    @property
    def wrong(self) -> list[str]:
        """What of these measurements is damaged or gone, by name."""
        return self._measurements[1]

    @property
    def lost(self) -> list[tuple[str, str]]:
        """The figures and tables that are not to be shown, each with the reason."""
        paths = [path for summary in self.summaries.values() for path in (*summary["figures"], *summary["tables"])]
        return [(path, why) for path in paths if (why := self.why_not(path)) is not None]

    def why_not(self, path: str) -> str | None:
        """Why a figure or a table is not to be shown, in words; None: it is there as its notebook made it."""
        return self._wrong_files.get(path, None if (self.folder / path).is_file() else "is gone")

    @cached_property
    def _wrong_files(self) -> dict[str, str]:
        """Files that are not there as a notebook made them, with what is wrong."""
        return records.all_wrong(self.folder, self.notebooks)

    @cached_property
    def _measurements(self) -> tuple[list[Measurement], list[str]]:
        by_key: dict[str, list[Measurement]] = {}
        wrong = []
        for key in dict.fromkeys(key for summary in self.summaries.values() for key in summary["measurements"]):
            why = self._wrong_files.get(f"measurements/{key}.parquet")
            try:
                if why is None:
                    by_key[key] = self.lab.store.outline(key)
            except (OSError, ValueError, KeyError):
                why = "cannot be read"
            if why is not None:
                wrong.append(self._why_wrong(key, why))
        every = [m for measured in by_key.values() for m in measured]
        return sorted(every, key=lambda m: (m.started_utc, m.file, m.repetition)), wrong

    def _why_wrong(self, key: str, why: str) -> str:
        """What is wrong with a file that is not what the notebook's numbers were made from."""
        try:
            measured = self.lab.store.load(key)
        except BenchlibError as error:
            return str(error)
        elsewhere = "" if measured is None else ": it was put there from elsewhere"
        return f"{self.lab.store.path(key)} {why}{elsewhere}; run again."


def distinct(values: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each once, in order."""
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())


def glued(executed: Path) -> dict[str, Any]:
    """The summary that an executed notebook glued; a BenchlibError if it has none, or is gone."""
    try:
        scraps = scrapbook.read_notebook(str(executed)).scraps
    except (OSError, ValueError, PapermillException) as error:
        raise BenchlibError(f"{executed} cannot be read ({type(error).__name__}: {error}); run again.") from None
    if "summary" not in scraps:
        raise BenchlibError(f"{executed}: it glued no summary; delete it and run again.")
    return scraps["summary"].data


def _summary(folder: Path, notebook: str, record: dict[str, Any] | None) -> dict[str, Any]:
    """What a notebook glued; a BenchlibError says why it is missing."""
    if record is None:
        raise BenchlibError("has not run.")
    if record["status"] == "failed":
        raise BenchlibError(f"failed in {record['error']['cell']}: {record['error']['text']}")
    if record["status"] != "succeeded":
        raise BenchlibError("did not come to its end.")
    path = folder / "notebooks" / f"{notebook}.ipynb"
    summary = glued(path)
    paths_alone = any(isinstance(one, str) for one in summary["in_report"])  # where tables were read back
    if paths_alone or ("verdicts" in summary and "here" not in summary["verdicts"]["columns"]):
        raise BenchlibError(f"{path}: its summary is that of another benchlib; run again: what was measured is kept.")
    return summary
