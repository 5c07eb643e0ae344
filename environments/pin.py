"""Pins all that an environment's requirements pull in, below them: as it has been made here, or as uv resolves them.

    .venv/bin/python environments/pin.py [NAME ...]     (none given: all that are there)

What stands above the line that says so is written by hand. A build's own suffix (2.6.0+cpu) is cut off, since no
package index has a version of that name; pip is of the Python, and so are setuptools and wheel before 3.8.
"""

from __future__ import annotations

import importlib.metadata
import re
import subprocess
import sys
from pathlib import Path

from benchlib import environments

MARK = "# All that these pull in (environments/pin.py):"


def main(names: list[str]) -> None:
    """Write the files again."""
    for name in names or [one for one in environments.templates() if environments.why_absent(one) is None]:
        asked = environments.requirements(name)
        by_hand = asked.file.read_text(encoding="utf-8").partition(MARK)[0]
        own = {_plain(line) for line in re.findall(r"^[A-Za-z0-9][\w.-]*", by_hand, re.MULTILINE)}
        old = tuple(map(int, asked.python.split("."))) < environments.OLDEST
        own |= {"pip", *(("setuptools", "wheel") if old else ())}
        found = _resolved(asked) if environments.why_absent(name) else _installed(name)
        pins = [f"{one}=={version.partition('+')[0]}\n" for one, version in sorted(found.items()) if one not in own]
        asked.file.write_text(by_hand + (f"{MARK}\n{''.join(pins)}" if pins else ""), encoding="utf-8")
        print(f"{asked.file}: {len(pins)} more pinned")


def _installed(name: str) -> dict[str, str]:
    place = Path(environments.find(name).python).parents[1]
    folders = [str(one) for one in place.glob("lib*/python*/site-packages")]
    return {_plain(one.name): one.version for one in importlib.metadata.distributions(path=folders)}


def _resolved(asked: environments.Requirements) -> dict[str, str]:
    """Without installing them, which takes what cannot be had here, or gigabytes."""
    options = ["--quiet", "--no-header", "--no-annotate", "--python-version", asked.python]
    command = [str(Path(sys.executable).with_name("uv")), "pip", "compile", *options, str(asked.file)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    pairs = (line.partition("==") for line in lines if "==" in line)
    return {_plain(one.partition("[")[0]): version.split()[0] for one, _, version in pairs}


def _plain(name: str) -> str:
    """A distribution's name as all tools compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main(sys.argv[1:])
