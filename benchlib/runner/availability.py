"""The devices that each framework can use here, in each environment, or the missing parts. Imports no framework."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from benchlib import environments, frameworks
from benchlib.condition import Condition
from benchlib.environments import DEFAULT
from benchlib.errors import BenchlibError
from benchlib.provenance import installed, needs, npu_smi, nvml
from benchlib.runner import process_group

_ON_MACHINE = {"cuda": nvml, "npu": npu_smi}  # tell whether the machine has one; of others the session says it


def why_absent(framework: str, device: str, environment: str = DEFAULT) -> str | None:
    """None if ``framework`` can use ``device`` here in an environment; else the missing part and the remedy."""
    offered, declared = frameworks.devices(framework), needs.declared_needs(framework)
    try:
        if sentence := _without_framework(framework, environment):
            return sentence
        if device not in offered:
            return f"device {device!r}: {framework} has no path to it; it runs on {', '.join(offered)}"
        on_machine = _ON_MACHINE[device].why_missing() if device in _ON_MACHINE else None
        of_device = [need for need in declared if need.device == device]
        missing = on_machine or needs.why_missing(of_device, framework, environment)
        return missing and f"device {device!r}: {missing}"
    except BenchlibError as error:
        return str(error)


def usable(framework: str, environment: str = DEFAULT) -> list[str]:
    """The devices that ``framework`` can use here in an environment."""
    return [device for device in frameworks.devices(framework) if why_absent(framework, device, environment) is None]


def devices(within: Iterable[str] = (DEFAULT,)) -> list[str]:
    """The devices that at least one framework can use here in one of these environments, ``cpu`` first."""
    every = {row["device"] for row in survey(within) if row["missing"] is None}
    return sorted(every, key=frameworks.every_device().index)


def survey(within: Iterable[str] = (DEFAULT,)) -> list[dict[str, str | None]]:
    """A row for each framework, environment and device: what is ``missing``. An absent one: in the default only."""
    rows = []
    for environment, name in itertools.product(within, frameworks.names()):
        try:
            there, version = installed.offers(environment, name), installed.version(environment, name)
        except BenchlibError:  # the environment is gone, or cannot say: ``why_absent`` says so
            there, version = False, None
        for device in frameworks.devices(name) if there or environment == DEFAULT else ():
            row = {"framework": name, "environment": environment, "version": version, "device": device}
            rows.append({**row, "missing": why_absent(name, device, environment)})
    return rows


def places(device: str) -> int:
    """The number of processes of a group that can each have a core, or a device, to itself."""
    if device == "cpu":
        return len(os.sched_getaffinity(0))
    return len(nvml.gpus() if device == "cuda" else npu_smi.npus())


def require(conditions: Iterable[Condition]) -> None:
    """Raise a BenchlibError if a condition asks for something that this machine does not have."""
    for one in conditions:
        if missing := why_absent(one.framework, one.device, one.environment) or _folder(one) or _processors(one):
            raise BenchlibError(f"{one}: {missing}")


def _folder(condition: Condition) -> str | None:
    """The fault of the folder for temporary files, which holds compiled kernels and a group's socket."""
    place = tempfile.gettempdir()
    compiles = frameworks.compiles(condition.framework, condition.mode, "cpu")
    longest, grouped = process_group.LONGEST_FOLDER, condition.world_size > 1
    wrong = {
        "is mounted noexec, so compiled kernels cannot be loaded from it": compiles
        and os.statvfs(place).f_flag & os.ST_NOEXEC,
        "has a blank, quote or backslash in its name, which breaks the compiler's command line": compiles
        and re.search(r"[\s'\"\\]", place),
        f"has a name longer than {longest} characters, too long for the socket of a group": grouped
        and len(os.fsencode(place)) > longest,
    }
    return next((f"TMPDIR {place!r} {why}; set TMPDIR to another folder" for why, so in wrong.items() if so), None)


def _processors(condition: Condition) -> str | None:
    """The lack of cores, devices or a path to them."""
    device, number, threads = condition.device, condition.world_size, condition.threads or 1
    if number > 1 and (lacking := _without_launcher(condition)):
        return f"world_size: {lacking}"
    cores = len(os.sched_getaffinity(0))
    if threads * (number if device == "cpu" else 1) > cores:
        asked = f"world_size {number} of {threads} threads" if number > 1 else f"threads {threads}"
        return f"{asked}, but this machine has {cores} cores"
    if number > 1 and device != "cpu" and number > places(device):
        return f"world_size {number}, but {places(device)} devices {device!r}"
    return None


def _without_launcher(condition: Condition) -> str | None:
    """None if an environment has the launcher of the framework's groups; else the lack."""
    if not (options := frameworks.launcher(condition.framework)):
        return f"{condition.framework} has no path to data-parallel training"
    module = dict(itertools.pairwise(options)).get("-m")  # without one it is a file of its own
    roots = Path(installed.module(condition.environment, module).place).parents[:2] if module else ()
    is_there = not module or any(file for root in roots for file in root.glob(module.replace(".", "/") + "*"))
    return None if is_there else f"not in this version: environment {condition.environment!r} has no {module}"


def _without_framework(framework: str, environment: str) -> str | None:
    """None if an environment has the framework; else the remedy."""
    python = environments.find(environment).python
    if shutil.which(python) is None:
        remedy = f"benchlib environment remove {environment}, and make it again"
        return f"environment {environment!r}: {python} is not there: {remedy}"
    if installed.offers(environment, framework):
        return None
    install = f"pip --python {python} install {frameworks.distributions(framework)[0]}"
    absent = f"framework {framework!r} is not installed in environment {environment!r}"
    return f"{absent}: {install}, or name an environment that has it (benchlib environment list)"
