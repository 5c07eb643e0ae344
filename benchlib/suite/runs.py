"""The suite: notebooks x parameters -> outputs.

Measures all that notebooks ask for within one time for all, and then executes those whose inputs have changed. Beside
each lies its record, ``<name>.json``, which says whether it succeeded; until then, it is ``.partial-<name>.ipynb``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from benchlib import lab, manifest, progress, scratch
from benchlib.errors import BenchlibError, write_error
from benchlib.runner.interrupt import one_interrupt
from benchlib.suite import clock, pages
from benchlib.suite.profile import REPORT, Planned, gathers, notebooks, parameter_files, plan, plan_notebook
from benchlib.suite.profile import minutes as minutes_of
from benchlib.suite.run_lock import follow_progress, hold_lock, say, writable
from benchlib.suite.staleness import Outputs

Record = dict[str, Any]

AT_ONCE = 2  # notebooks: where nothing is measured, each keeps one core busy

_stopped = threading.Event()  # an interrupt ended the kernels: an error now is no failure of its notebook


def run(profile: str, outputs: Path | None = None, minutes: float | None = None, changes: Iterable[str] = ()) -> int:
    """Bring the results of ``profile`` up to date; 0 if no notebook and no measurement failed and the report was
    printed, else 1. Where there is nothing to print with, the report is an HTML page alone.

    ``minutes`` are for measuring, from now on, whatever was measured before. None: as many as the profile's defaults
    say, less those that its results have had. 0: the report is made of the present results. Wrong parameters, or less
    time than the pilots need, are a BenchlibError before any notebook starts.
    """
    items, results = plan(profile, changes), Outputs(outputs or Path("outputs", profile))
    own = minutes_of(profile)
    given = own if minutes is None else minutes
    if minutes != 0 and given is not None:
        piloted = clock.read(results.folder, results.timing_digest(items))["piloted"]
        due = [] if piloted else [item for item in items if item.conditions and results.why_due(item)]
        clock.require(given, [item.study for item in due], len(items))
    return _bring_up_to_date(items, results, own, minutes)


def report(profile: str, outputs: Path | None = None) -> int:
    """Make the report again, and measure nothing; 0 if nothing is missing from it and nothing in it failed, else 1."""
    folder = outputs or Path("outputs", profile)
    if not (folder / "notebooks").is_dir():
        raise BenchlibError(f"{folder}: there are no results; make report PROFILE={profile} measures them")
    files, every = parameter_files(profile), notebooks()
    gathering = [name for name in every if gathers(name)]
    code = _bring_up_to_date([plan_notebook(name, None) for name in gathering], Outputs(folder), None, 0)
    by_name = {name: manifest.read(folder, name) for name in every if name in {*files, *gathering}}
    missing = [name for name, record in by_name.items() if not record or record["status"] != "succeeded"]
    missing += [f"{file} {what}" for file, what in manifest.all_wrong(folder).items()]
    for text in missing:
        say(f"missing from the report: {text}")
    return int(any([code, missing, _say_wrong(filter(None, by_name.values()))]))


def _bring_up_to_date(items: list[Planned], outputs: Outputs, own: float | None, more: float | None) -> int:
    """Bring measurements, notebooks and pages up to date; the exit code. For ``own`` and ``more`` see the clock."""
    folder = outputs.folder
    with writable(folder):
        (folder / "notebooks").mkdir(parents=True, exist_ok=True)
    scratch.remove_stale()  # of runs that were killed
    with hold_lock(folder), follow_progress(folder / "progress.log"):
        allowed = clock.Clock(folder, outputs.timing_digest(items), own, more, len(items))
        asking = [item for item in items if item.conditions]
        due = (allowed.shared and allowed.left_s > 0) or any(map(outputs.why_due, asking))
        studies = {item.name: item.study for item in asking}
        by_itself = clock.measure(studies, folder, allowed) if allowed.measures and due else []
        every = _execute_all(items, outputs, by_itself, keep=not allowed.measures)
        failed = [record for record in every if record["status"] == "failed"]
        for record in failed:
            error = record["error"]
            rest = [f"incomplete notebook: {error['partial']}"] if "partial" in error else []
            where = f"{record['notebook']} failed in {error['cell']}:"
            say("\n  ".join([where, *error["text"].splitlines(), *rest]))
        try:
            printed = pages.bring_up_to_date(folder)
        except OSError as error:
            say(f"report: {write_error(error, folder)}")
            printed = False
    wrong = _say_wrong(every)
    if failed:
        say(f"{len(failed)} of {len(every)} notebooks failed: {', '.join(record['notebook'] for record in failed)}")
    return 1 if failed or wrong or allowed.broke_off or not printed else 0


def _execute_all(items: list[Planned], outputs: Outputs, by_itself: Iterable[str], keep: bool) -> list[Record]:
    """The records of all notebooks, in order. Those that measure ``by_itself`` come first, one after another; the
    others are executed some at once; then those that gather.
    """
    done: dict[str, Record] = {}
    with lab.kernels_measure(lab.Measures.BUDGET):
        done |= {item.name: _execute(item, outputs, keep) for item in items if item.name in by_itself}
    with lab.kernels_measure(lab.Measures.NOTHING):
        others = [item for item in items if item.study and item.name not in by_itself]
        with one_interrupt(), ThreadPoolExecutor(AT_ONCE) as pool:
            futures = {item.name: pool.submit(_execute, item, outputs, keep) for item in others}
            try:
                done |= {name: future.result() for name, future in futures.items()}
            except BaseException:
                _end_kernels(pool, futures.values())
                raise
        done |= {item.name: _execute(item, outputs, keep) for item in items if item.study is None}
    return [done[item.name] for item in items]


def _end_kernels(pool: ThreadPoolExecutor, futures: Collection[Future[Record]]) -> None:
    """End the kernels of a pool's notebooks, after an interrupt."""
    _stopped.set()
    logging.disable()  # Jupyter would say that kernels died
    pool.shutdown(wait=False, cancel_futures=True)
    while not all(future.done() for future in futures):
        for child in psutil.Process().children():
            with contextlib.suppress(psutil.Error):
                if "ipykernel_launcher" in child.cmdline():
                    child.kill()
        time.sleep(0.2)  # another may be starting
    logging.disable(logging.NOTSET)
    _stopped.clear()


