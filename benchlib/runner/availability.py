"""Which devices each framework can use here, in each environment; and of what cannot be used, what is missing and what
to do. First what the machine lacks is said, then what the environment does. No framework is imported.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterable

from benchlib import environments, frameworks
from benchlib.condition import Condition
from benchlib.environments import DEFAULT
from benchlib.errors import BenchlibError
from benchlib.provenance import installed, needs, npu_smi, nvml
from benchlib.runner import process_group

_ON_MACHINE = {"cuda": nvml, "npu": npu_smi}
"""By kind of device what tells whether the machine has one; of other kinds the framework's session says it."""


def available(framework: str, device: str, environment: str = DEFAULT) -> str | None:
    """None if ``framework`` can use ``device`` here in an environment; else a sentence that says what is missing and
    what to do. A BenchlibError for what its file declares wrongly, on any machine.
    """
    offered, declared = frameworks.devices(framework), needs.declared(framework)
    try:
        if sentence := _without_framework(framework, environment):
            return sentence
        if device not in offered:
            return f"device {device!r}: {framework} has no path to it; it runs on {', '.join(offered)}"
        on_machine = _ON_MACHINE[device].missing() if device in _ON_MACHINE else None
        of_device = [need for need in declared if need.device == device]
        missing = on_machine or needs.missing(of_device, framework, environment)
        return missing and f"device {device!r}: {missing}"
    except BenchlibError as error:
        return str(error)


def usable(framework: str, environment: str = DEFAULT) -> list[str]:
    """The devices that ``framework`` can use here in an environment."""
    return [device for device in frameworks.devices(framework) if available(framework, device, environment) is None]


def devices(within: Iterable[str] = (DEFAULT,)) -> list[str]:
    """The devices that at least one framework can use here in one of these environments, ``cpu`` first."""
    every = {row["device"] for row in survey(within) if row["missing"] is None}
    return sorted(every, key=frameworks.every_device().index)


def survey(within: Iterable[str] = (DEFAULT,)) -> list[dict[str, str | None]]:
    """Of every framework in each of these environments, and every device that it has a path to: ``framework``,
    ``environment``, the framework's ``version`` there, ``device``, and what is ``missing`` (None: nothing). What is not
    installed is listed of the default environment only.
    """
    rows = []
    for environment, name in itertools.product(within, frameworks.names()):
        try:
            there, version = installed.offers(environment, name), installed.version(environment, name)
        except BenchlibError:  # the environment is gone, or cannot say: ``available`` says so
            there, version = False, None
        for device in frameworks.devices(name) if there or environment == DEFAULT else ():
            row = {"framework": name, "environment": environment, "version": version, "device": device}
            rows.append({**row, "missing": available(name, device, environment)})
    return rows


def places(device: str) -> int:
    """How many processes of a group can each have a core, or a device, to itself."""
    if device == "cpu":
        return len(os.sched_getaffinity(0))
    return len(nvml.gpus() if device == "cuda" else npu_smi.npus())


def require(conditions: Iterable[Condition]) -> None:
    """Raise a BenchlibError if a condition asks for what this machine does not have."""
    cores = len(os.sched_getaffinity(0))
    for condition in conditions:
        if missing := available(condition.framework, condition.device, condition.environment):
            raise BenchlibError(f"{condition}: {missing}")
        if condition.threads is not None and condition.threads > cores:
            raise BenchlibError(f"{condition}: threads {condition.threads}, but this machine has {cores} cores")
        _require_folder(condition)
        if condition.world_size > 1:
            _require_group(condition, cores)


def _require_folder(condition: Condition) -> None:
    """Workers have their own folder in that for temporary files: compiled kernels and a group's socket lie there."""
    place, wrong = tempfile.gettempdir(), None
    if frameworks.compiles(condition.framework, condition.mode, "cpu"):  # then it loads kernels elsewhere, too
        if os.statvfs(place).f_flag & os.ST_NOEXEC:
            wrong = "is mounted noexec, so compiled kernels cannot be loaded from it"
        elif re.search(r"[\s'\"\\]", place):
            wrong = "has a blank, quote or backslash in its name, which breaks the compiler's command line"
    if condition.world_size > 1 and len(os.fsencode(place)) > process_group.LONGEST_FOLDER:
        wrong = f"has a name longer than {process_group.LONGEST_FOLDER} characters, too long for the socket of a group"
    if wrong:
        raise BenchlibError(f"{condition}: TMPDIR {place!r} {wrong}; set TMPDIR to another folder")


def _require_group(condition: Condition, cores: int) -> None:
    if not frameworks.launcher(condition.framework):
        raise BenchlibError(f"{condition}: world_size: {condition.framework} has no path to data-parallel training")
    if condition.device == "cpu" and condition.world_size * condition.threads > cores:
        asked = f"world_size {condition.world_size} of {condition.threads} threads"
        raise BenchlibError(f"{condition}: {asked}, but this machine has {cores} cores")
    there = places(condition.device)
    if condition.device != "cpu" and condition.world_size > there:
        raise BenchlibError(f"{condition}: world_size {condition.world_size}, but {there} devices {condition.device!r}")


def _without_framework(framework: str, environment: str) -> str | None:
    """None if an environment has the framework; else what to do."""
    python = environments.find(environment).python
    if shutil.which(python) is None:
        again = f"benchlib environment remove {environment}, and make it again"
        return f"environment {environment!r}: {python} is not there: {again}"
    if installed.offers(environment, framework):
        return None
    install = f"pip --python {python} install {frameworks.distributions(framework)[0]}"
    return (
        f"framework {framework!r} is not installed in environment {environment!r}: {install}, or name an environment "
        "that has it (benchlib environment list)"
    )
