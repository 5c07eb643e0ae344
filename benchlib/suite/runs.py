"""The suite: notebooks x parameters -> outputs.

Measures all that the notebooks of ``notebooks/`` ask for with the files of ``parameters/<profile>/``, within one time
for all, and then executes them, some at once, those that gather last, the report the very last. All parameters are
checked before anything starts, and the models of all that will be measured are shown to be the same. A notebook that
fails does not stop the others.
One whose inputs are what they were is left as it is.

Beside each executed notebook lies its record, ``<name>.json``, which says whether it succeeded: a saved notebook does
not tell. Until it has succeeded, a notebook is ``.partial-<name>.ipynb``.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.metadata
import json
import os
import platform
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchlib import frameworks, lab, plugins, progress, scratch, variables
from benchlib.condition import Condition
from benchlib.data import prepare
from benchlib.environments import DEFAULT
from benchlib.errors import BenchlibError, unknown, unwritable
from benchlib.measure import machine
from benchlib.suite import clock, experiments, pool, records
from benchlib.suite.experiments.parameters import Parameters
from benchlib.suite.report.pdf import NoBrowser, print_pdf

REPORT = "report"
"""The notebook that becomes ``report.html`` and ``report.pdf``."""

GATHERING = ("claims", REPORT)
"""The notebooks that measure nothing, and gather what the others gave; they may do without parameters."""


@dataclass(frozen=True)
class Planned:
    """A notebook of a run with its parameters, checked."""

    name: str
    notebook: Path
    parameters: dict[str, Any]  # as plain types
    data: dict[str, str]  # the data sets that it reads, and the identity of their images
    conditions: list[Condition]  # that it will measure


MEASUREMENTS = "measurements"
"""The folder of the results that they lie in, and their name among the inputs of a notebook."""

RUN, STALE, FAILED, MISSING = "run", "stale", "failed", "missing"


@dataclass(frozen=True)
class State:
    """Where a notebook stands in a folder of results: ``word`` is "run", "stale", "failed" or "missing", and ``why`` is
    in words.
    """

    name: str
    word: str
    why: str = ""
    started_utc: str | None = None  # of the last time that it was started
    executed: Path | None = None  # the executed notebook, if it is there


def run(profile: str, outputs: Path | None = None, minutes: float | None = None) -> int:
    """Bring the results of ``profile`` up to date; 0 if no notebook and no measurement failed and the report was
    printed, else 1. Where there is nothing to print with, the report is an HTML page alone.

    The working directory is the project's folder. ``outputs`` is the folder of the results, ``outputs/<profile>`` if
    None. ``minutes`` are for measuring, from now on, whatever was measured before; None: as many as the profile's
    report says, less those that its results have had; 0: nothing is measured, and the report is made of what is there.
    Wrong parameters, less time than the pilots need, and another run at work in that folder, are a BenchlibError before
    any notebook starts.
    """
    planned, folder = plan(profile), outputs or Path("outputs", profile)
    environment = _environment()
    own = next((item.parameters["minutes"] for item in planned if item.name == REPORT and item.parameters), None)
    if minutes != 0 and (given := own if minutes is None else minutes) is not None:
        missing = [item for item in planned if not _measured_before(item, folder, environment)]
        if clock.is_piloted(folder, _timed(planned, folder, environment)):
            missing = []
        parameters = _checked_again(missing)
        clock.require(given, parameters, len(planned))
        if parameters:
            _say(clock.expectation(given, parameters))
    return _execute_all(planned, folder, environment, own, minutes)


def report(profile: str, outputs: Path | None = None) -> int:
    """Make the report again of what is there, and measure nothing; 0 if nothing is missing from it and no measurement
    that it is made from failed, else 1.
    """
    folder = outputs or Path("outputs", profile)
    if not (folder / "notebooks").is_dir():
        raise BenchlibError(f"{folder}: there are no results; make report PROFILE={profile} measures them")
    files = _parameter_files(profile)
    gathering = [name for name in experiments.NOTEBOOKS if name in GATHERING]
    code = _execute_all([_planned(name, files.get(name)) for name in gathering], folder, _environment(), None, 0)
    outcomes = {name: records.read(folder, name) for name in experiments.NOTEBOOKS if name in {*files, *GATHERING}}
    missing = [name for name, record in outcomes.items() if not record or record["status"] != "succeeded"]
    wrong = [f"{file} {what}" for file, what in records.all_wrong(folder, experiments.NOTEBOOKS).items()]
    for text in (f"{', '.join(missing)} (the report says why)" if missing else "", *wrong):
        if text:
            _say(f"missing from the report: {text}")
    there = [record for record in outcomes.values() if record]
    failed, stale = _say_failures(there), _say_stale(there)
    return 1 if code or missing or wrong or failed or stale else 0


def _execute_all(
    planned: list[Planned], folder: Path, environment: dict[str, Any], own: float | None, more: float | None
) -> int:
    """Bring measurements and notebooks up to date, then the pages of the report; 0 if no notebook and no measurement
    failed, and nothing broke the measuring off, else 1. A folder that cannot be written to is a BenchlibError. ``own``
    and ``more`` are minutes: see :class:`benchlib.suite.clock.Clock`.
    """
    with _writable(folder):
        (folder / "notebooks").mkdir(parents=True, exist_ok=True)
    scratch.remove_stale()  # of runs that were killed
    with alone(folder), _followed(folder / "progress.log"):
        allowed = clock.Clock(folder, _timed(planned, folder, environment), own, more, len(planned))
        by_itself = _measure(planned, folder, environment, allowed)
        outcomes = _bring_all_up_to_date(planned, folder, environment, by_itself, keep=not allowed.measures)
        failed = [record for record in outcomes if record["status"] == "failed"]
        for record in failed:
            _say(_told(record))
        try:
            printed = _bring_pages_up_to_date(folder)
        except OSError as error:
            _say(f"report: {unwritable(error, folder)}")
            printed = False
    unmeasured = _say_failures(outcomes)
    stale = _say_stale(outcomes)
    if failed:
        names = ", ".join(record["notebook"] for record in failed)
        _say(f"{len(failed)} of {len(outcomes)} notebooks failed: {names}")
    return 1 if failed or stale or unmeasured or allowed.broke_off or not printed else 0


def plan(profile: str) -> list[Planned]:
    """The notebooks of ``profile`` in order, parameters checked; a BenchlibError tells all that is wrong in them."""
    files, names = _parameter_files(profile), experiments.NOTEBOOKS
    wrong = [f"{path}: {unknown('notebook', name, names)}" for name, path in files.items() if name not in names]
    planned = []
    if not files:
        folder = Path("parameters", profile)
        wrong.append(f"{folder} has no parameter file: add one named like a notebook, as {names[0]}.yaml")
    for name in names:
        if name not in files and name not in GATHERING:
            continue  # a profile may be about some of the notebooks; the report says which have not run
        try:
            planned.append(_planned(name, files.get(name)))
        except BenchlibError as error:
            wrong.append(str(error))
    if wrong:
        raise BenchlibError("\n".join(wrong))
    return planned


def states(profile: str, outputs: Path | None = None) -> list[State]:
    """Where each notebook stands, in order; executes nothing. What a run of ``profile`` would refuse is a reason here,
    too: whoever looks wants to see the others.
    """
    files, folder = _parameter_files(profile), outputs or Path("outputs", profile)
    environment = _environment()
    return [_state(name, profile, files, folder, environment) for name in experiments.NOTEBOOKS]


def checked(name: str, file: Path) -> tuple[dict[str, Any], dict[str, str], list[Condition]]:
    """The parameters in ``file``, the identity of each data set that they ask for, and all conditions; a BenchlibError
    if they are wrong or ask for what this machine does not have.
    """
    parameters = experiments.load(name, file)
    try:
        conditions = experiments.conditions(name, parameters)
        lab.require(conditions)
        experiments.require_time(name, parameters)
        data = {one: prepare.identity(one) for one in sorted({condition.data for condition in conditions})}
    except BenchlibError as error:
        raise BenchlibError(f"{file}: {error}") from None
    return parameters.model_dump(mode="json"), data, conditions


def _parameter_files(profile: str) -> dict[str, Path]:
    """The parameter files of ``profile`` by name; a BenchlibError if this is not the project, or there is none such."""
    every = Path("parameters")
    if not every.is_dir() or not Path("notebooks").is_dir():
        raise BenchlibError(f"{Path.cwd()} has no notebooks/ and parameters/: run this in the project's folder")
    profiles = [path.name for path in every.iterdir() if path.is_dir()]
    if profile not in profiles:
        raise BenchlibError(unknown("profile", profile, profiles))
    return {path.stem: path for path in sorted((every / profile).glob("*.yaml"))}


def _planned(name: str, file: Path | None) -> Planned:
    """A notebook with the parameters in ``file``; a BenchlibError if they are wrong. ``GATHERING`` may have none."""
    notebook = Path("notebooks", f"{name}.ipynb")
    if not notebook.is_file():
        raise BenchlibError(f"{notebook} is missing")
    parameters, data, conditions = ({}, {}, []) if file is None else checked(name, file)
    return Planned(name, notebook, parameters, data, conditions)


def _state(name: str, profile: str, files: dict[str, Path], folder: Path, environment: dict[str, Any]) -> State:
    record, target = records.read(folder, name), _executed_path(folder, name)
    told = {
        "started_utc": record["started_utc"] if record else None,
        "executed": target if target.exists() else None,
    }
    if record and record["status"] == "failed":
        return State(name, FAILED, f"in {record['error']['cell']}: {record['error']['text']}", **told)
    if name not in files and name not in GATHERING:
        return State(name, MISSING, f"there is no {Path('parameters', profile, name)}.yaml", **told)
    try:
        item = _planned(name, files.get(name))
    except BenchlibError as error:
        return State(name, STALE if told["executed"] else MISSING, str(error), **told)
    if record is None:
        return State(name, MISSING, "it has not been started", **told)
    reason = _outdated(record, _inputs(item, folder, environment), folder, target)
    if reason is None:
        return State(name, RUN, **told)
    return State(name, STALE if told["executed"] else MISSING, reason, **told)


def sources(notebook: Path) -> list[list[str]]:
    """The cells of a notebook without their outputs, which JupyterLab saves into it."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        return [[cell["cell_type"], "".join(cell["source"])] for cell in cells]
    except (ValueError, KeyError):
        raise BenchlibError(f"{notebook}: is no whole notebook; get it again from the project") from None


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder of results; a BenchlibError if another run does. The operating system lets go of it
    when this process ends, however it ends.
    """
    with _writable(folder):
        file = open(folder / ".lock", "a+", encoding="utf-8")  # noqa: SIM115 - closed below
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise BenchlibError(
                f"{folder}: another run ({file.read()}) is at work there: wait until it is done, or stop it, or choose "
                "another folder with --outputs"
            ) from None
        with _writable(folder):
            file.truncate(0)
            file.write(f"process {os.getpid()}, since {datetime.now().astimezone():%Y-%m-%d %H:%M:%S}")
            file.flush()
        yield


@contextmanager
def _writable(folder: Path) -> Iterator[None]:
    """What cannot be written before anything is started is a BenchlibError."""
    try:
        yield
    except OSError as error:
        raise BenchlibError(unwritable(error, folder)) from None


def _measure(planned: list[Planned], folder: Path, environment: dict[str, Any], allowed: clock.Clock) -> list[str]:
    """Measure what the notebooks will ask for, all on one clock; the names of those that have to measure by themselves,
    where they can say what is wrong.
    """
    asking = [item for item in planned if item.conditions]
    due = [item for item in asking if _is_due(item, folder, environment)]
    if not allowed.measures or not (due or (allowed.shared and allowed.left_s > 0)):
        return []
    _certify(due, folder, allowed)
    return clock.measure(_checked_again(asking), folder, allowed)


def _timed(planned: list[Planned], folder: Path, environment: dict[str, Any]) -> str:
    """What the time counts for that has been spent on a folder of results."""
    return records.digest([[item.name, _lasting(item, folder, environment)] for item in planned if item.conditions])


def _checked_again(planned: Iterable[Planned]) -> dict[str, Parameters]:
    """The parameters of notebooks that measure something, as their experiments take them."""
    asking = [item for item in planned if item.conditions]
    return {item.name: experiments.module(item.name).Parameters(**item.parameters) for item in asking}


def _is_due(item: Planned, folder: Path, environment: dict[str, Any]) -> bool:
    """Has a notebook to be executed?"""
    inputs, target = _inputs(item, folder, environment), _executed_path(folder, item.name)
    return _why(records.read(folder, item.name), inputs, folder, target) is not None


def _measured_before(item: Planned, folder: Path, environment: dict[str, Any]) -> bool:
    """Has a notebook succeeded with what it would be made of now, but for measurements?"""
    record = records.read(folder, item.name)
    return (
        bool(record)
        and record["status"] == "succeeded"
        and all(record["inputs"].get(name) == now for name, now in _lasting(item, folder, environment).items())
    )


def _lasting(item: Planned, folder: Path, environment: dict[str, Any]) -> dict[str, str]:
    """The inputs that do not change by measuring."""
    return {name: now for name, now in _inputs(item, folder, environment).items() if name != MEASUREMENTS}


def _certify(due: list[Planned], folder: Path, allowed: clock.Clock) -> None:
    """Have the models of all notebooks that will be executed checked together: notebook by notebook, every process of
    the gate would have to import its framework again.
    """
    conditions = [condition for item in due for condition in item.conditions]
    gate = lab.Lab(outputs=folder)
    allowed.labs.append(gate)
    try:
        gate.certify(conditions)
    except Exception as error:  # whatever it is: what is wrong with one notebook's conditions must not stop the others
        told = f"{type(error).__name__}: {error}"
        _say(f"the models could not be checked all at once, so each notebook checks its own: {told}")


def _bring_all_up_to_date(
    planned: list[Planned], folder: Path, environment: dict[str, Any], by_itself: Iterable[str], keep: bool
) -> list[dict[str, Any]]:
    """The records of all notebooks, in order. Those that measure ``by_itself`` what they ask for come first, one after
    another, for the others depend on all that is measured; these are executed some at once; then those that gather.
    Where there are no measurements for a new result, ``keep`` that of before.
    """
    gathering = [item for item in planned if item.name in GATHERING]
    measuring = [item for item in planned if item.name in by_itself]
    others = [item for item in planned if item not in gathering and item not in measuring]

    def bring(item: Planned) -> dict[str, Any]:
        return _bring_up_to_date(item, folder, environment, keep)

    with lab.measuring(lab.Measures.BUDGET):
        outcomes = [bring(item) for item in measuring]
    with lab.measuring(lab.Measures.NOTHING):
        outcomes += pool.each(bring, others)
    with lab.measuring(lab.Measures.NOTHING):
        outcomes += map(bring, gathering)
    by_name = {record["notebook"]: record for record in outcomes}
    return [by_name[item.name] for item in planned]


def _bring_up_to_date(item: Planned, folder: Path, environment: dict[str, Any], keep: bool) -> dict[str, Any]:
    """Execute a notebook unless its result is there already; its record. A result of other inputs stays, to ``keep`` it
    as a stale one if there are no measurements for these.
    """
    target = _executed_path(folder, item.name)
    inputs = _inputs(item, folder, environment)
    record = before = records.read(folder, item.name)
    reason = _why(before, inputs, folder, target)
    if reason is None:
        _say(f"{item.name}: unchanged, not executed again ({target})")
        if record.pop("stale", None):
            _keep(folder, record)
        return record
    keep = keep and before is not None and before["status"] == "succeeded" and target.exists()
    _say(f"{item.name}: {reason}")
    record = {
        "notebook": item.name,
        "status": "running",
        "started_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "parameters": item.parameters,
        "inputs": inputs,
        **environment,
    }
    started = time.monotonic()
    try:
        if not keep:
            target.unlink(missing_ok=True)  # made of other inputs: nobody shall take it for the result of these
            records.write(records.path_of(folder, item.name), record)
        record |= _execute(item, folder, target)
    except OSError as error:
        record |= {"status": "failed", "error": {"cell": "writing its files", "text": unwritable(error, folder)}}
    record["seconds"] = round(time.monotonic() - started, 1)
    word = record["status"]
    if keep and word == "failed":
        if record["error"].get("exception") == lab.NotMeasured.__name__:
            word, record = "stale", before | {"stale": _outdated(before, inputs, folder, target)}
            _partial(target).unlink(missing_ok=True)
        else:
            target.unlink(missing_ok=True)
    _keep(folder, record)
    _say(f"{item.name}: {word} after {progress.duration(time.monotonic() - started)}")
    return record


def _say_failures(outcomes: Iterable[dict[str, Any]]) -> bool:
    """Say which of these notebooks have measurements that failed; is there one?"""
    failed = [record for record in outcomes if record.get("failures")]
    for record in failed:
        number = record["failures"]
        again = "; the next run tries them again" if record["again"] else ""
        _say(f"{record['notebook']}: {number} measurement{'s' * (number > 1)} failed, see the report{again}")
    return bool(failed)


def _say_stale(records: Iterable[dict[str, Any]]) -> bool:
    """Say which of these notebooks are those of before; is there one?"""
    stale = [record for record in records if "stale" in record]
    for record in stale:
        _say(f"{record['notebook']}: not measured anew, so that of before is shown, which is stale: {record['stale']}")
    return bool(stale)


def _execute(item: Planned, folder: Path, target: Path) -> dict[str, Any]:
    """Execute a notebook to a partial file, renamed to ``target`` if it succeeded; what its record says of it."""
    from benchlib.suite.execution import (  # papermill takes long to import: not for nothing
        KERNEL,
        NotebookFailed,
        execute,
    )

    partial = _partial(target)
    try:
        summary = execute(item.notebook, {**item.parameters, "outputs": str(folder)}, partial)
        if summary is None and item.name != REPORT:
            raise NotebookFailed("its last cell", "it glued no summary: scrapbook.glue('summary', result.summary())")
    except NotebookFailed as failure:
        error = {"cell": failure.cell, "text": failure.text, "exception": failure.exception}
        if partial.exists():
            error["partial"] = str(partial)
        return {"kernel": KERNEL, "status": "failed", "error": error}
    os.replace(partial, target)
    nothing = {"figures": [], "tables": [], "measurements": [], "certified": []}
    summary = {"failures": 0, "again": 0, **nothing, **(summary or {})}
    measurements = [f"measurements/{key}.parquet" for key in summary["measurements"]]
    certificates = [f"certificates/{key}.json" for key in summary["certified"]]
    paths = [*summary["figures"], *summary["tables"], *measurements, *certificates]
    # Of a notebook that gathers, a measurement may be gone; the report names it.
    files = {path: records.digest((folder / path).read_bytes()) for path in paths if (folder / path).is_file()}
    failed = {name: summary[name] for name in ("failures", "again")}
    return {"kernel": KERNEL, "status": "succeeded", **failed, "files": files}


def _why(record: dict[str, Any] | None, inputs: dict[str, str], folder: Path, target: Path) -> str | None:
    """Why a notebook has to be executed, in words; None: it has not."""
    if record is None:
        return "started"
    reason = _outdated(record, inputs, folder, target)
    return None if reason is None else f"started again: {reason}"


def _outdated(record: dict[str, Any], inputs: dict[str, str], folder: Path, target: Path) -> str | None:
    """Why what a notebook once gave is not its result now, in words; None: it is."""
    if record["status"] != "succeeded":
        return f"it had {'failed' if record['status'] == 'failed' else 'not come to its end'}"
    if changed := [name for name, now in inputs.items() if record["inputs"].get(name) != now]:
        return f"these have changed: {', '.join(changed)}"
    if record.get("again"):
        return f"{record['again']} measurements had failed"
    if not target.exists():
        return f"{target} is gone"
    file, wrong = next(records.wrong_files(record, folder), (None, None))
    return f"{folder / file} {wrong}" if wrong else None


def _inputs(item: Planned, folder: Path, environment: dict[str, Any]) -> dict[str, str]:
    """Hashes of all that a notebook's result depends on, each under the word that tells a user what changed."""
    lock = Path("requirements.lock")
    inputs = {
        "notebook": records.digest(sources(item.notebook)),
        "parameters": records.digest(item.parameters),
        "benchlib": records.digest(_library()),
        "requirements.lock": records.digest(lock.read_bytes()) if lock.exists() else "",
        "machine": records.digest(environment["machine"]),
        "versions": records.digest([environment[name] for name in ("interpreter", "versions", "frameworks")]),
        "packages": records.digest(_packages(item, environment)),
        "variables": records.digest(_distinct(variables.identity(one) for one in item.conditions)),
        "data": records.digest(item.data),
    }
    if "block_s" in item.parameters:  # it compares, and what others have shown widens or narrows its intervals
        inputs[MEASUREMENTS] = records.digest(sorted(path.name for path in (folder / MEASUREMENTS).glob("*.parquet")))
    if item.name in GATHERING:
        before = experiments.NOTEBOOKS[: experiments.NOTEBOOKS.index(item.name)]
        paths = [records.path_of(folder, name) for name in before]
        told = [path.read_text(encoding="utf-8") for path in paths if path.exists()]
        inputs["results"] = records.digest([told, sorted(records.all_wrong(folder, before).items())])
    return inputs


