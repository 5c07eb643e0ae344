"""The command line. A command is a function whose docstring is its help: a line, a description, and examples."""

from __future__ import annotations

import argparse
import contextlib
import inspect
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

import benchlib
from benchlib.cluster import commands as cluster
from benchlib.errors import REMEDIES, BenchlibError, require_package, write_error
from benchlib.matching.options import COMMANDS, OPTIONS, new
from benchlib.report.pdf import PAPERS
from benchlib.runner.interrupt import one_interrupt

EXIT_CODES = """exit codes:
  0    all went well, and nothing is missing
  1    a notebook or a measurement failed, or something is missing; the rest was made all the same
  2    wrong input: nothing was started
  130  stopped by Ctrl-C; the measurements are kept
  141  the reader of the output stopped reading; the rest may not have been done"""


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: see ``EXIT_CODES``."""
    given = _parser().parse_args(arguments)
    try:
        try:
            with one_interrupt():
                if given.do not in _ALONE:
                    require_package("papermill", "suite", f"benchlib {given.do.__name__}")
                if given.plugins:
                    from benchlib import plugins

                    plugins.use(given.plugins)
                code = given.do(given)
                sys.stdout.flush()
                return code
        except BenchlibError as error:
            print(f"error: {error}", file=sys.stderr)
            return 2
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end has begun: another would only print where it was
            print("\nstopped; the measurements are kept, and the same command goes on from there", file=sys.stderr)
            return 130
    except BrokenPipeError:  # ``benchlib trace FILE | head``; output still to be flushed has nowhere to go, either
        _mute(sys.stdout, sys.stderr)
        return 141
    except OSError as error:
        if error.errno not in REMEDIES:
            raise
        _mute(sys.stdout)  # which may be the file without room
        print(f"error: {write_error(error, 'standard output, or a file')}", file=sys.stderr)
        return 1


def _mute(*streams: TextIO) -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream.fileno())


def _parser() -> argparse.ArgumentParser:
    raw = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(prog="benchlib", description=benchlib.__doc__, epilog=EXIT_CODES, **raw)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for do, options in _COMMANDS.items():
        line, _, text = inspect.cleandoc(do.__doc__ or "").partition("\n\n")
        line = line[:1].lower() + line[1:].rstrip(".")
        command = commands.add_parser(do.__name__, help=line, description=text, **raw)
        for name in ("--plugins", *options.split()):
            command.add_argument(name, **_OPTIONS[name])
        command.set_defaults(do=do)
    return parser


# Imports that take long stand in the commands: the others do without, and an interrupt while they are made is one.


def run(given: argparse.Namespace) -> int:
    """Measure missing conditions, execute the notebooks, write the report.

    Results that are there are neither measured nor executed again. A failure does not stop the others.

    examples:
      benchlib run                      the profile quick: minutes, needs no download
      benchlib run --minutes 10         ten more minutes make the same report sharper
      benchlib run --profile full       the works' own data and grids: days on a few CPU cores
      benchlib run --set modes.batch_size=32     one parameter of one notebook is another
    """
    from benchlib.suite import runs

    cluster.use(given.on)
    return runs.run(given.profile, given.outputs, given.minutes, given.set)


def init(given: argparse.Namespace) -> int:
    """Write notebooks/, parameters/ and environments/ here, to change them: those that came with benchlib.

    In a folder that has none of its own, the other commands use these.
    """
    from benchlib.environments import or_shipped

    for own in map(Path, ("notebooks", "parameters", "environments")):
        if (shipped := or_shipped(own)) != own:
            shutil.copytree(shipped, own)
        print(f"{own}/: {'written' if shipped != own else 'is there' if own.is_dir() else 'none came with benchlib'}")
    return 0


def report(given: argparse.Namespace) -> int:
    """Write the report again from the present results; measure nothing.

    Missing results are named in the report, and here; the exit code is then 1.
    """
    from benchlib.suite import runs

    return runs.report(given.profile, given.outputs)


def devices(given: argparse.Namespace) -> int:
    """List the devices that each framework can use here, and the needs of the rest.

    A line for each framework and device, in each environment. Imports no framework.
    """
    from benchlib import environments
    from benchlib.condition import implementation
    from benchlib.runner import availability

    for environment in environments.names():
        rows = availability.survey([environment])
        for row in rows:
            name = " ".join(filter(None, [implementation(row["framework"], environment), row["version"]]))
            print(f"{name}, {row['device']}: {row['missing'] or 'usable'}")
        if not rows:
            print(f"environment {environment}: offers no framework (benchlib environment check {environment} says why)")
    return 0


def environment(given: argparse.Namespace) -> int:
    """Create, add, list, remove or check environments: other interpreters for frameworks to run in.

    The one that benchlib runs in is called default; the others are in .environments/ of the project.

    create  makes .environments/NAME with the Python and the packages of environments/NAME.txt, with uv
    add     registers an interpreter that is there; it needs numpy beside the framework, and no benchlib
    list    says which are registered, and which could be made
    remove  deletes one that was made here, or forgets one that was added; its measurements stay
    check   tries each framework in it: versions, devices, and whether its session keeps its promises in
            each mode, the timer and the model among them. The exit code is 1 if something is wrong

    example:
      benchlib environment add mine --python ~/mine/bin/python
    """
    from benchlib import doctor, environments

    if given.action == "list":
        for name in [environments.DEFAULT, *sorted({*environments.registry(), *environments.templates()})]:
            print(f"{name}: {environments.why_absent(name) or environments.find(name).python}")
        return 0
    if not given.name or (given.action == "add") != bool(given.python):
        raise BenchlibError(f"environment {given.action}: give a NAME, and for add (only for that) --python")
    if given.action == "check":
        wrong = False
        for finding in doctor.inspect(given.name):
            print(finding.says, flush=True)  # a worker takes seconds
            wrong |= finding.wrong
        return 1 if wrong else 0
    if given.action == "remove":
        gone = environments.remove(given.name)
        print(f"environment {given.name}: {'deleted' if gone and gone.made else 'forgotten, and left as it was'}")
        return 0
    try:
        made = environments.add(given.name, given.python) if given.python else environments.create(given.name)
    except environments.CreationFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"environment {made.name}: {made.python}; benchlib environment check {made.name} tries it")
    return 0


def lab(given: argparse.Namespace) -> int:
    """Open JupyterLab on a page of the notebooks and where each stands.

    Options after -- go to JupyterLab: in a container it may need -- --allow-root --ip=0.0.0.0; over ssh,
    -- --no-browser --port=8889.
    """
    from benchlib.suite import launcher

    launcher.open_lab(given.profile, given.jupyter)
    return 0


def trace(given: argparse.Namespace) -> int:
    """Lead a number of a table, a figure or a LaTeX macro back to its measurements.

    Says whether versions, code and machine are still those, and which numbers of FILE changed by hand.

    examples:
      benchlib trace outputs/quick/tables/modes_macros.tex benchlibModesRatios
      benchlib trace paper/frameworks.tex --outputs outputs/quick
    """
    from benchlib.paper import trace as paper

    return paper.trace(given.file, given.number, given.outputs)


def appendix(given: argparse.Namespace) -> int:
    """Bundle the results of a run, for a paper's appendix or an archive.

    Writes appendix/ and appendix.zip into the folder of the results. Nothing is executed. PDFs need Chromium.
    Missing files are named, and the rest is bundled.

    examples:
      benchlib appendix --appendix code --paper letter
    """
    from benchlib.paper import appendix as paper

    return paper.make(given.profile, given.outputs, given.appendix == "code", given.paper)


def clean(given: argparse.Namespace) -> int:
    """List the files of the results that nothing needs any more; delete them with --yes.

    The files behind the present report are not touched, unless --all is given.
    """
    from benchlib.suite import prune

    return prune.clean(given.outputs or Path("outputs", given.profile), given.all, given.yes)


def _minutes(text: str) -> float:
    with contextlib.suppress(ValueError):
        if 0 <= (minutes := float(text)) <= 366 * 24 * 60:
            return minutes
    raise argparse.ArgumentTypeError(f"{text!r}: give a number of minutes, such as 30, or 0 to measure nothing")


_OPTIONS: dict[str, dict[str, Any]] = {
    **cluster.OPTIONS,
    "--plugins": {
        "type": Path,
        "action": "append",
        "metavar": "FOLDER",
        "help": "with frameworks/NAME.py, workloads/NAME/ or data/NAME.py of yours (several folders: give it again)",
    },
    "--profile": {"default": "quick", "help": "a folder of parameters/ (default: quick)"},
    "--outputs": {"type": Path, "help": "of results (default: outputs/PROFILE, or FILE's; for own models outputs)"},
    "--set": {"action": "append", "default": [], "metavar": "NOTEBOOK.KEY=VALUE", "help": "another value, as in YAML"},
    "--minutes": {"type": _minutes, "help": "for measuring, from now on; 0: none (default: the profile's, or 10)"},
    "action": {"choices": ["create", "add", "list", "remove", "check"]},
    "name": {"nargs": "?", "default": "", "metavar": "NAME", "help": "letters, digits and . _ -; list needs none"},
    "--python": {"help": "of add: the interpreter, a path or a program on PATH"},
    "jupyter": {"nargs": "*", "metavar": "OPTION", "help": "after --: of JupyterLab's"},
    "file": {"type": Path, "metavar": "FILE", "help": "a .csv, .tex, .svg, .png or .pdf of outputs/PROFILE"},
    "number": {"nargs": "?", "help": "only those that have this in them: a macro's name, a word of a row"},
    "--appendix": {"choices": ["results", "code"], "default": "results", "help": "contents of the notebooks' pages"},
    "--paper": {"choices": PAPERS, "default": "a4", "help": "of the PDFs (default: a4)"},
    "--all": {"action": "store_true", "help": "everything in the folder, the measurements of the report too"},
    "--yes": {"action": "store_true", "help": "take it away; without this it is only listed"},
    **OPTIONS,
}

_COMMANDS = {
    run: "--profile --outputs --minutes --set --on",
    init: "",
    report: "--profile --outputs",
    **COMMANDS,
    devices: "",
    environment: "action name --python",
    lab: "--profile jupyter",
    trace: "file number --outputs",
    appendix: "--profile --outputs --appendix --paper",
    clean: "--profile --outputs --all --yes",
    **cluster.COMMANDS,
}

_ALONE = (devices, environment, init, new, *cluster.COMMANDS)  # which do without the packages of the extra ``suite``
