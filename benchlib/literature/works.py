"""The published results that are reproduced here: sources, claims and figures, in ``works.yaml``."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel


class Declared(BaseModel, extra="forbid", frozen=True):
    """A part of the file; unknown keys are refused."""


class Publication(Declared):
    """A publication: its names, hardware, versions and workloads."""

    short: str
    cite: str
    hardware: str
    versions: dict[str, str] = {}
    then: dict[str, str] = {}  # by framework: the environment of these versions, or of the nearest that can be had
    used: dict[str, str] = {}  # the workloads that it trained, and their data


class Query(Declared):
    """Rows of a notebook's tidy frame that a claim is about. In texts, braces hold columns of the frame and
    hyperparameters; where two rows make a ratio, ``other_`` begins the columns of the second.
    """

    notebook: str
    quantity: str
    where: str = ""  # a query of the frame's columns (``DataFrame.query``)
    one: str = ""  # of pairs: a query for the first row of a ratio,
    over: str = ""  # and one for the second
    match: list[str] = []  # of pairs: the columns in which both are the same
    by: str = ""  # of maximum: a column of numbers
    training: bool = False  # of workloads that train something; on accelerators only, if there are any
    inverse: bool = False  # the claim is about the ratio the other way round
    group: str = "{task}"  # the group of a case
    own: str = "{subject}"  # its name among others of its group
    setting: str = ""  # the setting of its measurement
    needs: dict[str, str] = {}  # the missing condition where no row answers a query
    whole: bool = False  # no case counts while something is missing
    lost: str = ""  # why a row has no number, if it was not disturbed; empty: such a row was not asked for


class Rule(Declared):
    """The rule that judges a claim: its rows, and its test of ``benchlib.literature.evidence``."""

    says: str  # in words
    test: Literal["ratios", "pairs", "crossing", "maximum"] = "ratios"
    rows: list[Query]
    alike: float | None = None  # the claim is that ratios are within this factor of 1
    crosses: list[str] = []  # of crossing: the operators that cross late and early
    best: float = 0  # of maximum: the published best value
    tried: list[float] = []  # of maximum: the published values
    epochs: int = 0  # of maximum: that the work trained


class Claim(Declared):
    """A sentence that can be tested here, with the figures that were published for it, by name."""

    id: str
    source: str
    device: str  # it was measured on
    says: str
    published: dict[str, float] = {}  # by workload, or by framework
    doubt: str = ""  # where the source contradicts itself
    untested: str = ""  # the part of it that no rule tests
    rule: Rule


@functools.cache
def works() -> dict[str, Any]:
    """The file as it is: figures by experiment, beside sources and claims."""
    return yaml.safe_load(Path(__file__).with_name("works.yaml").read_text(encoding="utf-8"))


@functools.cache
def sources() -> dict[str, Publication]:
    """The publications, by the name that claims and figures give."""
    return {name: Publication(**values) for name, values in works()["sources"].items()}


@functools.cache
def claims() -> list[Claim]:
    """All claims, in order."""
    return [Claim(**values) for values in works()["claims"]]