def _packages(item: Planned, environment: dict[str, Any]) -> Any:
    """What the frameworks compute with here, and what the workloads and conditions of a notebook need beside it."""
    used = {(one.framework, one.workload, one.environment) for one in item.conditions}
    elsewhere = {(one.framework, one.environment) for one in item.conditions}
    compilers = _distinct(machine.compiler(one) for one in item.conditions)
    return [
        environment["packages"],
        [[*one, machine.packages(*one)] for one in sorted(used)],
        [[*one, machine.versions(*one)] for one in sorted(elsewhere)],
        compilers,
    ]


def _distinct(values: Iterable[Any]) -> list[str]:
    """As JSON: hundreds of conditions depend on the same."""
    return sorted({json.dumps(value, sort_keys=True) for value in values})


def _environment() -> dict[str, Any]:
    """What the notebooks are executed with and on, for their records."""
    packages = {found.name: found.version for found in importlib.metadata.distributions()}
    present = [name for name in frameworks.names() if machine.offers(DEFAULT, name)]
    return {
        "interpreter": sys.executable,
        "versions": {"python": platform.python_version(), **dict(sorted(packages.items()))},
        "frameworks": {name: machine.versions(name) for name in present},
        "packages": {name: machine.packages(name) for name in present},
        "machine": machine.describe(),
    }


