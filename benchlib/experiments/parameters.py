"""What the parameters of experiments are made of, and how they are checked before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from benchlib import workloads
from benchlib.condition import Condition, FrameworkName, LaneName, ModeName
from benchlib.errors import BenchlibError
from benchlib.measure.planner import LEAST_PILOT
from benchlib.metrics import RANGES
from benchlib.validation import Strict


class Parameters(Strict):
    """The parameters of a notebook. A parameter file says all of them: none has a silent default."""

    @classmethod
    def of(cls, variables: Mapping[str, Any]) -> Self:
        """Those of the variables of a parameters cell (a notebook's ``globals()``) that are parameters."""
        return cls(**{name: variables[name] for name in cls.model_fields if name in variables})


class Subject(BaseModel):
    """What is compared: a framework in a mode and a lane. The first of several is the baseline."""

    model_config = Strict.model_config

    framework: FrameworkName
    mode: ModeName
    lane: LaneName

    @property
    def choices(self) -> dict[str, str]:
        """As a condition's choices."""
        return {"framework": self.framework, "mode": self.mode, "lane": self.lane}

    def __str__(self) -> str:
        return f"{self.framework} {self.mode} {self.lane}"


def not_empty(values: object) -> object:
    """For a validator: refuse an empty list, or an empty mapping to lists."""
    if isinstance(values, list | dict) and not values:
        kind = "list" if isinstance(values, list) else "mapping"
        raise ValueError(f"there is nothing to measure in an empty {kind}; give at least one value")
    return values


def _each_once(values: list) -> list:
    for value in values:
        if values.count(value) > 1:
            raise ValueError(f"{value} is there twice; give each once")
    return values


Item = TypeVar("Item")
Grid = Annotated[list[Item], BeforeValidator(not_empty), AfterValidator(_each_once)]
"""A list of values, at least one, each once."""

BatchSize = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1)]
Precision = Annotated[float, Field(gt=0, lt=1)]  # half-width of the ratios' 95 % intervals, relative
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Compared(Parameters):
    """Parameters of a notebook that compares conditions with each other: how closely, and within which time."""

    precision: Precision
    budget_s: Seconds  # of each comparison
    pilot: Annotated[int, Field(ge=LEAST_PILOT)]  # processes of each condition, at least
    block_s: Seconds

    @property
    def settings(self) -> dict[str, float]:
        """As arguments of ``Lab.compare``."""
        return {name: getattr(self, name) for name in Compared.model_fields}


def condition(keys: Mapping[str, str], **choices: Any) -> Condition:
    """The condition of these choices. ``keys`` says which parameter gave a choice, where it is not named like it.

    Raises ValueError (for a validator) naming the first parameter whose value does not fit those before it.
    """
    given: dict[str, Any] = {}
    for name, value in choices.items():
        given[name] = value
        try:
            made = Condition(**given)
        except BenchlibError as error:
            key = keys.get(name, name)
            raise ValueError(f"{key}: {value!r}: {str(error).removeprefix('Condition: ')}") from None
    return made


def check_metric(workload: str, threshold: float | None = None) -> None:
    """Raise a ValueError (for a validator) if the workload has no metric, or one that can never reach the threshold."""
    name = workloads.load(workload).metric
    if name is None:
        others = " or ".join(other for other in workloads.names() if workloads.load(other).metric)
        raise ValueError(f"workload: {workload!r}: it trains nothing and has no metric; choose {others}")
    least, greatest = RANGES[name]
    if threshold is not None and not least < threshold <= greatest:
        raise ValueError(
            f"threshold: {threshold!r}: {name} lies between {least:g} and {greatest:g}, no run can cross this; "
            "for 60 % write 0.6"
        )
