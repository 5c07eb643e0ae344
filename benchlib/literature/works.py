"""What the works that are reproduced here published: sources, claims and figures, in ``works.yaml``."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict

FILE = Path(__file__).with_name("works.yaml")


class Part(BaseModel):
    """A part of the file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(Part):
    """A publication: what it is called and how it is cited, and what it was measured on."""

    short: str
    cite: str
    hardware: str
    versions: dict[str, str] = {}
    used: dict[str, str] = {}  # the workloads that it trained, and their data


class Rows(Part):
    """Which rows of a notebook's tidy frame a claim is about, and what is said of each of them: in braces stand columns
    of the frame, and hyperparameters.
    """

    notebook: str
    quantity: str
    where: str = ""  # a query of the frame's columns (``DataFrame.query``); {name}: one of the rule's names
    only: str = ""  # the column in which alone a subject may differ from its baseline
    training: bool = False  # of workloads that train something; on accelerators only, if there are any
    inverse: bool = False  # the claim is about the ratio the other way round
    group: str = "{task}"  # what a case is of, but for what tells it from others of its row in the figure
    own: str = "{subject}"  # what tells it
    setting: str = ""  # what it was measured with
    wanted: str  # what is missing where there is no such row; {name}: one of the rule's names
    of_each: tuple[str, ...] = ()  # frameworks that all have to have rows; {framework} in ``wanted``: one of them
    lost: str = ""  # why a row has no number, if it was not disturbed; empty: such a row is not what was asked for


class Rule(Part):
    """How a claim is judged: by the ratios in rows of the frames, or by a function of its own."""

    says: str  # in words
    rows: list[Rows] = []
    names: list[str] = []  # workloads, each of which has to have rows
    faster: str = ""  # the framework that is, by the claim: the ratio's direction
    alike: float | None = None  # the claim is that ratios are within this factor of 1
    takes: str = ""  # what is missing whatever was measured
    function: str = "cases_of_rows"  # of ``benchlib.literature.FUNCTIONS``
    arguments: dict[str, Any] = {}


class Claim(Part):
    """A sentence that can be tested here, with the figures that were published for it, by name."""

    id: str
    source: str
    device: str  # it was measured on
    says: str
    published: dict[str, float] = {}  # by workload, or by framework
    doubt: str = ""  # where the source contradicts itself
    untested: str = ""  # what of it no rule tests
    rule: Rule


@functools.cache
def works() -> dict[str, Any]:
    """The file as it is: figures by experiment, beside sources and claims."""
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


@functools.cache
def sources() -> dict[str, Source]:
    """The publications, by the name that claims and figures give."""
    return {name: Source(**values) for name, values in works()["sources"].items()}


@functools.cache
def claims() -> list[Claim]:
    """All claims, in order."""
    return [Claim(**values) for values in works()["claims"]]


def threshold(source: str, workload: str) -> float | None:
    """Of the metric, to which a publication trained a workload; None if it says none."""
    of_works = {(one["source"], one["workload"]): one["threshold"] for one in works()["thresholds"]}
    return of_works.get((source, workload))


def tried(hyperparameter: str) -> list[float]:
    """The learning rates or batch sizes whose accuracies were published."""
    return {"learning_rate": works()["learning_rate"]["rates"], "batch_size": works()["batch_accuracy"]["batches"]}[
        hyperparameter
    ]