def _bring_pages_up_to_date(folder: Path) -> bool:
    """Make ``report.html`` from the executed report, and ``report.pdf`` from that, where they are older; put them aside
    if the report failed. False if the printing failed.
    """
    record, html, pdf = records.read(folder, REPORT), folder / "report.html", folder / "report.pdf"
    if record is None or record["status"] != "succeeded":
        for page in (html, pdf):
            if page.exists():
                os.replace(page, _aside(page))
                _say(f"report: it could not be made again; {_aside(page)} is that of before, of older results")
        return True
    notebook = _executed_path(folder, REPORT)
    if _older(html, notebook):
        from benchlib.suite.report.export import export_html  # nbconvert takes long to import: not for nothing

        try:
            export_html(notebook, html)
        except BenchlibError as error:
            _say(f"report: {error}")
            return False
    for page in (html, pdf):
        _aside(page).unlink(missing_ok=True)
    _say(f"report: {html}")
    if _older(pdf, html):
        pdf.unlink(missing_ok=True)  # printed from another page: nobody shall take it for this one
        try:
            print_pdf(html, pdf, "a4", datetime.fromisoformat(record["started_utc"]))
        except NoBrowser as error:
            _say(str(error))
            return True
        except BenchlibError as error:
            _say(f"report: {error}")
            return False
    _say(f"report: {pdf}")
    return True


