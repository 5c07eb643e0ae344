"""The command line: ``benchlib run``, ``report``, ``lab``, ``trace`` and others; ``python -m benchlib`` is the same.

A command is a function whose docstring is its help: a line for the list of commands, what it does, and examples.
"""

from __future__ import annotations

import argparse
import inspect
import math
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TextIO

import benchlib
from benchlib.errors import UNWRITABLE, BenchlibError, require_package, unwritable
from benchlib.report.pdf import PAPERS
from benchlib.runner.interrupt import one_interrupt

EXIT_CODES = """exit codes:
  0    all went well, and nothing is missing
  1    a notebook or a measurement failed, or something is missing; the rest was made all the same
  2    wrong input: nothing was started
  130  stopped by Ctrl-C; what was measured is kept
  141  whoever read the output stopped reading; the rest may not have been done"""

MOST_MINUTES = 366 * 24 * 60

Command = Callable[[argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: see ``EXIT_CODES``."""
    given = _parser().parse_args(arguments)
    try:
        code = _done(given)
        sys.stdout.flush()
        return code
    except BrokenPipeError:  # ``benchlib trace FILE | head``; what is still to be flushed has nowhere to go, either
        _say_no_more(sys.stdout, sys.stderr)
        return 141
    except OSError as error:
        if error.errno not in UNWRITABLE:
            raise
        _say_no_more(sys.stdout)  # which may be what has no room
        print(f"error: {unwritable(error, 'standard output, or a file')}", file=sys.stderr)
        return 1


def _done(given: argparse.Namespace) -> int:
    try:
        if given.of_suite:
            require_package("papermill", "suite", f"benchlib {given.do.__name__}")
        with one_interrupt():
            if given.plugins:
                from benchlib import plugins

                plugins.use(given.plugins)
            return given.do(given)
    except BenchlibError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end has begun: another would only print where it was
        print("\nstopped; what was measured is kept, and the same command goes on from there", file=sys.stderr)
        return 130


def _say_no_more(*streams: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream.fileno())


def _parser() -> argparse.ArgumentParser:
    raw = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(prog="benchlib", description=benchlib.__doc__, epilog=EXIT_CODES, **raw)
    places = {"": parser.add_subparsers(required=True, metavar="COMMAND")}
    for do, options, of_suite in _COMMANDS:
        group, _, name = do.__name__.rpartition("_")
        if group not in places:
            line, text = _GROUPS[group]
            parent = places[""].add_parser(group, help=line, description=text, **raw)
            places[group] = parent.add_subparsers(required=True, metavar="ACTION")
        line, _, text = inspect.cleandoc(do.__doc__ or "").partition("\n\n")
        description, _, examples = text.rpartition("\n\n")
        command = places[group].add_parser(
            name, help=line[:1].lower() + line[1:].rstrip("."), description=description, epilog=examples, **raw
        )
        for names, settings in (_PLUGINS, *options):
            command.add_argument(*names, **settings)
        command.set_defaults(do=do, of_suite=of_suite)
    return parser


def _option(*names: str, **settings: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """The arguments of ``add_argument``."""
    return names, settings


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0 <= minutes <= MOST_MINUTES:
        raise argparse.ArgumentTypeError(f"{text!r}: give a number of minutes, such as 30, or 0 to measure nothing")
    return minutes


_PLUGINS = _option(
    "--plugins",
    type=Path,
    action="append",
    metavar="FOLDER",
    help="with frameworks, workloads or data sets of yours: frameworks/NAME.py, workloads/NAME/, data/NAME.py "
    "(several folders: give it again); those of installed packages are found without",
)
_PROFILE = (
    _option("--profile", default="quick", help="a folder of parameters/ (default: quick)"),
    _option("--outputs", type=Path, help="folder of the results (default: outputs/PROFILE)"),
)
_NAME = _option("name", metavar="NAME", help="letters, digits and . _ -")

_GROUPS = {
    "environment": (
        "make, register, list, remove or check environments: other interpreters for frameworks to run in",
        "An environment is an interpreter with its packages, under a name that conditions can give; the one that\n"
        "benchlib runs in is called default. The others are registered in .environments/ of the project.",
    )
}
"""Of commands of two words the first, with its help."""

_COMMANDS: list[tuple[Command, tuple, bool]] = []
"""Each command with its options, and whether it needs what the extra ``suite`` brings."""


def _command(*options: tuple[tuple[str, ...], dict[str, Any]], of_suite: bool = False) -> Callable[[Command], Command]:
    """Make a function the command of its name; ``environment_add`` is ``environment add``."""

    def register(do: Command) -> Command:
        _COMMANDS.append((do, options, of_suite))
        return do

    return register


# Imports that take long stand in the commands: the others do without, and an interrupt while they are made is one.


@_command(
    *_PROFILE,
    _option(
        "--minutes",
        type=_minutes,
        help="for measuring, from now on; 0: measure nothing, make the report of what is there (default: as many as "
        "parameters/PROFILE/defaults.yaml says, less those that its results have had)",
    ),
    of_suite=True,
)
def run(given: argparse.Namespace) -> int:
    """Measure what is missing, execute the notebooks, write the report.

    Measures what the notebooks that have a file in parameters/PROFILE/ ask for, and executes them. What
    was measured before is taken from disk; a notebook whose inputs have not changed is not executed
    again. A notebook that fails does not stop the others.

    examples:
      benchlib run                      the profile quick: minutes, needs no download
      benchlib run --minutes 10         ten more minutes make the same report sharper
      benchlib run --profile full       the works' own data and grids: days on a few CPU cores
    """
    from benchlib.suite import runs

    return runs.run(given.profile, given.outputs, given.minutes)


@_command(*_PROFILE, of_suite=True)
def report(given: argparse.Namespace) -> int:
    """Write the report again from what is there; measure nothing.

    Judges the claims and gathers the results of the notebooks that have run. What is missing is named in
    the report, and here; the exit code is then 1.

    example:
      benchlib report --profile quick
    """
    from benchlib.suite import runs

    return runs.report(given.profile, given.outputs)


def _why_none(environment: str) -> str:
    """Why an environment offers no framework."""
    from benchlib import environments, interpreters

    try:
        interpreters.probe(environments.find(environment).python, ())
    except BenchlibError as error:
        return str(error)
    return f"offers no framework (benchlib environment check {environment} says why)"


@_command()
def devices(given: argparse.Namespace) -> int:
    """Say what each framework can use here, and what is missing of the rest.

    A line for each framework and device, in each environment. Imports no framework.

    example:
      benchlib devices
    """
    from benchlib import environments
    from benchlib.condition import implementation
    from benchlib.runner import availability

    for environment in environments.names():
        rows = availability.survey([environment])
        for row in rows:
            name = " ".join(filter(None, [implementation(row["framework"], environment), row["version"]]))
            print(f"{name}, {row['device']}: {'usable' if row['missing'] is None else row['missing']}")
        if not rows:
            print(f"environment {environment}: {_why_none(environment)}")
    return 0


@_command(_NAME)
def environment_create(given: argparse.Namespace) -> int:
    """Make one from environments/NAME.txt.

    Makes .environments/NAME with the Python that environments/NAME.txt asks for, and installs what it
    names, with uv (venv and pip for Python 3.7 and older). One that cannot be made to its end leaves nothing
    behind.

    example:
      benchlib environment create torch-2.9
    """
    from benchlib import environments
    from benchlib.interpreters import probe

    try:
        created = environments.create(given.name)
    except environments.CreationFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    python = f"Python {probe(created.python, ()).python}, {created.python}"
    print(f"environment {created.name}: {python}; benchlib environment check {created.name} tries it")
    return 0


@_command(_NAME, _option("--python", required=True, help="the interpreter: a path, or a program on PATH"))
def environment_add(given: argparse.Namespace) -> int:
    """Register an interpreter that is there, and leave it as it is.

    A framework that is installed with it can then be measured beside others: somebody's own build, for
    instance. The interpreter needs numpy beside the framework, and nothing of benchlib.

    example:
      benchlib environment add mine --python ~/mine/bin/python
    """
    from benchlib import environments
    from benchlib.interpreters import probe

    added = environments.add(given.name, given.python)
    python = f"Python {probe(added.python, ()).python}, {added.python}"
    print(f"environment {added.name}: {python}; benchlib environment check {added.name} tries it")
    return 0


@_command()
def environment_list(given: argparse.Namespace) -> int:
    """Say which environments there are, and which could be made.

    A line for each that is registered, and for each file of environments/ that none has been made of.

    example:
      benchlib environment list
    """
    from benchlib import environments

    for name in [environments.DEFAULT, *sorted({*environments.on_record(), *environments.offered()})]:
        print(f"{name}: {environments.why_absent(name) or environments.find(name).python}")
    return 0


@_command(_NAME)
def environment_remove(given: argparse.Namespace) -> int:
    """Delete one that was made here, or forget one that was added.

    An interpreter that was added is left as it is. What was measured with an environment stays.

    example:
      benchlib environment remove torch-2.9
    """
    from benchlib import environments

    gone = environments.remove(given.name)
    print(f"environment {given.name}: {'deleted' if gone.made else f'forgotten; {gone.python} is as it was'}")
    return 0


@_command(_NAME)
def environment_check(given: argparse.Namespace) -> int:
    """Try each framework in it, and say what is missing.

    Starts a worker of each framework in the environment, says versions and devices, and tries with the
    smallest workload whether its session keeps its promises, in each mode: its timer sees all the work,
    and the model is the reference's. The exit code is 1 if a framework cannot be imported, a promise is
    broken, or a package of the environment's requirements is not there in the version they name.

    examples:
      benchlib environment check torch-2.9
      benchlib environment check default
    """
    from benchlib import inspection

    wrong = False
    for finding in inspection.inspect(given.name):
        print(finding.says, flush=True)  # a worker takes seconds
        wrong |= finding.wrong
    return 1 if wrong else 0


@_command(
    _option("--profile", default="quick", help="whose results the page is about"),
    _option("jupyter", nargs="*", metavar="OPTION", help="after --: an option of JupyterLab's"),
    of_suite=True,
)
def lab(given: argparse.Namespace) -> int:
    """Open JupyterLab on a page of the notebooks and where each stands.

    The page says of each notebook whether it has run, is stale (and why) or is missing, and links to it
    and to its results. What follows -- goes to JupyterLab: in a container it may need --allow-root and
    --ip=0.0.0.0; over ssh, --no-browser and --port=8889.

    examples:
      benchlib lab --profile quick
      benchlib lab -- --allow-root --no-browser --port=8889
    """
    from benchlib.suite import start

    start.open_lab(given.profile, given.jupyter)
    return 0


@_command(
    _option("file", type=Path, metavar="FILE", help="a .csv, .tex, .svg, .png or .pdf of outputs/PROFILE"),
    _option("name", nargs="?", help="only the numbers that have this in them: a macro's name, a word of a row"),
    _option("--outputs", type=Path, help="the folder of the results (default: the one that FILE lies in)"),
    of_suite=True,
)
def trace(given: argparse.Namespace) -> int:
    """Lead a number of a table, a figure or a LaTeX macro back to its measurements.

    Lists the numbers of FILE, and the measurements that they were made from: what was measured, on what,
    with which versions and code, and whether those are still what is here; and what of FILE was changed
    by hand. A copy, such as in a paper's folder, can be traced too, with --outputs: what it says that the
    results there do not say is listed.

    examples:
      benchlib trace outputs/quick/tables/frameworks.tex
      benchlib trace outputs/quick/tables/modes_macros.tex benchlibModesRatios
      benchlib trace paper/frameworks.tex --outputs outputs/quick
    """
    from benchlib.suite import trace as suite

    return suite.trace(given.file, given.name, given.outputs)


@_command(
    *_PROFILE,
    _option(
        "--appendix",
        choices=["results", "code"],
        default="results",
        help="what the notebooks' pages show: results and prose, or the code with them (default: results)",
    ),
    _option("--paper", choices=PAPERS, default="a4", help="of the PDFs (default: a4)"),
    of_suite=True,
)
def appendix(given: argparse.Namespace) -> int:
    """Bundle what a run gave, for a paper's appendix or an archive.

    Writes appendix/ and appendix.zip into the folder of the results: the report and each executed
    notebook as HTML and PDF, figures, tables, measurements, parameters, versions, and a
    manifest. Nothing is executed: run comes first. What is missing is named, and the rest is bundled.
    PDFs need Chromium.

    examples:
      benchlib appendix --profile quick
      benchlib appendix --appendix code --paper letter
    """
    from benchlib.suite import appendix as suite

    return suite.make(given.profile, given.outputs, given.appendix == "code", given.paper)


@_command(
    *_PROFILE,
    _option("--all", action="store_true", help="everything in the folder, the measurements of the report too"),
    _option("--yes", action="store_true", help="take it away; without this it is only listed"),
    of_suite=True,
)
def clean(given: argparse.Namespace) -> int:
    """Say what of the results nothing needs any more; take it away with --yes.

    Measurements of older code, versions or parameters, and those that were made in JupyterLab only, stay
    until they are cleaned away. What the present report is made of is not touched, unless --all is given.

    examples:
      benchlib clean --profile quick          what would go
      benchlib clean --profile quick --yes    take it away
    """
    from benchlib.suite import cleaning

    return cleaning.clean(given.outputs or Path("outputs", given.profile), given.all, given.yes)


if __name__ == "__main__":
    sys.exit(main())
