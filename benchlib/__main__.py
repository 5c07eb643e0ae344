"""The command line: ``python -m benchlib run --profile quick``, ``python -m benchlib lab``, ``python -m benchlib
devices``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import benchlib
from benchlib import start, suite
from benchlib.errors import BenchlibError
from benchlib.measure import machine


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 all went well, 1 a notebook failed, 2 wrong input, 130 stopped by Ctrl-C."""
    parser = argparse.ArgumentParser(prog="python -m benchlib", description=benchlib.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("devices", help="say what each framework can use here, and what is missing of the rest")
    run = commands.add_parser("run", help="execute the notebooks, and write the report")
    run.add_argument("--profile", default="quick", help="quick (minutes, embedded data) or full (the papers' settings)")
    run.add_argument("--outputs", type=Path, help="folder of the results (default: outputs/PROFILE)")
    lab = commands.add_parser("lab", help="open JupyterLab on a page of the notebooks and where each stands")
    lab.add_argument("--profile", default="quick", help="whose results the page is about")
    given = parser.parse_args(arguments)
    try:
        if given.command == "devices":
            _print_devices()
        elif given.command == "lab":
            start.open_lab(given.profile)
        else:
            return suite.run(given.profile, given.outputs)
        return 0
    except BenchlibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; what was measured is kept, and the same command goes on from there", file=sys.stderr)
        return 130


def _print_devices() -> None:
    """A line for each framework and device; imports no framework."""
    for row in machine.survey():
        name = f"{row['framework']} {row['version'] or ''}".strip()
        print(f"{name}, {row['device']}: {'usable' if row['missing'] is None else row['missing']}")


if __name__ == "__main__":
    sys.exit(main())
