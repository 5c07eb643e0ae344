"""What a worker answers, by request: names and types. What does not fit is the worker's failure, and told by its key.
Nothing else that goes wrong in the parent is.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, Strict, ValidationError

from benchlib.worker import packed
from benchlib.worker.steady import NOT_STEADY, SLOWING, STEADY, TOO_FEW

Count = Annotated[int, Field(ge=0, lt=2**53)]
StepSeconds = Annotated[float, Field(gt=1e-9, lt=1e9)]
Chunk = Annotated[tuple[StepSeconds, FiniteFloat], Strict(False)]  # JSON has no tuples


class Answer(BaseModel):
    """One answer: all of its keys, no others, and no type converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Opened(Answer):
    """The framework is imported."""

    versions: dict[str, str]
    rss_mib: float


class Built(Answer):
    """The model stands, with its weights and its first batches."""

    parameters: Count
    weights_sha256: str
    weights_file_sha256: str
    data_sha256: str
    order_sha256: str


class FirstStep(Answer):
    """How long the first step took, and the settings in force."""

    wall_s: float
    settings: dict[str, Any]


class WarmUp(Answer):
    """See ``steady.WarmUp``."""

    times: Annotated[list[StepSeconds], Field(min_length=1)]
    steps: Count
    seconds: StepSeconds  # of all steps: at least as long as one
    verdict: Literal[STEADY, SLOWING, NOT_STEADY, TOO_FEW]
    chunks: Annotated[list[Chunk], Field(min_length=1)]


class Block(Answer):
    """A timed block; whether its times can be true is asked in ``record.checked``."""

    started_s: float
    wall_s: float
    cpu_s: float
    steps: Count
    samples: Count
    device_s: float | None = None


class BlockOfEpoch(Answer):
    """What comes before the answer to ``epoch``."""

    block: Block


class Epoch(Answer):
    """The end of an epoch."""

    loss: float
    order_sha256: str


class Check(Answer):
    """What was computed is in a file."""


class Imported(Answer):
    """The files of what was imported, by the names of the modules."""

    files: dict[str, str]


class TrainedOn(Answer):
    """A step of training."""

    loss: float
    moved: float


class Planted(Answer):
    """Durations of planted work."""

    known_s: Annotated[list[FiniteFloat], Field(min_length=1)]
    timed_s: Annotated[list[FiniteFloat], Field(min_length=1)]


class Memory(Answer):
    """Of the process; of the device, what its framework tells."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, float]

    peak: float
    steady: float
    private: float


OF_REQUEST: dict[str, type[Answer]] = {
    "open": Opened,
    "build": Built,
    "first_step": FirstStep,
    "warm_up": WarmUp,
    "block": Block,
    "reset": Answer,
    "epoch": Epoch,
    "predict": Answer,
    "check": Check,
    "probe": Answer,
    "imported": Imported,
    "train_on": TrainedOn,
    "planted": Planted,
    "memory": Memory,
}


def wrong(do: str, answer: dict[str, Any]) -> str | None:
    """What cannot be used of the answer to the request ``do``, by key; None: nothing."""
    expected = BlockOfEpoch if do == "epoch" and "block" in answer else OF_REQUEST[do]
    try:
        expected.model_validate(answer)
    except ValidationError as error:
        wrongs = [(".".join(map(str, one["loc"])), one["msg"], one["input"]) for one in error.errors()]
        return "; ".join(f"{key}: {message} ({str(value)[:80]!r})" for key, message, value in wrongs[:3])
    return None


def arrays(file: Path) -> dict[str, np.ndarray]:
    """The arrays of numbers in a file that a worker has packed; a ValueError says what is wrong with it."""
    loaded = _loaded(file, packed.read)
    for name, array in loaded.items():
        _require_numbers(f"{name} in {file.name}", array)
    return loaded


def array(file: Path) -> np.ndarray:
    """The array of numbers in an npy file that a worker wrote; a ValueError says what is wrong with it."""
    loaded = _loaded(file, _plain)
    if not isinstance(loaded, np.ndarray):
        raise ValueError(f"{file.name} is an archive, and no array")
    _require_numbers(file.name, loaded)
    return loaded


def _plain(file: Path) -> Any:
    with open(file, "rb") as opened:  # an archive keeps its file open
        return np.load(opened, allow_pickle=False)


def _loaded(file: Path, read: Callable[[Path], Any]) -> Any:
    try:
        return read(file)
    except Exception as error:  # there is no end to what a broken file can make numpy and zipfile raise
        raise ValueError(f"{file.name} cannot be read: {type(error).__name__}: {error}") from error


def _require_numbers(name: str, array: np.ndarray) -> None:
    if array.dtype.kind not in "biuf" or not array.size:
        raise ValueError(f"{name} has no numbers: {array.dtype} of shape {array.shape}")
