"""The command line: ``python -m benchlib run --profile quick``, ``appendix --profile quick``, ``devices``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import benchlib
from benchlib import suite
from benchlib.errors import BenchlibError
from benchlib.measure import machine
from benchlib.report.pdf import PAPERS


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code: 0 all went well, 1 a notebook or the printing failed, or something is missing in the appendix, 2 wrong
    input, 130 stopped by Ctrl-C.
    """
    parser = argparse.ArgumentParser(prog="python -m benchlib", description=benchlib.__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("devices", help="say what each framework can use here, and what is missing of the rest")
    run = commands.add_parser("run", help="execute the notebooks, and write the report")
    bundle = commands.add_parser(
        "appendix",
        help="bundle what a run gave, for a paper's appendix or an archive",
        description="Write appendix/ and appendix.zip into the folder of the results: the report and each executed "
        "notebook as HTML and PDF, figures, tables, measurements, parameters, versions, and metadata (RO-Crate). "
        "Nothing is executed: run comes first. What is missing is named, and the rest is bundled. PDFs need Chromium.",
    )
    for command in (run, bundle):
        command.add_argument(
            "--profile", default="quick", help="quick (minutes, embedded data) or full (the papers' settings)"
        )
        command.add_argument("--outputs", type=Path, help="folder of the results (default: outputs/PROFILE)")
    bundle.add_argument(
        "--appendix",
        choices=["results", "code"],
        default="results",
        help="what the notebooks' pages show: results and prose, or the code with them (default: results)",
    )
    bundle.add_argument("--paper", choices=PAPERS, default="a4", help="of the PDFs (default: a4)")
    given = parser.parse_args(arguments)
    try:
        if given.command == "devices":
            _print_devices()
            return 0
        if given.command == "appendix":
            from benchlib.report import appendix  # nbconvert and rocrate take long to import: not for nothing

            return appendix.make(given.profile, given.outputs, given.appendix == "code", given.paper)
        return suite.run(given.profile, given.outputs)
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
