"""Training runs as TensorBoard's event files: a folder of ``events/`` for each run, with loss and metric by epoch.

A record's time is when the run started, and its training time until then: evaluations are off that clock.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

from benchlib import workloads
from benchlib.cache import Measurement
from benchlib.condition import Condition
from benchlib.lab import Lab
from benchlib.progress import say
from benchlib.stats.training_runs import TrainingRuns

FOLDER = "events"  # in a folder of results
KEY = 8  # characters of a measurement's key in a run's name


def train(lab: Lab, conditions: list[Condition], **asked: Any) -> TrainingRuns:
    """Train as :meth:`Lab.train`, with an event file for each run. One that cannot be written ends no training."""
    folder, wrong = lab.folder / FOLDER, list[OSError]()

    def keep(run: Measurement, again: bool = True) -> None:
        try:
            if not wrong:
                write(folder, run, again)
        except OSError as error:
            shutil.rmtree(folder / name(run), ignore_errors=True)
            wrong.append(error)

    runs = lab.train(conditions, **asked, on_epoch=keep)
    for run in runs.measurements:
        keep(run, again=False)
    if wrong:
        say(f"{folder}: TensorBoard's files could not be written ({wrong[0].strerror}); the measurements are kept")
    return runs


def name(run: Measurement) -> Path:
    """The run's folder, which TensorBoard calls it by: workload, framework, mode, the rest of the condition, seed."""
    condition = run.condition
    parts = [condition.workload, condition.implementation, condition.mode]
    rest = str(condition).removeprefix(" ".join(parts)).strip()
    parts += [rest, f"seed {run.seed} {run.file[:KEY]}"]
    return Path(*(part.replace("/", "_")[:200] for part in parts))  # file systems take 255 bytes


def write(folder: Path, run: Measurement, again: bool = True) -> None:
    """Write a run's file, ``again`` or where there is none, in place of the remains of an interrupted run."""
    # TensorBoard takes files with "tfevents" in their names, and reads a run's files in the order of their names.
    start = datetime.fromisoformat(run.started_utc)
    path = folder / name(run) / f"events.out.tfevents.{start.timestamp():.0f}.benchlib"
    if run.epochs and (again or not path.exists()):
        if len(run.epochs) == 1 or not path.exists():
            shutil.rmtree(path.parent, ignore_errors=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(_records(run)))


def other_folders(folder: Path, keys: Iterable[str]) -> list[Path]:
    """The folders of runs whose measurements have none of these keys."""
    named = {key[:KEY] for key in keys}
    return [path for path in sorted(folder.glob("*/*/*/*/seed *")) if path.name.rpartition(" ")[2] not in named]


def _records(run: Measurement) -> list[bytes]:
    """The version, and loss and metric after each epoch; TensorBoard groups charts by the beginning of their tags."""
    time, workload = datetime.fromisoformat(run.started_utc).timestamp(), run.condition.workload
    metric = workloads.load(workload).metric
    events = [{"wall_time": time, "file_version": "brain.Event:2"}]
    for epoch in run.epochs:
        time += epoch.wall_s
        values = {"loss": epoch.loss, metric: epoch.metric}
        summary = {"value": [{"tag": f"{workload}/{tag}", "simple_value": value} for tag, value in values.items()]}
        events.append({"wall_time": time, "step": epoch.epoch, "summary": summary})
    return [_frame_event(event) for event in events]


def _frame_event(event: dict[str, Any]) -> bytes:
    """An event as its file has it. TensorBoard's own writer has a thread, a buffer, and the machine's name in it."""
    from tensorboard.compat.proto.event_pb2 import Event  # half a second: only where a file is written
    from tensorboard.summary.writer.record_writer import RecordWriter

    framed = io.BytesIO()
    RecordWriter(framed).write(Event(**event).SerializeToString())
    return framed.getvalue()
