"""What the parameters of experiments are made of, and how they are checked before anything is measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationInfo, field_validator

from benchlib import environments, limits, metrics, workloads
from benchlib.condition import Condition, EnvironmentName, FrameworkName, LaneName, ModeName, implementation
from benchlib.errors import BenchlibError, shown
from benchlib.limits import at_most
from benchlib.runner import preflight
from benchlib.stats import planner
from benchlib.validation import Strict


class Parameters(Strict):
    """The parameters of a notebook. Its parameter file says all that the profile's defaults do not."""


class Subject(BaseModel):
    """What is compared: a framework of an environment, in a mode and a lane. The first of several is the baseline."""

    model_config = Strict.model_config

    framework: FrameworkName
    if_there: bool = False  # where it is not, it is left out, and the notebook says so (``subjects``); else refused
    environment: EnvironmentName = environments.DEFAULT
    mode: ModeName
    lane: LaneName

    @field_validator("environment")
    @classmethod
    def _is_there(cls, name: str, others: ValidationInfo) -> str:
        return name if others.data.get("if_there") else environments.require(name)

    @property
    def choices(self) -> dict[str, str]:
        """As a condition's choices."""
        return {name: getattr(self, name) for name in ("framework", "environment", "mode", "lane")}

    def __str__(self) -> str:
        return f"{implementation(self.framework, self.environment)} {self.mode} {self.lane}"


def environments_of(chosen: Iterable[Subject | Condition]) -> list[str]:
    """Of what was chosen, each once."""
    return list(dict.fromkeys(one.environment for one in chosen))


def not_empty(values: object) -> object:
    """For a validator: refuse an empty list, or an empty mapping to lists."""
    if isinstance(values, list | dict) and not values:
        kind = "list" if isinstance(values, list) else "mapping"
        raise ValueError(f"there is nothing to measure in an empty {kind}; give at least one value")
    return values


def _each_once(values: list) -> list:
    said = [repr(one.model_dump(exclude={"if_there"}) if isinstance(one, BaseModel) else one) for one in values]
    times = Counter(said)
    for value, one in zip(values, said, strict=True):
        if times[one] > 1:
            text = str(value) if isinstance(value, BaseModel) else shown(value)
            raise ValueError(f"{text} is there twice; give each once")
    return values


Item = TypeVar("Item")
Grid = Annotated[list[Item], BeforeValidator(not_empty), AfterValidator(_each_once)]
"""A list of values, at least one, each once."""


def _first_stays(subjects: list) -> list:
    if subjects[0].if_there:
        raise ValueError(f"{subjects[0]} is the first, which cannot be left out: take its if_there out")
    return subjects


Subjects = Annotated[Grid[Item], AfterValidator(_first_stays)]
"""A list of subjects, of which all but the first may be left out where they are not there."""


def _resolvable(value: float) -> float:
    if value < planner.LEAST_PRECISION:
        raise ValueError(planner.TOO_PRECISE)
    return value


Seed, Epochs = limits.Seed, limits.Epochs  # the limits of ``Lab.train``
BatchSize = Annotated[int, Field(ge=1)]  # memory is its limit
Rate = Annotated[
    float, Field(gt=0, allow_inf_nan=False), at_most(10**6, "the weights would be no numbers after the first step")
]
Count = Annotated[int, Field(ge=1)]
Samples = Annotated[int, Field(ge=1), at_most(10**9, "no data set here has as many samples")]
# The half-width of the ratios' 95 % intervals, relative.
Precision = Annotated[float, Field(gt=0, lt=1), AfterValidator(_resolvable)]
Pilot = Annotated[
    int, Field(ge=planner.LEAST_PILOT), at_most(planner.MOST_PILOT, "a pilot is for a first look at the variance")
]
Budget = Annotated[float, Field(gt=0, allow_inf_nan=False), at_most(planner.MOST_BUDGET_S, "that is a year")]
BlockTime = Annotated[
    float,
    Field(gt=0, allow_inf_nan=False),
    at_most(planner.LONGEST_BLOCK_S, "a worker that is silent for long counts as hung"),
]

