"""Checks before anything starts: each refusal is a BenchlibError with its remedy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import psutil

from benchlib import metrics, validation
from benchlib.condition import Condition
from benchlib.data import prepare
from benchlib.errors import BenchlibError, quote
from benchlib.runner import availability
from benchlib.workloads import load


def require(conditions: Iterable[Condition]) -> None:
    """Refuse conditions that ask for something missing, or for arrays that are larger than the machine."""
    conditions = list(conditions)
    availability.require(conditions)
    for condition in conditions:
        prepare.require(condition)
        if name := too_large(condition):
            raise BenchlibError(f"{name}: {quote(getattr(condition, name))}: {TOO_LARGE}")


TOO_LARGE = "arrays of this size are larger than this machine's memory; ask for less"


def too_large(condition: Condition) -> str:
    """The choice, ``hyperparameters`` or ``batch_size``, that makes arrays exceed this machine's memory; else empty."""
    workload, values, there = load(condition.workload), condition.hyperparameters, psutil.virtual_memory().total
    try:
        if 4 * sum(math.prod(weight.shape) for weight in workload.weights(values).values()) > there:
            return "hyperparameters"
        here = condition.device == "cpu" or workload.kind == "operator"  # whose batches are drawn on the host
        sample = workload.held(values) * {"fp64": 8, "fp32": 4}.get(condition.precision, 2) if here else 0.0
    except OverflowError:
        return "hyperparameters"
    if sample > there:
        return "hyperparameters"
    return "batch_size" if sample and condition.batch_size > condition.world_size * there / sample else ""


def require_distinct(conditions: Sequence[Condition]) -> None:
    """Refuse to measure nothing, and one condition twice."""
    if not conditions:
        raise BenchlibError("no condition to measure: the grid is empty; give at least one value for every key")
    if len(set(conditions)) < len(conditions):
        twice = next(condition for condition in conditions if conditions.count(condition) > 1)
        raise BenchlibError(f"the same condition twice: {twice}; the baseline is measured against itself anyway")


def require_trainable(
    conditions: Sequence[Condition], seeds: Sequence[int], epochs: int, threshold: float | None, most_epochs: int | None
) -> None:
    """Refuse training runs beyond the limits of parameter files, to a threshold out of reach, or of a group."""
    require_distinct(conditions)
    validation.Training(seeds=list(seeds), epochs=epochs, most_epochs=most_epochs)
    for condition in conditions:
        workload = load(condition.workload)
        if workload.metric is None:
            raise BenchlibError(f"workload {condition.workload!r} has no metric: it can be compared, but not trained")
        metrics.require(workload)
        low, high = metrics.limits(workload)
        if threshold is not None and not low <= threshold <= high:
            between = f"{workload.metric} is between {low:g} and {high:g}"
            raise BenchlibError(f"threshold {threshold!r}: {between}, no run can reach it")
        if condition.world_size > 1:
            raise BenchlibError(f"{condition}: training runs are of one process; compare a group's steps")
