"""What the tasks of a notebook are called: its tables, figures and findings tell them apart by this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchlib import workloads
from benchlib.condition import Condition


def names(tasks: Sequence[Mapping[str, Any]]) -> list[str]:
    """The name of each of ``tasks``, which are parameters as plain values: the workload and its data; where several
    have both in common, what they differ in, too.
    """
    plain = [f"{task['workload']} on {task['data']}" for task in tasks]
    full = []
    for name, task in zip(plain, tasks, strict=True):
        alike = [_choices(other) for who, other in zip(plain, tasks, strict=True) if who == name]
        own = _choices(task) if len(alike) > 1 else {}
        full.append(", ".join([name, *(text for key, text in own.items() if any(o[key] != text for o in alike))]))
    return full


def check(tasks: Sequence[Mapping[str, Any]]) -> None:
    """Raise a ValueError (for a validator) if two of ``tasks`` are the same, though they may say it in other words:
    a hyperparameter's default may be given or left out.
    """
    every = names(tasks)
    for number, name in enumerate(every):
        if (first := every.index(name)) < number:
            raise ValueError(f"tasks.{number}: {name}: is the same as tasks.{first}; take it out, or change it")


def _choices(task: Mapping[str, Any]) -> dict[str, str]:
    """All that two tasks of one workload on one data set may differ in, in words."""
    given = {"hyperparameters", "batch_size", "train_samples", "learning_rate"}
    condition = Condition(
        workload=task["workload"],
        framework=workloads.load(task["workload"]).frameworks()[0],  # it makes no difference which
        data=task["data"],
        **{name: task[name] for name in given if name in task},
    )
    threshold = task.get("threshold")
    return {
        **{name: f"{name}={value}" for name, value in condition.hyperparameters.items()},
        "batch_size": f"batch {condition.batch_size}",
        "epochs": f"{task.get('epochs')} epochs",
        "most_epochs": f"at most {task.get('most_epochs')} epochs",
        "train_samples": f"{condition.train_samples or 'all'} samples",
        "learning_rate": f"lr {condition.learning_rate}",
        "threshold": "no threshold" if threshold is None else f"threshold {float(threshold)}",
    }
