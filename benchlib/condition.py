"""The choice to measure, checked when it is made; ``benchlib.runner.availability`` asks whether this machine can."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from benchlib import data, environments, frameworks, plugins, workloads
from benchlib.errors import BenchlibError, no_such, quote
from benchlib.validation import Strict

LANES = ("default", "tuned")

plugins.use()


def _one_of(what: str, known: Callable[[], Iterable[str]]) -> BeforeValidator:
    def check(name: object) -> object:
        if name not in known():
            raise ValueError(no_such(what, name, known()))
        return name

    return BeforeValidator(check)


def _values(workload: workloads.Workload, data: str, given: dict[str, Any]) -> dict[str, Any]:
    """All hyperparameters: those given, those that the data set settles or suggests, the workload's defaults."""
    settled = workload.data_values.get(data, {})
    for name, value in settled.items():
        if given.get(name, value) != value:
            wrong = f"hyperparameters.{name}: {quote(given[name])}"
            raise BenchlibError(f"{wrong}: with data {data} it is {value}; leave it out")
    return workload.values({**workload.data_defaults.get(data, {}), **settled, **given})


WorkloadName = Annotated[str, _one_of("workload", workloads.names)]
FrameworkName = Annotated[str, _one_of("framework", frameworks.names)]
EnvironmentName = Annotated[str, BeforeValidator(environments.require_name)]
ModeName = Annotated[str, _one_of("mode", frameworks.every_mode)]
PrecisionName = Annotated[str, _one_of("precision", frameworks.every_precision)]
DeviceName = Annotated[str, _one_of("device", frameworks.every_device)]
LaneName = Annotated[str, _one_of("lane", lambda: LANES)]


def implementation(framework: str, environment: str) -> str:
    """A framework in an environment, in a word or two: the default environment goes without saying."""
    return framework if environment == environments.DEFAULT else f"{framework} {environment}"


class Condition(Strict):
    """One row of a table: everything that was chosen before it was measured."""

    workload: WorkloadName
    framework: FrameworkName = "pytorch"
    environment: EnvironmentName = environments.DEFAULT
    mode: ModeName = "eager"
    precision: PrecisionName = "fp32"
    device: DeviceName = "cpu"
    lane: LaneName = "default"
    batch_size: int = Field(default=None, ge=1, validate_default=False)
    learning_rate: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    data: str = Field(default=None, validate_default=False)
    train_samples: int | None = Field(default=None, ge=1)  # None: all training samples
    hyperparameters: dict[str, Any] = Field(default_factory=dict)
    threads: int | None = Field(default=None, ge=1)  # None: as many as the framework takes by itself
    world_size: int = Field(default=1, ge=1)  # processes that train together, each on its part of every batch
    communication: bool = True  # False: they do not exchange gradients, to see the cost of that
    without: list[str] = Field(default_factory=list)  # knobs of the lane that are not set, to see their effect

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, given: Any) -> Any:
        """Fill missing values from the workload, so that a condition always has all of them."""
        if not isinstance(given, dict) or given.get("workload") not in workloads.names():
            return given
        workload = workloads.load(given["workload"])
        suggested = {"batch_size": workload.batch_size, "data": workload.data[0]}
        suggested["learning_rate"] = workload.learning_rate
        filled = {**given, **{name: value for name, value in suggested.items() if given.get(name) is None}}
        values = given.get("hyperparameters") or {}
        if not isinstance(values, dict) or not isinstance(filled["data"], str):
            return filled  # their types are refused next
        try:
            filled["hyperparameters"] = _values(workload, filled["data"], values)
        except BenchlibError as error:
            raise ValueError(str(error)) from None
        return filled

    @model_validator(mode="after")
    def _fits_workload(self) -> Condition:
        workload = workloads.load(self.workload)
        for what, name, known in (
            (f"framework of workload {self.workload!r}", self.framework, frameworks.of_workload(workload)),
            (f"mode of {self.framework}", self.mode, frameworks.modes(self.framework)),
            (f"precision of {self.framework}", self.precision, frameworks.precisions(self.framework)),
            (f"data of workload {self.workload!r}", self.data, workload.data),
        ):
            if name not in known:
                raise ValueError(no_such(what, name, known))
        if self.learning_rate is not None and workload.learning_rate is None:
            raise ValueError(f"learning_rate {self.learning_rate!r}: {self.workload} trains nothing; leave it out")
        self._fits_group(workload)
        available = data.get(self.data).train_size
        if available is not None:
            taken = available if self.train_samples is None else self.train_samples
            if taken > available:
                raise ValueError(f"train_samples {quote(taken)}: {self.data} has {available} training samples")
            if self.batch_size > taken:
                size = quote(self.batch_size)
                raise ValueError(f"batch_size {size} is larger than the {taken} training samples of {self.data}")
        return self

    def _fits_group(self, workload: workloads.Workload) -> None:
        """Check data parallelism: the needs of several processes, and choices that make no sense with one."""
        if self.world_size == 1:
            if not self.communication:
                raise ValueError("communication: one process has no other to exchange gradients with; leave it out")
            return
        if workload.kind != "training":
            raise ValueError(f"world_size {self.world_size}: {self.workload} trains nothing that they could share")
        if self.batch_size % self.world_size:
            raise ValueError(f"batch_size {quote(self.batch_size)}: {self.world_size} processes cannot share it evenly")
        if self.device == "cpu" and self.threads is None:
            raise ValueError(f"threads: say how many each of the {self.world_size} processes has on the CPU")

    @property
    def key(self) -> str:
        """A hash of all of the condition; equal conditions have equal keys, here and on any machine."""
        text = json.dumps(self.model_dump(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def but(self, **changes: Any) -> Condition:
        """This condition with some choices changed."""
        kept = self.model_dump()
        if "data" in changes:  # the data's suggestions go with it
            suggested = _values(workloads.load(self.workload), self.data, {})
            given = {name: value for name, value in self.hyperparameters.items() if value != suggested[name]}
            kept["hyperparameters"] = given
        return Condition(**{**kept, **changes})

    def __hash__(self) -> int:
        return hash(self.key)

    @property
    def implementation(self) -> str:
        """Framework, and environment unless that is the default one."""
        return implementation(self.framework, self.environment)

    @property
    def subject(self) -> str:
        """Framework, environment, mode, precision and lane, as every row and legend shows them."""
        mixed = "" if self.precision == "fp32" else f" {self.precision}"
        return f"{self.implementation} {self.mode}{mixed} {self.lane}"

    def __str__(self) -> str:
        who = [self.workload, self.implementation, self.mode, self.precision, self.device, self.lane]
        return " ".join([*who, *self.details])

    @property
    def details(self) -> list[str]:
        """The choices beside workload, subject and device, in words; the usual ones are left out."""
        defaults = _values(workloads.load(self.workload), self.data, {})
        parts = [f"batch {self.batch_size}"]
        if self.learning_rate is not None:
            parts.append(f"lr {self.learning_rate:g}")
        parts.append(self.data if self.train_samples is None else f"{self.data}[:{self.train_samples}]")
        if self.threads is not None:
            parts.append(f"{self.threads} thread" + "s" * (self.threads > 1))
        parts += [f"{self.world_size} processes"] * (self.world_size > 1)
        parts += ["without communication"] * (not self.communication)
        parts += [f"without {name}" for name in self.without]
        parts += [f"{name}={value}" for name, value in self.hyperparameters.items() if value != defaults[name]]
        return parts