def _aside(page: Path) -> Path:
    """Where a page of the report is kept while there is none of the present results."""
    return page.with_name(f"older-{page.name}")


def _older(made: Path, source: Path) -> bool:
    """Is ``made`` not there, or older than what it is made from?"""
    return not made.exists() or made.stat().st_mtime < source.stat().st_mtime


@contextmanager
def _followed(log: Path) -> Iterator[None]:
    """Name this run to the kernels, and ``log`` as the file for lines of progress; print what comes in there."""
    with _writable(log.parent):
        log.write_text("", encoding="utf-8")
    over = threading.Event()

    def follow() -> None:
        with log.open(encoding="utf-8") as file:
            unfinished, last = "", False
            while not last:
                last = over.wait(1.0)  # one glance a second: measurements are going on beside it
                *lines, unfinished = (unfinished + file.read()).split("\n")
                with contextlib.suppress(BrokenPipeError):  # nobody reads any more: the main thread will find out
                    for line in lines:
                        _say(f"  {line}")

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    named = {progress.FILE_VARIABLE: str(log.resolve()), lab.RUN_VARIABLE: uuid.uuid4().hex}
    before = {name: os.environ.get(name) for name in named}
    os.environ.update(named)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
        over.set()
        thread.join()


def _told(record: dict[str, Any]) -> str:
    """A failure, in a few lines."""
    error = record["error"]
    lines = [f"{record['notebook']} failed in {error['cell']}:", *error["text"].splitlines()]
    rest = [f"what there is of it: {error['partial']}"] if "partial" in error else []
    return "\n  ".join([*lines, *rest])


def _library() -> dict[str, str]:
    """Hashes of the files of benchlib and of plug-ins."""
    files = sorted(path for path in machine.PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    own = {path.relative_to(machine.PACKAGE).as_posix(): path for path in files}
    return {place: records.digest(path.read_bytes()) for place, path in {**own, **plugins.files()}.items()}


def _executed_path(folder: Path, name: str) -> Path:
    return folder / "notebooks" / f"{name}.ipynb"


def _partial(executed: Path) -> Path:
    return executed.with_name(f".partial-{executed.name}")


def _keep(folder: Path, record: dict[str, Any]) -> None:
    """Write a record, or say why it cannot be."""
    path = records.path_of(folder, record["notebook"])
    try:
        records.keep(path, record)
    except OSError as error:
        _say(f"{record['notebook']}: its record cannot be kept: {unwritable(error, path.parent)}")


def _say(line: str) -> None:
    try:
        print(line, flush=True)
    except BrokenPipeError:
        raise
    except OSError:  # what is said goes to a disk that is full: no reason to measure less
        pass
