"""The cache: measurements as parquet files, a row a process; ceilings, timers' checks and certificates as JSON.

Each file is named by the key of all that it depends on, is written atomically, and has the hash of its content.
Processes that were measured together (one repetition of a comparison) or alone (one training run) are one file.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import BaseModel, ConfigDict, Field, SkipValidation

from benchlib.condition import Condition
from benchlib.errors import BenchlibError, quote, write_error
from benchlib.progress import say
from benchlib.scratch import replace_file
from benchlib.shown import Shown

FORMAT = 11  # of the parquet files; another one is refused by name

Document = TypeVar("Document", bound=BaseModel)
Found = TypeVar("Found")


class Record(BaseModel):
    """A part of a measurement; unknown keys are refused, so that the values read are those that were written."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)


class Block(Record):
    """Some steps timed together, between two synchronisations."""

    round: int  # -1 in a training run
    position: int  # its place in the random order of the round; in a training run its place in the epoch
    epoch: int = -1  # of a training run, from 1; -1 in a comparison
    steps: int
    samples: int
    started_s: float  # on the machine's monotonic clock
    wall_s: float  # between two readings of perf_counter in worker.service.Worker._run
    cpu_s: float  # of the worker, all threads
    device_s: float | None = None  # from its first step to its last by the device's clock; None on the CPU
    idle_cpu_s: float = 0.0  # that the other workers of the comparison used meanwhile: they should sleep
    others_cpu_s: float = 0.0  # that all other processes of the machine used meanwhile, hypervisor's theft included
    parent_cpu_s: float = 0.0  # of the process that asks for the block and samples beside it
    throttled_s: float = 0.0  # core seconds that a CPU quota took meanwhile
    others_gpu: int = 0  # processes on the GPU that are not the comparison's
    disturbed: bool = False  # by the rules of ``runner.interference``; in a comparison it was then taken again
    disturbed_by: str = ""  # by which causes, in words

    @property
    def cores_used(self) -> float:
        return self.cpu_s / self.wall_s


class Sample(Record):
    """One reading of the sampler, beside a block. MiB are 2**20 bytes."""

    at_s: float  # on the machine's monotonic clock
    machine_cpu_percent: float  # all cores, all processes
    worker_cores: float  # cores that the worker used since its sample before
    rss_mib: float
    # The driver's values of the accelerator, None where it gives none: see ``provenance.accelerators.Reading``.
    accelerator_percent: float | None = None
    accelerator_memory_mib: float | None = None
    accelerator_power_w: float | None = None
    accelerator_temperature_c: float | None = None
    accelerator_clock_mhz: float | None = None
    accelerator_throttled: bool | None = None


class Epoch(Record):
    """One pass over the training data, and the evaluation after it, which is off the clock."""

    epoch: int  # from 1
    wall_s: float  # the sum of its blocks
    loss: float  # mean over its steps
    metric: float  # on the test data, after the epoch


class Measurement(Shown, Record):
    """The results of one process, with all that is needed to repeat it."""

    kind: str  # "comparison" or "training"
    group: str  # key of the comparison or of the training run
    file: str  # key of the file: those measured together
    repetition: int
    role: str  # "baseline", "control" (the baseline again, for A/A), "condition"
    condition: SkipValidation[Condition]  # it was checked when it was made; a report has thousands of them
    seed: int  # of a framework's own random numbers (dropout)
    initial_seed: int = 0  # of weights and batches
    started_utc: str
    failure: str | None = None  # the error, with the end of the worker's output; None: there was none
    refused: bool = False  # the failure is a refusal, see ``Failure.is_refusal``
    knobs: dict[str, str] = Field(default_factory=dict)  # set; empty where the worker could not be started
    inherited: dict[str, str] = Field(default_factory=dict)  # libraries and devices, see ``benchlib.env_vars``
    left_out: list[str] = Field(default_factory=list)  # names of variables it did not get that could have mattered
    settings: dict[str, Any] = Field(default_factory=dict)  # read back from the framework
    versions: dict[str, str] = Field(default_factory=dict)  # of Python, the framework, and the libraries under them
    packages: dict[str, str] = Field(default_factory=dict)  # all that the worker could compute with: distributions
    machine: dict[str, Any] = Field(default_factory=dict)
    code: str = ""  # hash of the code that made the number
    commit: str = ""
    built: dict[str, Any] = Field(default_factory=dict)  # parameters, hashes of weights and data
    first_step_s: float | None = None  # with compilation
    first_step_disturbed_by: str = ""  # in words
    repetition_s: float | None = None  # of all that were measured together, their start included
    rounds_s: float | None = None  # of that, the rounds
    warm_up_steps: int | None = None
    warm_up_s: float | None = None
    warm_up_disturbed_by: str = ""  # in words
    steady: str | None = None  # the rule's verdict
    memory: dict[str, float] = Field(default_factory=dict)  # MiB, see ``runner.recording.memory``
    blocks: list[Block] = Field(default_factory=list)
    trace: list[Sample] = Field(default_factory=list)
    epochs: list[Epoch] = Field(default_factory=list)

    @property
    def ok(self) -> bool:
        return self.failure is None

    @property
    def crashed(self) -> bool:
        """Did it fail, though nothing was refused? The next run tries again."""
        return not self.ok and not self.refused