Minutes = Annotated[float, Field(gt=0, allow_inf_nan=False), at_most(planner.MOST_BUDGET_S / 60, "that is a year")]
Margin = Annotated[float, Field(gt=0, lt=1)]  # relative

MOST_CONDITIONS = 2000


def check_count(keys: str, conditions: int) -> None:
    """Raise a ValueError (for a validator) if these parameters ask for more conditions than can be checked in a second
    or two, which is more than anybody has the time to measure.
    """
    if conditions > MOST_CONDITIONS:
        raise ValueError(
            f"{keys}: {conditions:,} conditions together, the most is {MOST_CONDITIONS:,}: give shorter lists, or "
            "divide them among several profiles"
        )


class Compared(Parameters):
    """The settings of comparisons, as a profile's ``defaults.yaml`` gives them and ``Lab.compare`` takes them."""

    precision: Precision
    budget_s: Budget = 60.0  # of each comparison, where a notebook is run by itself
    pilot: Pilot  # processes of each condition, at least
    block_s: BlockTime
    margin: Margin  # a ratio whose interval lies within so much of 1 is "the same within" it

    @property
    def settings(self) -> dict[str, float]:
        """As arguments of ``Lab.compare``."""
        return {name: getattr(self, name) for name in Compared.model_fields}


class Defaults(Compared):
    """What ``defaults.yaml`` has: the settings of all comparisons, and the minutes of all measurements."""

    minutes: Minutes


def condition(keys: Mapping[str, str], **choices: Any) -> Condition:
    """The condition of these choices. ``keys`` says which parameter gave a choice, where it is not named like it.

    Raises ValueError (for a validator) naming the first parameter whose value does not fit those before it.
    """
    try:
        whole = Condition(**choices)
    except BenchlibError:
        raise ValueError(_first_wrong(keys, choices)) from None
    if name := preflight.too_large(whole):
        raise ValueError(f"{keys.get(name, name)}: {shown(choices.get(name))}: {preflight.TOO_LARGE}")
    return whole


_SHARED = ("data", "device", "hyperparameters", "batch_size")
"""Choices that parameters make for all conditions, where they have them."""


def of_subject(parameters: Parameters, key: str, subject: Subject, **given: tuple[str, Any]) -> Condition:
    """The condition of a subject, which the parameter ``key`` gave, with what the parameters say for all. Its other
    choices are ``given``, each with the parameter that gave it. Raises as :func:`condition`.
    """
    shared = {name: (name, getattr(parameters, name)) for name in _SHARED if hasattr(parameters, name)}
    workload = given.pop("workload", None) or ("workload", parameters.workload)
    own = {name: (key, value) for name, value in subject.choices.items()}
    choices = {"workload": workload, **own, **shared, **given}
    keys = {name: parameter for name, (parameter, _) in choices.items()}
    return condition(keys, **{name: value for name, (_, value) in choices.items()})


def _first_wrong(keys: Mapping[str, str], choices: Mapping[str, Any]) -> str:
    """Of choices that make no condition: the first that does not fit those before it, and why."""
    given: dict[str, Any] = {}
    for name, value in choices.items():
        given[name] = value
        try:
            Condition(**given)
        except BenchlibError as error:
            return f"{keys.get(name, name)}: {shown(value)}: {str(error).removeprefix('Condition: ')}"
    raise AssertionError(f"all of {choices} together make a condition")


def check_metric(workload: str, threshold: float | None = None) -> None:
    """Raise a ValueError (for a validator) if the workload has no metric, or one that can never reach the threshold."""
    loaded = workloads.load(workload)
    if loaded.metric is None:
        others = " or ".join(other for other in workloads.names() if workloads.load(other).metric)
        raise ValueError(f"workload: {workload!r}: it trains nothing and has no metric; choose {others}")
    least, greatest = metrics.limits(loaded)
    if threshold is not None and not least < threshold <= greatest:
        raise ValueError(
            f"threshold: {threshold!r}: {loaded.metric} lies between {least:g} and {greatest:g}, no run can "
            "cross this; for 60 % write 0.6"
        )
