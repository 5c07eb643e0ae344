"""Types for the parameters cell of a notebook, which is the schema of its parameter files; and the files' reader."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, Field, ValidationInfo, field_validator, model_validator

from benchlib import environments, validation, workloads
from benchlib.condition import (
    DeviceName,
    EnvironmentName,
    FrameworkName,
    LaneName,
    ModeName,
    PrecisionName,
    WorkloadName,
)
from benchlib.errors import BenchlibError, quote
from benchlib.stats import planner
from benchlib.validation import Strict

__all__ = [
    *("DataName", "DeviceName", "EnvironmentName", "FrameworkName", "InferenceName", "LaneName", "ModeName"),
    *("WorkloadName", "Hyperparameters", "Folder", "Settings", "Models", "Operators", "Passes", "Subjects", "Tasks"),
    *("BatchSize", "BatchSizes", "Counts", "Devices", "Environments", "Epochs", "Rate", "Rates", "RatedSubjects"),
    *("Samples", "Seeds", "TrainingSteps", "WorldSizes"),
]

MOST_BYTES = 100_000
DEFAULTS = "defaults.yaml"  # the file of a profile with the settings that all its comparisons have


def _require_distinct(values: list) -> list:
    for place, one in enumerate(values):
        if one in values[:place]:
            raise ValueError(f"{one if isinstance(one, BaseModel) else quote(one)} is there twice; give each once")
    return values


def _evaluates(name: str) -> str:
    if not workloads.load(name).evaluates:
        others = " or ".join(one for one in workloads.names() if workloads.load(one).evaluates)
        raise ValueError(f"its steps are not those of inference; choose {others}")
    return name


Item = TypeVar("Item")
Grid = Annotated[list[Item], Field(min_length=1), AfterValidator(_require_distinct)]
DataName, Hyperparameters = str, dict[str, Any]
Folder = str | None  # of all results; None: outputs/quick of the project
InferenceName = Annotated[WorkloadName, AfterValidator(_evaluates)]

Seed, Epochs = validation.Seed, validation.Epochs  # the limits of ``Lab.train``
BatchSize = Annotated[int, Field(ge=1)]  # memory is its limit
Rate = Annotated[float, Field(gt=0, le=10**6)]
Samples = Annotated[int, Field(ge=1, le=10**9)] | None  # None: all
WorldSizes = Grid[Annotated[int, Field(ge=2)]]  # numbers of processes
TrainingSteps = Annotated[int, Field(ge=0, le=10_000)]  # 0: none
BatchSizes, Rates, Counts, Seeds = Grid[BatchSize], Grid[Rate], Grid[BatchSize], Grid[Seed]
Passes = Grid[Literal["forward", "forward+backward"]]
Devices = Grid[DeviceName] | None  # None: all that this machine has
Environments = Annotated[Grid[EnvironmentName], Field(min_length=2)]


class Given(BaseModel):
    """Some values of a parameter file: no unknown key, no converted type."""

    model_config = Strict.model_config


class Settings(Given):
    """The settings of comparisons, as ``Lab.compare`` takes them: a profile's defaults, and its notebook's own."""

    precision: float = 0.03  # the half-width of the ratios' 95 % intervals, relative
    budget_s: float = 60.0  # of each comparison, where a notebook is run by itself
    pilot: int = 3  # processes of each condition, at least
    block_s: float = 0.1
    margin: float = 0.05  # a ratio whose interval lies within so much of 1 is "the same within" it

    @model_validator(mode="after")
    def _can_be_planned(self) -> Self:
        try:
            planner.require(self.precision, self.budget_s, self.block_s, self.pilot, self.margin)
        except BenchlibError as error:
            raise ValueError(str(error)) from None
        return self


class Defaults(Strict, Settings):
    """The content of ``defaults.yaml``: the settings of all comparisons, and the minutes of all measurements."""

    minutes: Annotated[float, Field(gt=0, le=planner.MOST_BUDGET_S / 60)]


class Subject(Given):
    """A subject of a comparison: a framework of an environment, in a mode, a precision and a lane."""

    framework: FrameworkName
    if_there: bool = False  # where it is not, it is left out, and the notebook says so; else refused
    environment: EnvironmentName = environments.DEFAULT
    mode: ModeName
    precision: PrecisionName = "fp32"
    lane: LaneName
    year: float | None = None  # of its release; 2021.5 is the middle of 2021

    @field_validator("environment")
    @classmethod
    def _is_there(cls, name: str, others: ValidationInfo) -> str:
        return name if others.data.get("if_there") else environments.require(name)


Subjects = Grid[Subject]  # the first that is there is the baseline


class RatedSubject(Subject):
    """A subject with the learning rates that it is trained with."""

    learning_rates: Rates


RatedSubjects = Grid[RatedSubject]


class Operator(Given):
    """An operator at a base size, and the values that are varied from there, one at a time (see :func:`sizes`)."""

    workload: WorkloadName
    batch_size: BatchSize
    hyperparameters: Hyperparameters
    vary: Annotated[dict[str, Counts], Field(min_length=1)]


Operators = Grid[Operator]


def sizes(operator: Mapping[str, Any]) -> list[tuple[str, int, dict[str, Any]]]:
    """The sizes of an :class:`Operator`, its base first: the varied name, the batch size and the hyperparameters."""
    base = {"batch_size": operator["batch_size"], **operator["hyperparameters"]}
    varied = [(name, {**base, name: value}) for name, values in operator["vary"].items() for value in values]
    each = [("", base), *((name, size) for name, size in varied if size != base)]
    return [(name, size.pop("batch_size"), size) for name, size in each]


class SizedModel(Given):
    """A workload with the sizes of its model."""

    workload: WorkloadName
    data: DataName
    hyperparameters: Hyperparameters


Models = Grid[SizedModel]


class Task(SizedModel):
    """A model, with its data, all that its conditions have in common, and how long they are trained."""

    batch_size: BatchSize
    learning_rate: Rate | None  # None: of a workload that does not train
    train_samples: Samples
    epochs: Epochs | None  # of every run; None: it is not trained
    most_epochs: Epochs | None = None  # a run that has not reached the threshold by then ends
    threshold: float | None = None  # of the metric; None: there is none to reach


Tasks = Grid[Task]


def defaults(folder: Path) -> Defaults | None:
    """The settings of a profile's comparisons, checked; None where it has no file of them."""
    path = folder / DEFAULTS
    return validate_as(Defaults, path, read(path)) if path.exists() else None


