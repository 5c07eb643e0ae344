"""What the parameters of experiments are made of, and how they are checked before anything is measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from benchlib import metrics, workloads
from benchlib.condition import Condition
from benchlib.errors import BenchlibError, shown
from benchlib.parameter_types import (
    MOST_CONDITIONS,
    BatchSize,
    Count,
    Epochs,
    Grid,
    Rate,
    Samples,
    Seed,
    Settings,
    SubjectList,
    not_empty,
)
from benchlib.parameter_types import Subject as Subject
from benchlib.runner import preflight
from benchlib.validation import Strict

__all__ = ["BatchSize", "Count", "Epochs", "Grid", "Rate", "Samples", "Seed", "Subject", "Subjects", "not_empty"]

Subjects = SubjectList


class Parameters(Strict):
    """The parameters of a notebook. Its parameter file says all that the profile's defaults do not."""


def choices_of(subject: Subject) -> dict[str, str]:
    """As a condition's choices."""
    return subject.model_dump(exclude={"if_there", "learning_rates", "batch_size"})


def environments_of(chosen: Iterable[Subject | Condition]) -> list[str]:
    """Of what was chosen, each once."""
    return list(dict.fromkeys(one.environment for one in chosen))


def check_count(keys: str, conditions: int) -> None:
    """Raise a ValueError (for a validator) if these parameters ask for more conditions than can be checked in a second
    or two, which is more than anybody has the time to measure.
    """
    if conditions > MOST_CONDITIONS:
        raise ValueError(
            f"{keys}: {conditions:,} conditions together, the most is {MOST_CONDITIONS:,}: give shorter lists, or "
            "divide them among several profiles"
        )


class Compared(Parameters, Settings):
    """The settings of comparisons, as a profile's ``defaults.yaml`` gives them and ``Lab.compare`` takes them."""

    @property
    def settings(self) -> dict[str, float]:
        """As arguments of ``Lab.compare``."""
        return {name: getattr(self, name) for name in Settings.model_fields}


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
    own = {name: (key, value) for name, value in choices_of(subject).items()}
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
