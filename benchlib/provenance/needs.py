"""The needs of a framework in an environment to use a device, as its file declares them, without importing it."""

from __future__ import annotations

import functools
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path

from benchlib import env_vars, frameworks
from benchlib.errors import BenchlibError, no_such
from benchlib.provenance import installed, machine
from benchlib.validation import Strict


class Need(Strict):
    """Something that has to be in an environment for a framework to use a device, or one of several such things."""

    device: str
    otherwise: str  # the sentence where it is not there: the fault and the remedy; ``{lacking}`` is filled in
    modules: tuple[str, ...] = ()  # the environment has one of these top-level modules
    distributions: tuple[str, ...] = ()  # the framework's package comes in one of these; ``*`` stands for anything
    text: tuple[str, str] | None = None  # a file of the package, and a regular expression that a part of it matches
    linked: str | None = None  # shared libraries of the package (``*`` as above): all that one of them needs is there


def declared_needs(framework: str) -> list[Need]:
    """The needs that a framework's file declares in ``NEEDS``; a BenchlibError names the file of a wrong one."""
    try:
        needs = [Need(**arguments) for arguments in frameworks.needs(framework)]
        for need in needs:
            if need.device not in frameworks.devices(framework):
                raise BenchlibError(no_such("device", need.device, frameworks.devices(framework)))
            re.compile(need.text[1] if need.text else "")
    except (BenchlibError, TypeError, re.error) as error:
        raise BenchlibError(f"{frameworks.file(framework)}: NEEDS: {error}") from None
    return needs


def why_missing(needs: Iterable[Need], framework: str, environment: str) -> str | None:
    """The missing need of a framework in an environment, and the remedy; None: none is missing."""
    each = ((need, lacking) for need in needs for lacking in _missing_parts(need, framework, environment))
    return next((need.otherwise.replace("{lacking}", lacking) for need, lacking in each), None)


def _missing_parts(need: Need, framework: str, environment: str) -> Iterator[str]:
    """The parts of a need that are missing."""
    own = installed.module(environment, frameworks.package(framework))
    folder = Path(own.place).parent
    if need.modules and not any(installed.module(environment, name).place for name in need.modules):
        yield " or ".join(need.modules)
    if need.distributions and not any(fnmatch(one, name) for one in own.distributions for name in need.distributions):
        yield " or ".join(need.distributions)
    if need.text and not re.search(need.text[1], machine.read(folder / need.text[0]), re.MULTILINE):
        yield need.text[0]
    if need.linked and (libraries := _unlinked_libraries(folder, need.linked)):
        yield libraries


@functools.cache
def _unlinked_libraries(folder: Path, pattern: str) -> str:
    """The libraries that the dynamic linker does not find, for the candidate that lacks the fewest."""
    libraries = sorted(folder.glob(pattern))
    if not libraries:
        return f"{Path(pattern).name} itself, which this build comes without"
    options = {"env": env_vars.for_worker(os.environ), "capture_output": True, "text": True, "check": False}
    listed = [subprocess.run(["ldd", str(one)], **options).stdout for one in libraries]
    return ", ".join(min((sorted(re.findall(r"(\S+) => not found", text)) for text in listed), key=len))
