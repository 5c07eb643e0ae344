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


class Claim(Part):
    """A sentence that can be tested here, with the figures that were published for it, by name."""

    id: str
    source: str
    device: str  # it was measured on
    says: str
    published: dict[str, float] = {}
    doubt: str = ""  # where the source contradicts itself
    untested: str = ""  # what of it no rule tests
    rule: dict[str, Any]  # ``name``: a function of ``benchlib.suite.claims.rules``; its arguments


@functools.cache
def works() -> dict[str, Any]:
    """The file as it is: figures by experiment, beside sources and claims."""
    return yaml.safe_load(FILE.read_text(encoding="utf-8"))


def sources() -> dict[str, Source]:
    """The publications, by the name that claims and figures give."""
    return {name: Source(**told) for name, told in works()["sources"].items()}


def claims() -> list[Claim]:
    """All claims, in order."""
    return [Claim(**told) for told in works()["claims"]]


def threshold(source: str, workload: str) -> float | None:
    """Of the metric, to which a publication trained a workload; None if it says none."""
    found = [one for one in works()["thresholds"] if (one["source"], one["workload"]) == (source, workload)]
    return found[0]["threshold"] if found else None


def tried(hyperparameter: str) -> list[float]:
    """The learning rates or batch sizes whose accuracies were published."""
    return {"learning_rate": works()["learning_rate"]["rates"], "batch_size": works()["batch_accuracy"]["batches"]}[
        hyperparameter
    ]
