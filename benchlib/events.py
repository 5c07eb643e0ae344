"""Training runs as TensorBoard's event files: a folder of ``events/`` for each run, with loss and metric by epoch.

A run's folder says what the run is, and ends with the first characters of its measurement's key. A record's time is
when the run started, and its training time until then: evaluations are off that clock, and a run that was kept has the
same file as one that was trained now.
"""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from benchlib import workloads
from benchlib.condition import Condition
from benchlib.lab import Lab
from benchlib.progress import say
from benchlib.stats.training_runs import TrainingRuns
from benchlib.store import Epoch, Measurement

FOLDER = "events"
"""In a folder of results."""

KEY = 8
"""So many characters of a measurement's key stand in a run's name."""

_LONGEST = 200
"""Characters of a folder's name; file systems take 255 bytes."""


def train(lab: Lab, conditions: list[Condition], **asked: Any) -> TrainingRuns:
    """As :meth:`Lab.train`, with an event file for each run, which grows with each epoch. A file that cannot be written
    ends no training: it is removed, and written whole the next time.
    """
    folder, wrong = lab.folder / FOLDER, []

    def on_epoch(run: Measurement) -> None:
        try:
            if not wrong:
                add(folder, run)
        except OSError as error:
            remove(folder, run)
            wrong.append(error)

    runs = lab.train(conditions, **asked, on_epoch=on_epoch)
    try:
        if not wrong:
            keep(folder, runs.measurements)
    except OSError as error:
        wrong.append(error)
    if wrong:
        say(f"{folder}: TensorBoard's files could not be written ({wrong[0].strerror}); the measurements are kept")
    return runs


def name(run: Measurement) -> Path:
    """The run's folder, which TensorBoard calls it by: workload, framework, mode, the rest of the condition, seed."""
    condition = run.condition
    parts = [condition.workload, condition.implementation, condition.mode]
    rest = str(condition).removeprefix(" ".join(parts)).strip()
    parts += [rest, f"seed {run.seed} {run.file[:KEY]}"]
    return Path(*(part.replace("/", "_")[:_LONGEST] for part in parts))


def keep(folder: Path, runs: Iterable[Measurement]) -> None:
    """Write the files of runs that have none in ``folder``."""
    for run in runs:
        path = _file(folder, run)
        if not run.epochs or path.exists():
            continue
        _begin(path)
        partial = path.with_name(f".partial-{os.getpid()}")
        records = [_version(run), *(_record(run, number) for number in range(len(run.epochs)))]
        partial.write_bytes(b"".join(records))
        partial.replace(path)


def add(folder: Path, run: Measurement) -> None:
    """Append the last epoch of a run. The first epoch removes what an interrupted run has left."""
    path, last = _file(folder, run), len(run.epochs) - 1
    new = _record(run, last)
    if last == 0:
        _begin(path)
        new = _version(run) + new
    with path.open("ab") as file:
        file.write(new)


def remove(folder: Path, run: Measurement) -> None:
    """Remove the files of a run."""
    shutil.rmtree(folder / name(run), ignore_errors=True)


def others(folder: Path, keys: Iterable[str]) -> list[Path]:
    """The folders of runs whose measurements have none of these keys."""
    named = {key[:KEY] for key in keys}
    return [path for path in sorted(folder.glob("*/*/*/*/seed *")) if path.name.rpartition(" ")[2] not in named]


def _file(folder: Path, run: Measurement) -> Path:
    # TensorBoard takes what has "tfevents" in its name, and reads a run's files in the order of their names.
    return folder / name(run) / f"events.out.tfevents.{_started(run):.0f}.benchlib"


def _begin(path: Path) -> None:
    shutil.rmtree(path.parent, ignore_errors=True)
    path.parent.mkdir(parents=True)


def _started(run: Measurement) -> float:
    return datetime.fromisoformat(run.started_utc).timestamp()


def _version(run: Measurement) -> bytes:
    """The record that an event file begins with."""
    return _framed(wall_time=_started(run), file_version="brain.Event:2")


def _record(run: Measurement, number: int) -> bytes:
    """Loss and metric after one of the run's epochs, counted from 0. Their tags begin with the workload, by which
    TensorBoard groups its charts.
    """
    epoch: Epoch = run.epochs[number]
    seconds = sum(one.wall_s for one in run.epochs[: number + 1])
    workload = run.condition.workload
    values = {"loss": epoch.loss, workloads.load(workload).metric: epoch.metric}
    summary = {"value": [{"tag": f"{workload}/{tag}", "simple_value": value} for tag, value in values.items()]}
    return _framed(wall_time=_started(run) + seconds, step=epoch.epoch, summary=summary)


def _framed(**event: object) -> bytes:
    """An event as its file has it. Not with TensorBoard's own writer, which has a thread and a buffer, and puts the
    machine's name into that of the file; nor with tensorboardX, which imports torch.
    """
    from tensorboard.compat.proto.event_pb2 import Event  # half a second: only where a file is written
    from tensorboard.summary.writer.record_writer import RecordWriter

    framed = io.BytesIO()
    RecordWriter(framed).write(Event(**event).SerializeToString())
    return framed.getvalue()
