"""The subjects of a notebook that are there, and what is said of those that are not.

One that says ``if_there`` is left out where its environment is not there, has not its framework or cannot use the
device, and of a workload that its framework has no file of. All others are refused then, before anything starts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.runner import availability
from benchlib.suite.experiments import parameters as p


def conditions(parameters: p.Parameters, key: str, **given: tuple[str, Any]) -> list[Condition]:
    """A condition for each of the subjects that the parameter ``key`` lists, without those that are left out; ``given``
    and what is raised are those of ``parameters.of_subject``.
    """
    return [
        condition
        for number, subject in enumerate(getattr(parameters, key))
        for condition in of_one(parameters, f"{key}.{number}", subject, **given)
    ]


def of_one(parameters: p.Parameters, key: str, subject: p.Subject, **given: tuple[str, Any]) -> list[Condition]:
    """The condition of a subject, as ``parameters.of_subject`` makes it; none where it is left out. Whatever is wrong
    with it is refused there, too: a file shall not be right on one machine and wrong on another.
    """
    _, workload = given.get("workload") or ("workload", parameters.workload)
    if subject.if_there and _has_no_file(subject, workload):
        return []
    condition = p.of_subject(parameters, key, subject, **given)
    return [] if subject.if_there and _absence(subject, condition.device) else [condition]


def left_out(subjects: Iterable[p.Subject], of: Iterable[str], devices: Iterable[str]) -> list[str]:
    """A sentence for whatever of these subjects is left out, ``of`` these workloads or on these devices, and why."""
    of, devices, sentences = list(of), list(devices), []
    for subject in subjects:
        if not subject.if_there:
            continue
        whys = [why for device in devices if (why := _absence(subject, device))]
        sentences += [f"Not measured in {subject.framework}: {why}; run again after that." for why in whys]
        if len(whys) < len(devices) and (files := [name for name in of if _has_no_file(subject, name)]):
            sentences.append(f"Not measured in {subject.framework}: {', '.join(files)}, of which it has no file.")
    return list(dict.fromkeys(sentences))


def _absence(subject: p.Subject, device: str) -> str | None:
    return availability.available(subject.framework, device, subject.environment)


def _has_no_file(subject: p.Subject, workload: str) -> bool:
    return subject.framework not in workloads.load(workload).frameworks()
