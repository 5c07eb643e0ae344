"""The notebook ``claims``: what the works claim, what was measured of it here, and a verdict by a rule."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from benchlib import records, tables
from benchlib.condition import Condition
from benchlib.lab import Lab
from benchlib.literature import judge, works
from benchlib.literature.evidence import SHOWN
from benchlib.stats import frame as tidy
from benchlib.store import Store
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments.result import Declaration, Gathered, Result
from benchlib.tables import Listed


class Parameters(p.Parameters):
    """There are none: it is about whatever the other notebooks of the profile measured."""


def conditions(parameters: Parameters) -> list[Condition]:
    """Nothing is measured."""
    return []


def measure(parameters: Parameters, lab: Lab) -> Claims:
    """Judge all claims by the frames that are there."""
    return Claims(lab)


class Claims(Result):
    """The verdicts, the cases behind them, the rules, and the ratios beside the published ones."""

    def __init__(self, lab: Lab) -> None:
        paths = (lab.folder / "notebooks").glob("*.json")
        asked = {one.notebook for claim in works.claims() for one in claim.rule.rows}
        every = {path.stem: records.read(lab.folder, path.stem) or {} for path in sorted(paths) if path.stem in asked}
        frames = {name: frame for name in every if (frame := _frame(lab.folder, name, every[name])) is not None}
        keys = dict.fromkeys(
            key for frame in frames.values() for files in frame["files"].dropna() for key in files.split()
        )
        self.judged = judge(frames, dict(_places(lab.folder, keys)))
        stale = [f"{name} ({every[name]['stale']})" for name in frames if "stale" in every[name]]
        self.stale = [f"Results of before, which are stale, were judged of: {'; '.join(stale)}."] if stale else []
        files = tables.together(self.judged.claims[tables.FILES]).split()
        super().__init__(_declaration(self), lab.folder, [Gathered(keys=sorted(files))])

    def summary(self) -> dict[str, Any]:
        """As of every result; and ``verdicts``, a row a claim, as pandas splits it."""
        return {**super().summary(), "verdicts": self.judged.claims.drop(columns="rule").to_dict("split")}


def _frame(folder: Path, name: str, record: dict[str, Any]) -> pd.DataFrame | None:
    """The frame of a notebook that has succeeded, as it wrote it."""
    path = f"tables/{name}_frame.parquet"
    if record.get("status") != "succeeded" or path not in record["files"]:
        return None
    wrong = list(records.wrong_files({"files": {path: record["files"][path]}}, folder))
    return None if wrong else tidy.load(folder / path)


def _places(folder: Path, keys: dict[str, None]) -> Iterator[tuple[str, str]]:
    """By file, the machine that measured it, and its accelerator if it was used."""
    for key in keys:
        try:
            first, *_ = Store(folder / "measurements").documents(key)
        except (OSError, ValueError, KeyError):
            continue
        machine, device = first["machine"], first["condition"]["device"]
        used = {"cuda": machine.get("gpus", []), "npu": machine.get("npus", [])}.get(device, [])
        yield key, ", ".join([*dict.fromkeys(used), f"{machine['cores']} cores of {machine['cpu']}"])


def _declaration(result: Claims) -> Declaration:
    verdicts = result.judged.claims.drop(columns=["verdict", "undecided", "here", "rule"])
    rules = result.judged.claims[["claim", "rule"]]
    caption = " ".join(["Each claim, what it was published of, and the verdict on this machine.", *result.stale])
    return Declaration(
        notebook="claims",
        title="Claims",
        question="Which of the works' sentences hold here?",
        in_report=("cases",),
        tables={
            "verdicts": Listed(caption, lambda _: verdicts),
            "cases": Listed(
                "The numbers behind the verdicts, with 95 % intervals. A ratio is in the direction of the claim: above "
                "1 is on its side; below 1, or the same within the margin, is against it.",
                lambda _: result.judged.cases[[*SHOWN]],
            ),
            "rules": Listed("The rule of each verdict.", lambda _: rules),
            **works.published(),
        },
        figures=result.judged.pictures(),
        findings=[lambda _: [*result.judged.findings(), *result.stale]],
    )
