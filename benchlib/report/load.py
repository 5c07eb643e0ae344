"""The results of a folder's notebooks: summaries, frames and measurements; and which of them are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd
import scrapbook
from papermill.exceptions import PapermillException

from benchlib import manifest
from benchlib.condition import Condition
from benchlib.environments import or_shipped, root
from benchlib.equivalence.certificate import Certificate
from benchlib.errors import BenchlibError
from benchlib.lab import Lab
from benchlib.stats import frame as tidy

KEYS = (  # that the report needs of the summary that a notebook glues
    *("title", "question", "answers", "findings", "warnings", "notes", "figures", "tables", "captions", "in_report"),
    *("failed", "certificates", "measurements", "conditions"),
)


class Results:
    """The results in the folder of ``lab``, by notebook; those that cannot be used are named."""

    def __init__(self, lab: Lab) -> None:
        self.folder = lab.folder
        self.summaries: dict[str, dict[str, Any]] = {}
        self.frames: dict[str, pd.DataFrame] = {}
        self.missing: dict[str, str] = {}  # by notebook, why it has no result
        self.stale: dict[str, str] = {}  # by notebook, the changes since
        self.wrong: list[str] = []  # a sentence on each file that is damaged, changed or gone
        project = {path.stem for path in or_shipped(root() / "notebooks").glob("[!.]*.ipynb")}
        files = or_shipped(root() / "parameters").glob(f"{self.folder.name}/*.yaml")  # others are not missing
        own = project & {path.stem for path in files} or project
        names = sorted({*manifest.read_all(self.folder), *own} - {"report"})
        self.changed = manifest.all_wrong(self.folder, names)
        for name in names:
            try:
                self._read(name)
            except BenchlibError as error:
                self.missing[name] = str(error)
        self.conditions = [Condition(**one) for one in self.each("conditions")]
        self.certificates = _one_each(map(Certificate.model_validate_json, dict.fromkeys(self.each("certificates"))))
        whole = (one for one in self.each("measurements") if f"measurements/{one}.parquet" not in self.changed)
        self.measured, damaged = lab.store.read(dict.fromkeys(whole))
        self.wrong += [*damaged, *(f"{path} {why}; run again." for path, why in self.changed.items())]
        for path in sorted(lab.store.folder.glob("damaged/*.parquet")):
            self.wrong.append(f"{path.relative_to(self.folder)} could not be used and was measured again.")

    def each(self, key: str) -> Iterator[Any]:
        """Yield all items that notebooks list under a key of their summaries."""
        return (one for summary in self.summaries.values() for one in summary.get(key, ()))

    def rows(self, *quantities: str) -> pd.DataFrame:
        """Return the rows of these quantities in the frames of all notebooks."""
        every = tidy.concat(self.frames.values())
        return every[every["quantity"].isin(quantities)]

    def _read(self, name: str) -> None:
        record, path = manifest.read(self.folder, name), self.folder / "notebooks" / f"{name}.ipynb"
        if record is None:
            raise BenchlibError("has not run.")
        if record["status"] == "failed":
            raise BenchlibError(f"failed in {record['error']['cell']}: {record['error']['text']}")
        if record["status"] != "succeeded":
            raise BenchlibError("did not come to its end.")
        try:
            summary = scrapbook.read_notebook(str(path)).scraps["summary"].data
        except (OSError, ValueError, KeyError, PapermillException) as error:
            reason = f"cannot be read, or glued no summary ({type(error).__name__}: {error})"
            raise BenchlibError(f"{path} {reason}; delete it and run again.") from None
        try:
            _ = [summary[key] for key in KEYS], dict(summary["in_report"])
            _ = [Certificate.model_validate_json(one) for one in summary["certificates"]]
            _ = [Condition(**one) for one in summary["conditions"]]
        except (BenchlibError, KeyError, TypeError, ValueError) as error:
            why = str(error).partition("\n")[0]
            raise BenchlibError(f"{path}: its summary is that of another benchlib ({why}); run again.") from None
        if "stale" in record:
            self.stale[name] = record["stale"]
            summary["title"] += " (stale)"
        self.summaries[name] = summary
        frame = f"tables/{name}_frame.parquet"
        if frame in summary["tables"] and frame not in self.changed:
            try:
                self.frames[name] = tidy.load(self.folder / frame)
            except (BenchlibError, OSError, ValueError) as error:
                self.wrong.append(f"{frame} cannot be used, so its ratios are missing: {error}")


def _one_each(certificates: Iterable[Certificate]) -> list[Certificate]:
    """Keep one of each condition: that which shows another model, else that with the most training."""
    chosen: dict[Condition, Certificate] = {}
    for one in certificates:
        before = chosen.setdefault(one.condition, one)
        chosen[one.condition] = max(before, one, key=lambda each: (not each.same, each.training))
    return [*chosen.values()]


def join_distinct(values: Iterable[Any], between: str = ", ") -> str:
    """Join values, each once, in order."""
    return between.join(dict.fromkeys(map(str, values)))
