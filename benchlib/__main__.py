"""The command line: ``benchlib run``, ``report``, ``lab``, ``trace`` and others; ``python -m benchlib`` is the same."""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import textwrap
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TextIO

import benchlib
from benchlib.errors import UNWRITABLE, BenchlibError, require_package, unwritable
from benchlib.measure.interrupt import one_interrupt
from benchlib.suite.report.pdf import PAPERS

EXIT_CODES = """exit codes:
  0    all went well, and nothing is missing
  1    a notebook or a measurement failed, or something is missing; the rest was made all the same
  2    wrong input: nothing was started
  130  stopped by Ctrl-C; what was measured is kept
  141  whoever read the output stopped reading; the rest may not have been done"""


MOST_MINUTES = 366 * 24 * 60


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
        if given.do in _OF_THE_SUITE:
            require_package("papermill", "suite", f"benchlib {given.command}")
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
    parser = argparse.ArgumentParser(
        prog="benchlib",
        description=benchlib.__doc__,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = _command(
        commands,
        "run",
        _run,
        "measure what is missing, execute the notebooks, write the report",
        "Measures what the notebooks that have a file in parameters/PROFILE/ ask for, and executes them. What was "
        "measured before is taken from disk; a notebook whose inputs have not changed is not executed again. A "
        "notebook that fails does not stop the others.",
        "examples:\n  benchlib run                      the profile quick: minutes, needs no download\n"
        "  benchlib run --minutes 10         ten more minutes make the same report sharper\n"
        "  benchlib run --profile full       the works' own data and grids: days on a few CPU cores",
    )
    _add_profile(run)
    run.add_argument(
        "--minutes",
        type=_minutes,
        help="for measuring, from now on; 0: measure nothing, make the report of what is there (default: as many as "
        "parameters/PROFILE/report.yaml says, less those that its results have had)",
    )
    report = _command(
        commands,
        "report",
        _report,
        "write the report again from what is there; measure nothing",
        "Judges the claims and gathers the results of the notebooks that have run. What is missing is named in the "
        "report, and here; the exit code is then 1.",
        "example:\n  benchlib report --profile quick",
    )
    _add_profile(report)
    _command(
        commands,
        "devices",
        _devices,
        "say what each framework can use here, and what is missing of the rest",
        "A line for each framework and device, in each environment. Imports no framework.",
        "example:\n  benchlib devices",
    )
    _add_environment(commands)
    lab = _command(
        commands,
        "lab",
        _lab,
        "open JupyterLab on a page of the notebooks and where each stands",
        "The page says of each notebook whether it has run, is stale (and why) or is missing, and links to it and to "
        "its results.",
        "example:\n  benchlib lab --profile quick",
    )
    lab.add_argument("--profile", default="quick", help="whose results the page is about")
    trace = _command(
        commands,
        "trace",
        _trace,
        "lead a number of a table, a figure or a LaTeX macro back to its measurements",
        "Lists the numbers of FILE, and the measurements that they were made from: what was measured, on what, with "
        "which versions and code, and whether those are still what is here; and what of FILE was changed by hand. A "
        "copy, such as in a paper's folder, can be traced too, with --outputs: what it says that the results there do "
        "not say is listed.",
        "examples:\n  benchlib trace outputs/quick/tables/frameworks.tex\n"
        "  benchlib trace outputs/quick/tables/modes_macros.tex benchlibModesRatios\n"
        "  benchlib trace paper/frameworks.tex --outputs outputs/quick",
    )
    trace.add_argument(
        "file", type=Path, metavar="FILE", help="a .csv, .md, .tex, .svg, .png or .pdf of outputs/PROFILE"
    )
    trace.add_argument(
        "name", nargs="?", help="only the numbers that have this in them: a macro's name, a word of a row"
    )
    trace.add_argument("--outputs", type=Path, help="the folder of the results (default: the one that FILE lies in)")
    bundle = _command(
        commands,
        "appendix",
        _appendix,
        "bundle what a run gave, for a paper's appendix or an archive",
        "Writes appendix/ and appendix.zip into the folder of the results: the report and each executed notebook as "
        "HTML and PDF, figures, tables, measurements, parameters, versions, and metadata (RO-Crate). Nothing is "
        "executed: run comes first. What is missing is named, and the rest is bundled. PDFs need Chromium.",
        "examples:\n  benchlib appendix --profile quick\n  benchlib appendix --appendix code --paper letter",
    )
    _add_profile(bundle)
    bundle.add_argument(
        "--appendix",
        choices=["results", "code"],
        default="results",
        help="what the notebooks' pages show: results and prose, or the code with them (default: results)",
    )
    bundle.add_argument("--paper", choices=PAPERS, default="a4", help="of the PDFs (default: a4)")
    clean = _command(
        commands,
        "clean",
        _clean,
        "say what of the results nothing needs any more; take it away with --yes",
        "Measurements of older code, versions or parameters, and those that were made in JupyterLab only, stay until "
        "they are cleaned away. What the present report is made of is not touched, unless --all is given.",
        "examples:\n  benchlib clean --profile quick          what would go\n"
        "  benchlib clean --profile quick --yes    take it away",
    )
    _add_profile(clean)
    clean.add_argument(
        "--all", action="store_true", help="everything in the folder, the measurements of the report too"
    )
    clean.add_argument("--yes", action="store_true", help="take it away; without this it is only listed")
    return parser


def _add_environment(commands: argparse._SubParsersAction) -> None:
    environment = commands.add_parser(
        "environment",
        help="make, register, list, remove or check environments: other interpreters for frameworks to run in",
        description=textwrap.fill(
            "An environment is an interpreter with its packages, under a name that conditions can give; the one that "
            "benchlib runs in is called default. The others are registered in .environments/ of the project.",
            100,
        ),
    )
    actions = environment.add_subparsers(required=True, metavar="ACTION")
    create = _command(
        actions,
        "create",
        _environment_create,
        "make one from environments/NAME.txt",
        "Makes .environments/NAME with the Python that environments/NAME.txt asks for, and installs what it names: "
        "with uv if that is on PATH, else with venv and pip. One that cannot be made to its end leaves nothing behind.",
        "example:\n  benchlib environment create torch-2.9",
    )
    add = _command(
        actions,
        "add",
        _environment_add,
        "register an interpreter that is there, and leave it as it is",
        "A framework that is installed with it can then be measured beside others: somebody's own build, for instance. "
        "The interpreter needs numpy beside the framework, and nothing of benchlib.",
        "example:\n  benchlib environment add mine --python ~/mine/bin/python",
    )
    add.add_argument("--python", required=True, help="the interpreter: a path, or a program on PATH")
    _command(
        actions,
        "list",
        _environment_list,
        "say which environments there are, and which could be made",
        "A line for each that is registered, and for each file of environments/ that none has been made of.",
        "example:\n  benchlib environment list",
    )
    remove = _command(
        actions,
        "remove",
        _environment_remove,
        "delete one that was made here, or forget one that was added",
        "An interpreter that was added is left as it is. What was measured with an environment stays.",
        "example:\n  benchlib environment remove torch-2.9",
    )
    check = _command(
        actions,
        "check",
        _environment_check,
        "try each framework in it, and say what is missing",
        "Starts a worker of each framework in the environment, says versions and devices, and tries with the smallest "
        "workload whether its session keeps its promises, in each mode: its timer sees all the work, and the model is "
        "the reference's. Then it imports all that the environment's requirements name. The exit code is 1 if "
        "something cannot be imported, or a promise is broken.",
        "examples:\n  benchlib environment check torch-2.9\n  benchlib environment check default",
    )
    for action in (create, add, remove, check):
        action.add_argument("name", metavar="NAME", help="letters, digits and . _ -")


def _command(
    commands: argparse._SubParsersAction, name: str, do: Callable[..., int], said: str, told: str, examples: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=said,
        description=textwrap.fill(told, 100),
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--plugins",
        type=Path,
        action="append",
        metavar="FOLDER",
        help="with frameworks, workloads or data sets of yours: frameworks/NAME.py, workloads/NAME/, data/NAME.py "
        "(several folders: give it again); those of installed packages are found without",
    )
    parser.set_defaults(do=do, command=name)
    return parser


def _add_profile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--profile", default="quick", help="a folder of parameters/ (default: quick)")
    parser.add_argument("--outputs", type=Path, help="folder of the results (default: outputs/PROFILE)")


def _minutes(text: str) -> float:
    try:
        minutes = float(text)
    except ValueError:
        minutes = math.nan
    if not 0 <= minutes <= MOST_MINUTES:
        raise argparse.ArgumentTypeError(f"{text!r}: give a number of minutes, such as 30, or 0 to measure nothing")
    return minutes


# Imports that take long stand in the commands: the others do without, and an interrupt while they are made is one.


def _run(given: argparse.Namespace) -> int:
    from benchlib.suite import runs as suite

    return suite.run(given.profile, given.outputs, given.minutes)


def _report(given: argparse.Namespace) -> int:
    from benchlib.suite import runs as suite

    return suite.report(given.profile, given.outputs)


def _devices(given: argparse.Namespace) -> int:
    """A line for each framework and device in each environment; imports no framework."""
    from benchlib import environments
    from benchlib.condition import implementation
    from benchlib.measure import availability

    for environment in environments.names():
        rows = availability.survey([environment])
        for row in rows:
            name = " ".join(filter(None, [implementation(row["framework"], environment), row["version"]]))
            print(f"{name}, {row['device']}: {'usable' if row['missing'] is None else row['missing']}")
        if not rows:
            print(f"environment {environment}: offers no framework (benchlib environment check {environment} says why)")
    return 0


def _environment_create(given: argparse.Namespace) -> int:
    from benchlib import creation

    try:
        made = creation.create(given.name)
    except creation.CreationFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"environment {made.name}: {made.python}; benchlib environment check {made.name} tries it")
    return 0