def _execute(item: Planned, outputs: Outputs, keep: bool) -> Record:
    """Execute a notebook unless its result is there; its record. ``keep`` an older one where nothing was measured."""
    folder, executed = outputs.folder, outputs.folder / "notebooks" / f"{item.name}.ipynb"
    before, reason = manifest.read(folder, item.name), outputs.why_due(item)
    if before is not None and reason is None:
        say(f"{item.name}: unchanged, not executed again ({executed})")
        if before.pop("stale", None):
            _keep(folder, before)
        return before
    keep = keep and before is not None and before["status"] == "succeeded" and executed.exists()
    say(f"{item.name}: {reason}")
    record = {
        "notebook": item.name,
        "status": "running",
        "started_utc": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "parameters": item.parameters,
        "inputs": outputs.inputs(item),
        **outputs.environment,
    }
    started = time.monotonic()
    try:
        if not keep:
            executed.unlink(missing_ok=True)  # made of other inputs: must not be taken for the result of these
            manifest.write(manifest.path_of(folder, item.name), record)
        record |= _outcome(item, folder, executed)
    except OSError as error:
        record |= {"status": "failed", "error": {"cell": "writing its files", "text": write_error(error, folder)}}
    took = record["seconds"] = round(time.monotonic() - started, 1)
    word = record["status"]
    if keep and word == "failed":
        if record["error"].get("exception") == lab.NotMeasured.__name__:
            executed.with_name(f".partial-{executed.name}").unlink(missing_ok=True)
            word, record = "stale", before | {"stale": outputs.why_outdated(item, before)}
        else:
            executed.unlink(missing_ok=True)
    _keep(folder, record)
    say(f"{item.name}: {word} after {progress.duration(took)}")
    return record


def _outcome(item: Planned, folder: Path, executed: Path) -> Record:
    """Execute a notebook to a partial file, renamed to ``executed`` if it succeeded; return its record."""
    from benchlib.suite.execute import NotebookFailed, execute  # papermill takes long to import: not for nothing

    partial = executed.with_name(f".partial-{executed.name}")
    try:
        summary = execute(item.notebook, {**item.parameters, "outputs": str(folder)}, partial)
        if summary is None and item.name != REPORT:
            raise NotebookFailed("its last cell", "it glued no summary: end it with study.finish()")
    except NotebookFailed as failure:
        if _stopped.is_set():
            raise KeyboardInterrupt from failure
        error = {"cell": failure.cell, "text": failure.text, "exception": failure.exception}
        if partial.exists():
            error["partial"] = str(partial)
        return {"status": "failed", "error": error}
    os.replace(partial, executed)
    made = summary or {}
    paths = [*made.get("figures", ()), *made.get("tables", ())]
    paths += [f"measurements/{key}.parquet" for key in made.get("measurements", ())]
    paths += [f"certificates/{key}.json" for key in made.get("certified", ())]
    # Of a notebook that gathers, a measurement may be gone; the report names it.
    files = {path: manifest.digest((folder / path).read_bytes()) for path in paths if (folder / path).is_file()}
    failed = {name: made.get(name, 0) for name in ("failures", "crashed")}
    awaited = [f"measurements/{key}.parquet" for key in made.get("awaited", ())]
    return {"status": "succeeded", **failed, "files": files, "awaited": awaited}


def _say_wrong(every: Iterable[Record]) -> bool:
    """Say which of these notebooks have measurements that failed, and which are those of before; is there one?"""
    wrong = False
    for record in every:
        if number := record.get("failures"):
            say(f"{record['notebook']}: {number} measurement{'s' * (number > 1)} failed, see the report")
        if why := record.get("stale"):
            say(f"{record['notebook']}: not measured again, its older result is shown, which is stale: {why}")
        wrong = wrong or bool(number or why)
    return wrong


def _keep(folder: Path, record: Record) -> None:
    """Write a record, or say why it cannot be."""
    path = manifest.path_of(folder, record["notebook"])
    try:
        manifest.write(path, record)
    except OSError as error:
        say(f"{record['notebook']}: its record cannot be kept: {write_error(error, path.parent)}")
