"""The tasks of a notebook: their conditions, and what tables, figures and findings call them to tell them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from benchlib import workloads
from benchlib.condition import Condition, WorkloadName
from benchlib.suite.experiments import parameters as p
from benchlib.validation import Strict


class Task(BaseModel):
    """A workload, with its data and all that its conditions have in common."""

    model_config = Strict.model_config

    workload: WorkloadName
    data: str
    hyperparameters: dict[str, Any]
    batch_size: p.BatchSize
    learning_rate: p.Rate | None  # None: of a workload that does not train
    train_samples: p.Samples | None  # None: all


def conditions(tasks: Sequence[Task], number: int, subjects: Sequence[p.Subject], device: str) -> list[Condition]:
    """Of one of the tasks, a condition for each subject. A ValueError (for a validator) names the parameter that does
    not fit.
    """
    choices = {name: getattr(tasks[number], name) for name in Task.model_fields}
    keys = {name: f"tasks.{number}.{name}" for name in choices}
    return [
        p.condition(
            {**keys, **dict.fromkeys(subject.choices, f"subjects.{at}")},
            **{"workload": choices["workload"], **subject.choices, "data": choices["data"], "device": device},
            **{name: choices[name] for name in ("hyperparameters", "batch_size", "train_samples", "learning_rate")},
        )
        for at, subject in enumerate(subjects)
    ]


def names(tasks: Sequence[Task]) -> list[str]:
    """The name of each: the workload and its data; where several have both in common, what they differ in, too."""
    plain = [f"{task.workload} on {task.data}" for task in tasks]
    full = []
    for name, task in zip(plain, tasks, strict=True):
        alike = [_choices(other) for who, other in zip(plain, tasks, strict=True) if who == name]
        own = _choices(task) if len(alike) > 1 else {}
        full.append(", ".join([name, *(text for key, text in own.items() if any(o[key] != text for o in alike))]))
    return full


def check(tasks: Sequence[Task]) -> None:
    """Raise a ValueError (for a validator) if two of ``tasks`` are the same, though they may say it in other words:
    a hyperparameter's default may be given or left out.
    """
    every = names(tasks)
    for number, name in enumerate(every):
        if (first := every.index(name)) < number:
            raise ValueError(f"tasks.{number}: {name}: is the same as tasks.{first}; take it out, or change it")


def _choices(task: Task) -> dict[str, str]:
    """All that two tasks of one workload on one data set may differ in, in words."""
    condition = Condition(**task.model_dump(include=set(Task.model_fields)), framework=_any_framework(task))
    threshold = getattr(task, "threshold", None)
    return {
        **{name: f"{name}={value}" for name, value in condition.hyperparameters.items()},
        "batch_size": f"batch {condition.batch_size}",
        "epochs": f"{getattr(task, 'epochs', None)} epochs",
        "most_epochs": f"at most {getattr(task, 'most_epochs', None)} epochs",
        "train_samples": f"{condition.train_samples or 'all'} samples",
        "learning_rate": f"lr {condition.learning_rate}",
        "threshold": "no threshold" if threshold is None else f"threshold {float(threshold)}",
    }


def _any_framework(task: Task) -> str:
    """It makes no difference which."""
    return workloads.load(task.workload).frameworks()[0]