def _environment_add(given: argparse.Namespace) -> int:
    from benchlib import environments

    added = environments.add(given.name, given.python)
    print(f"environment {added.name}: {added.python}; benchlib environment check {added.name} tries it")
    return 0


def _environment_list(given: argparse.Namespace) -> int:
    from benchlib import creation

    for line in creation.overview():
        print(line)
    return 0


def _environment_remove(given: argparse.Namespace) -> int:
    from benchlib import environments

    gone = environments.remove(given.name)
    left = "deleted" if gone and gone.made else f"forgotten{f'; {gone.python} is as it was' if gone else ''}"
    print(f"environment {given.name}: {left}")
    return 0


def _environment_check(given: argparse.Namespace) -> int:
    """A line for each finding; 1 if one says that something is wrong."""
    from benchlib.measure import inspection

    wrong = False
    for finding in inspection.inspect(given.name):
        print(finding.says, flush=True)  # a worker takes seconds
        wrong |= finding.wrong
    return 1 if wrong else 0


def _lab(given: argparse.Namespace) -> int:
    from benchlib.suite import start

    start.open_lab(given.profile)
    return 0


def _trace(given: argparse.Namespace) -> int:
    """The numbers, then each of their files; 1 if one is not what would be made here now, or does not say so."""
    from benchlib.suite import trace

    found = trace.numbers(given.file, given.name)
    folder = given.outputs or trace.folder_of(given.file)
    if folder is None:
        raise BenchlibError(f"{given.file}: is in no folder of results: name it with --outputs outputs/PROFILE")
    for number in found:
        print(f"{number.says}\n  {' '.join(['from', *number.keys]) if number.keys else 'names no measurement'}")
    sources = trace.sources(dict.fromkeys(key for number in found for key in number.keys), folder)
    print(f"\n{len(found)} numbers from {len(sources)} files in {folder}:")
    for source in sources:
        print(f"\n{source.key}: {source.verdict}")
        for line in source.says:
            print(f"  {line}")
    changed = [source for source in sources if source.verdict != trace.MATCHES]
    print(f"\n{len(sources) - len(changed)} of {len(sources)} files match this machine, these versions and this code.")
    others = trace.differences(given.file, found, folder)
    stale = trace.stale([source.key for source in sources], folder)
    if others:
        print(f"\n{given.file} is not what the results say:")
    for line in (*others, *stale):
        print(line)
    return 1 if changed or others or stale else 0


def _appendix(given: argparse.Namespace) -> int:
    from benchlib.suite import appendix

    return appendix.make(given.profile, given.outputs, given.appendix == "code", given.paper)


def _clean(given: argparse.Namespace) -> int:
    from benchlib.suite import cleaning
    from benchlib.suite import runs as suite

    folder = given.outputs or Path("outputs", given.profile)
    if not folder.is_dir():
        raise BenchlibError(f"{folder}: there is nothing to clean")
    find = cleaning.everything if given.all else cleaning.unused
    paths = find(folder)  # which refuses before anything, a lock too, is written there
    with suite.alone(folder) if given.yes else nullcontext():
        paths = find(folder) if given.yes else paths  # a run may have ended in between
        for path in paths:
            print(path)
        told = "" if given.yes else "; to take them away, add --yes"
        print(f"{len(paths)} of {cleaning.size_mib(paths):.1f} MiB{told}")
        if given.yes:
            cleaning.take_away(paths)
    return 0


_OF_THE_SUITE = (_run, _report, _lab, _trace, _appendix, _clean)
"""Commands that need what the extra ``suite`` brings."""


if __name__ == "__main__":
    sys.exit(main())