def validate_as(kind: type[BaseModel], path: Path, given: Mapping[str, Any]) -> Any:
    """The model of values; a BenchlibError names path, key and value of all that is wrong."""
    try:
        return kind(**given)
    except BenchlibError as error:
        lines = [line.removeprefix(f"{kind.__name__}: ") for line in str(error).splitlines()]
        raise BenchlibError("\n".join(f"{path}: {line}" for line in lines)) from None


def read(path: Path) -> dict[str, Any]:
    """Read a parameter file: a number is decimal, a boolean is true or false, and all else is text. A BenchlibError
    names the file, and the line of the fault.
    """
    try:
        raw = path.read_bytes()
        if len(raw) > MOST_BYTES:
            raise BenchlibError(f"{path}: is larger than {MOST_BYTES // 1000} kB: this is no parameter file")
        values = yaml.load(raw.decode("utf-8"), Loader=_Loader)
    except OSError as error:
        raise BenchlibError(f"{path}: cannot be read ({error.strerror}): give the path of a parameter file") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: not UTF-8, or a number of 5,000 digits
        raise BenchlibError(f"{path}: is not YAML: {' '.join(str(error).split())[:400]}") from None
    if not isinstance(values, dict) or not all(isinstance(key, str) for key in values):
        raise BenchlibError(f"{path}: expected parameters, one 'name: value' a line, found: {quote(values)}")
    return values


def given(texts: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Parameters by notebook and key, of ``NOTEBOOK.KEY=VALUE``, with values as in a parameter file."""
    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        parts = re.fullmatch(r"(\w+)\.(\w+)=(.*)", text, re.DOTALL)
        try:
            found.setdefault(parts[1], {})[parts[2]] = yaml.load(parts[3], Loader=_Loader)
        except (yaml.YAMLError, TypeError, ValueError, RecursionError):
            raise BenchlibError(f"--set {quote(text)}: give NOTEBOOK.KEY=VALUE, as batch_size.epochs=3") from None
    return found


class _Loader(yaml.SafeLoader):
    """YAML without aliases, tags and double keys, and without the oddities of YAML 1.1 (010 is 8, no is false)."""

    yaml_implicit_resolvers: ClassVar[dict] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or event.tag is not None:
            raise yaml.MarkedYAMLError(problem="write it out: no alias, no tag", problem_mark=event.start_mark)
        node = super().compose_node(parent, index)
        keys = [str(key.value) for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
        for twice in {key for key in keys if keys.count(key) > 1}:
            raise yaml.MarkedYAMLError(problem=f"the key {quote(twice)} is there twice", problem_mark=node.start_mark)
        return node


for _tag, _pattern in {
    "null": "~|null|",
    "bool": "true|false",
    "int": "[-+]?(0|[1-9][0-9]*)",
    "float": r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan",
}.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), None)