class Result(BaseModel):
    """A result that is measured once for its inputs, and cached as JSON."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    crashed: bool = False  # something failed, though nothing was refused: the next run tries again


_TABLES: dict[str, type[BaseModel]] = {"blocks": Block, "trace": Sample, "epochs": Epoch}
_TYPES = {
    **{int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()},
    **{float | None: pa.float64(), bool | None: pa.bool_()},
}
_COLUMNS = {  # for readers without benchlib: parts of the measurement
    **dict.fromkeys(("kind", "group", "role"), pa.string()),
    **{"repetition": pa.int32(), "label": pa.string(), "seed": pa.int64()},
    **dict.fromkeys(("started_utc", "failure"), pa.string()),
}
_SCHEMA = pa.schema(
    {
        "format": pa.int32(),
        **_COLUMNS,
        "measurement": pa.string(),  # the whole measurement as JSON, less the three tables
        **{
            name: pa.list_(pa.struct({field: _TYPES[info.annotation] for field, info in kind.model_fields.items()}))
            for name, kind in _TABLES.items()
        },
    }
)
_SHA256 = b"sha256"  # in the metadata of a parquet file: the digest of its rows


def digest(content: Any) -> str:
    """The hash of a file's content as JSON."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def save(path: Path, result: BaseModel) -> None:
    """Write a ceiling, a timer's check or a certificate as JSON, with its hash, atomically."""
    document = result.model_dump(mode="json")
    text = json.dumps({**document, "sha256": digest(document)}, indent=2)
    _write(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def load(kind: type[Document], path: Path) -> Document | None:
    """Load a document that :func:`save` wrote, or None without a file; a damaged file is a BenchlibError."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        sha256 = document.pop("sha256")
        result = kind.model_validate(document)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, BenchlibError):
        raise _damage_error(path, f"not a {kind.__name__} that this benchlib can read") from None
    if sha256 != digest(document):
        raise _damage_error(path, _CHANGED)
    if document.get("file", path.stem) != path.stem:
        raise _damage_error(path, f"it has the content of {document['file']}.json")
    return result


def load_or_set_aside(kind: type[Document], path: Path) -> Document | None:
    """The document of a file (:func:`load`); a damaged file is moved into ``damaged/``, with a message."""
    return _set_aside_damaged(path, lambda: load(kind, path))


def _set_aside_damaged(path: Path, read: Callable[[], Found | None]) -> Found | None:
    try:
        return read()
    except BenchlibError as error:
        target = path.parent / "damaged" / path.name
        target.parent.mkdir(exist_ok=True)
        with suppress(FileNotFoundError):  # another process that reads the folder was first
            path.replace(target)
            say(f"{error}. It is now {target}, and its contents are measured again")
        return None


def _write(path: Path, write: Callable[[Path], Any]) -> None:
    try:
        with replace_file(path) as partial:
            write(partial)
    except OSError as error:
        raise BenchlibError(write_error(error, path)) from error


def _damage_error(path: Path, why: str) -> BenchlibError:
    return BenchlibError(f"{path}: {why}; delete it to measure again")


_CHANGED = "its content does not match its hash, it was changed after it was measured"


class Store:
    """The measurements of one outputs folder: ``<folder>/<file key>.parquet``."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def path(self, file: str) -> Path:
        """The place of the measurements with file key ``file``, present or future."""
        return self.folder / f"{file}.parquet"

    def save(self, measurements: list[Measurement]) -> None:
        """Write those measured together, atomically."""
        rows = [_row(m) for m in measurements]
        table = pa.Table.from_pylist(rows, _SCHEMA.with_metadata({_SHA256: digest(rows)}))
        _write(self.path(measurements[0].file), lambda partial: pq.write_table(table, partial))

    def load(self, file: str) -> list[Measurement] | None:
        """The measurements with this key, or None if they are not there; a damaged file is a BenchlibError."""
        path = self.path(file)
        if not path.is_file():
            return None
        try:
            table = pq.ParquetFile(path).read(use_threads=False)
            rows = table.to_pylist()
        except (OSError, ValueError, OverflowError, pa.ArrowException) as error:
            raise _damage_error(path, f"not a whole parquet file ({quote(str(error))})") from None
        if others := {row.get("format") for row in rows} - {FORMAT}:
            raise BenchlibError(
                f"{path}: written in format {others.pop()}; this benchlib reads format {FORMAT} only. Read it with the "
                "benchlib that wrote it, or delete it to measure again"
            )
        if not rows or (table.schema.metadata or {}).get(_SHA256) != digest(rows).encode():
            raise _damage_error(path, _CHANGED)
        if others := {json.loads(row["measurement"])["file"] for row in rows} - {file}:
            raise _damage_error(path, f"holds measurements with the key {others.pop()}, which is another file's")
        return [_measurement(row, path) for row in rows]

    def load_or_set_aside(self, file: str) -> list[Measurement] | None:
        """The measurements of a file (:meth:`load`); a damaged file is moved into ``damaged/``, with a message."""
        return _set_aside_damaged(self.path(file), lambda: self.load(file))

    def all(self, files: Iterable[str] | None = None) -> list[Measurement]:
        """The measurements in the files with these keys (None: in the folder), oldest first; none may be damaged."""
        found, wrong = self.read(files)
        if wrong:
            raise BenchlibError("\n".join(wrong))
        return found

    def read(self, files: Iterable[str] | None = None) -> tuple[list[Measurement], list[str]]:
        """The measurements (:meth:`all`), and a sentence for each file that is damaged or gone."""
        found, wrong = [], []
        every = [path.stem for path in self.folder.glob("[!.]*.parquet")] if files is None else files
        for file in sorted(every):
            try:
                if (measured := self.load(file)) is None:
                    wrong.append(f"{self.path(file)} is gone; run again to measure it again")
                found += measured or []
            except BenchlibError as error:
                wrong.append(str(error))
        return sorted(found, key=lambda m: (m.started_utc, m.file, m.repetition)), wrong


def frame(measurements: Iterable[Measurement]) -> pd.DataFrame:
    """A row for each process, with all that its repetition needs."""
    return pd.DataFrame([_flat(m) for m in measurements])


def final_takes(blocks: Iterable[Block]) -> list[Block]:
    """The take of each block that counts: the last undisturbed one, or the last of all."""
    takes: dict[tuple, Block] = {}
    for block in blocks:
        key = (block.epoch, block.round, block.position)
        if key not in takes or takes[key].disturbed or not block.disturbed:
            takes[key] = block
    return list(takes.values())


def seconds_by_round(m: Measurement) -> dict[int, float]:
    """Seconds per sample of each block, by round, without rounds that were disturbed in every take."""
    return {block.round: block.wall_s / block.samples for block in final_takes(m.blocks) if not block.disturbed}


def _row(measurement: Measurement) -> dict[str, Any]:
    document = measurement.model_dump(mode="json")
    tables = {name: document.pop(name) for name in _TABLES}
    return {
        "format": FORMAT,
        **{name: document.get(name) for name in _COLUMNS},
        "label": str(measurement.condition),
        "measurement": json.dumps(document, sort_keys=True),
        **tables,
    }


def _measurement(row: dict[str, Any], path: Path) -> Measurement:
    tables = {name: row[name] for name in _TABLES}
    try:
        document = json.loads(row["measurement"])
        condition = _condition(json.dumps(document["condition"]))
        return Measurement.model_validate({**document, "condition": condition, **tables})
    except (ValueError, KeyError, TypeError) as error:
        raise _damage_error(path, f"not a measurement of this benchlib ({error})") from None
    except BenchlibError as error:
        why = "; ".join(str(error).splitlines())
        had = [name for name in document.get("versions", {}) if name.startswith("plug-in ")]
        remedy = f"name its plug-in with --plugins ({', '.join(had) or 'none is recorded'}), or move the file away"
        raise BenchlibError(f"{path}: its condition cannot be measured here ({why}); {remedy}") from None


@functools.lru_cache(maxsize=4096)
def _condition(text: str) -> Condition:
    """Checked once for all processes that ran it."""
    return Condition.model_validate_json(text)


def _flat(m: Measurement) -> dict[str, Any]:
    values = m.model_dump(exclude={"condition", "machine", *_TABLES}) | m.machine
    summed = ("steps", "wall_s", "cpu_s", "idle_cpu_s", "others_cpu_s")
    return {
        **identity(m.condition),
        **{name: _in_one_cell(value) for name, value in values.items()},
        "blocks": len(m.blocks),
        **{name: sum(getattr(block, name) for block in m.blocks) for name in summed},
        "disturbed_blocks": sum(block.disturbed for block in m.blocks),
    }


def _in_one_cell(value: Any) -> Any:
    """A list or a dict in one cell."""
    if isinstance(value, dict):
        value = [f"{name}={one}" for name, one in value.items()]
    return " ".join(value) if isinstance(value, list) else value


def identity(condition: Condition) -> dict[str, Any]:
    """The columns that identify a condition: its label, its choices, its hyperparameters."""
    chosen = condition.model_dump()
    hyperparameters, without = chosen.pop("hyperparameters"), chosen.pop("without")
    if condition.world_size == 1:
        del chosen["world_size"], chosen["communication"]
    left_out = {"without": " ".join(without)} if without else {}
    return {"label": str(condition), **chosen, **left_out, **hyperparameters}
