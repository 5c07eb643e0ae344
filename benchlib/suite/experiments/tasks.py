"""The tasks of a notebook: their conditions, and what tables, figures and findings call them to tell them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from benchlib import frameworks, workloads
from benchlib.condition import Condition, WorkloadName
from benchlib.suite.experiments import parameters as p
from benchlib.suite.experiments import subjects
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


def conditions(parameters: p.Parameters, number: int, **given: tuple[str, Any]) -> list[Condition]:
    """Of one of the tasks of ``parameters``, a condition for each of their subjects that is not left out; ``given`` and
    what is raised are those of ``parameters.of_subject``.
    """
    task = parameters.tasks[number]
    of_task = {name: (f"tasks.{number}.{name}", getattr(task, name)) for name in Task.model_fields}
    return subjects.conditions(parameters, "subjects", **of_task, **given)


def workloads_of(tasks: Sequence[Task]) -> list[str]:
    """Of each."""
    return [task.workload for task in tasks]


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
    framework = frameworks.of(workloads.load(task.workload))[0]  # it makes no difference which
    condition = Condition(**task.model_dump(include=set(Task.model_fields)), framework=framework)
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
