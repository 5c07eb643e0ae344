"""Whether what a condition asks for can fit into this machine's memory: by its workload's own arithmetic, before
anything is made.

What is counted is needed at the very least, so what passes may still be too much; what is refused would never have
run. Only shapes are computed with: a refusal takes no memory, whatever was asked for.
"""

from __future__ import annotations

import functools
import json
import math
import resource
from collections.abc import Callable, Iterator, Sequence

import psutil

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.data import prepare
from benchlib.errors import BenchlibError, shown
from benchlib.measure import machine, nvml

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def require(condition: Condition) -> None:
    """Raise a BenchlibError, with the figures, if the condition's weights, a batch, or its prepared data cannot fit."""
    there = _of_device(condition.device)
    named = "this machine" if condition.device == "cpu" else f"its device {condition.device!r}"
    kept = ", with their gradients and what the optimizer keeps" if _trains(condition) else ""
    weights = _least(weights_bytes, condition)
    _refuse(f"its weights{kept}", weights, there, named)
    batch = weights + _least(batch_bytes, condition)
    _refuse(f"a step with a batch of {shown(condition.batch_size)}", batch, there, named)
    _refuse("its prepared data", _least(prepare.least_bytes, condition), _of_host(), "this machine")


def require_together(conditions: Sequence[Condition]) -> None:
    """Raise a BenchlibError if the processes of a comparison, which are alive at the same time, cannot fit beside each
    other; the first condition is the baseline, which has two.
    """
    on_cpu = [condition for condition in [conditions[0], *conditions] if condition.device == "cpu"]
    weights = sum(condition.world_size * weights_bytes(condition) for condition in on_cpu)
    step = max((condition.world_size * batch_bytes(condition) for condition in on_cpu), default=0.0)
    what = f"{len(on_cpu)} processes at once, of {conditions[0]} and what it is compared with"
    _refuse(what, weights + step, _of_host(), "this machine")


def weights_bytes(condition: Condition) -> float:
    """What a process has to hold for the weights: themselves, their gradients, and what the optimizer keeps."""
    every, trained = _numbers(condition.workload, json.dumps(condition.hyperparameters))
    workload = workloads.load(condition.workload)
    if _trains(condition):
        every += (1 + workload.optimizer_state) * trained
    elif condition.hyperparameters.get("passes") == "forward+backward":
        every += trained
    return every * _number_bytes(condition)


def batch_bytes(condition: Condition) -> float:
    """What a process has to hold at once of its share of a batch."""
    held = _held(condition.workload, json.dumps(condition.hyperparameters))
    return condition.batch_size / condition.world_size * held * _number_bytes(condition)


def size(count: float) -> str:
    """Bytes for people.

    >>> size(3 * 2**30), size(2.5 * 2**50)
    ('3 GiB', '2,560 TiB')
    """
    if math.isinf(count):
        return "more bytes than can be counted"
    power = min(len(UNITS) - 1, int(math.log2(max(count, 1)) // 10))
    number = count / 1024**power
    return f"{number:,.0f} {UNITS[power]}" if 100 <= number < 1e6 else f"{number:,.3g} {UNITS[power]}"


def _refuse(what: str, least: float, there: float, named: str) -> None:
    if least > there:
        raise BenchlibError(f"memory: {what}: at least {size(least)}, but {named} has {size(there)}; ask for less")


def _least(count: Callable[[Condition], float], condition: Condition) -> float:
    try:
        return count(condition)
    except OverflowError:  # more than a floating-point number holds
        return math.inf


def _trains(condition: Condition) -> bool:
    return workloads.load(condition.workload).kind == "training"


def _number_bytes(condition: Condition) -> int:
    return 4 if condition.precision == "fp32" else 2  # mixed precisions may hold everything in two bytes


@functools.lru_cache(maxsize=1024)
def _numbers(workload: str, values: str) -> tuple[float, float]:
    """Of all weights and of those that are trained; hyperparameters as JSON."""
    weights = workloads.load(workload).weights(json.loads(values)).values()
    counts = [(float(math.prod(weight.shape)), weight.trained) for weight in weights]
    return sum(count for count, _ in counts), sum(count for count, trained in counts if trained)


@functools.lru_cache(maxsize=1024)
def _held(workload: str, values: str) -> float:
    return workloads.load(workload).held(json.loads(values))


@functools.cache
def _of_host() -> float:
    """What this process and its workers may have: the machine's memory, or less where a limit is set (a container's, a
    batch system's, ``ulimit -v``).
    """
    address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    limits = [psutil.virtual_memory().total, *_of_control_groups()]
    return float(min(limits if address_space == resource.RLIM_INFINITY else [*limits, address_space]))


def _of_control_groups() -> Iterator[int]:
    """The limits of the control groups that this process is in, and of those that hold them."""
    for group in machine.control_groups("memory"):
        limit = machine.read(group / "memory.max") or machine.read(group / "memory.limit_in_bytes")
        if limit.isdecimal():  # else "max"
            yield int(limit)


def _of_device(device: str) -> float:
    """The memory of the largest device of this kind; the machine's own where there is none, or none that tells."""
    known = [gpu["memory_mib"] for gpu in nvml.gpus() if gpu.get("memory_mib")] if device == "cuda" else []
    return max(known) * 2.0**20 if known else _of_host()
