"""Types for the parameters cell of a notebook, which is the schema of its parameter files; and the files' reader."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, ValidationInfo, field_validator, model_validator

from benchlib import environments, validation, workloads
from benchlib.condition import (
    Condition,
    DeviceName,
    EnvironmentName,
    FrameworkName,
    LaneName,
    ModeName,
    WorkloadName,
    implementation,
)
from benchlib.condition import (
    PrecisionName as PrecisionName,
)
from benchlib.errors import BenchlibError, shown
from benchlib.runner import preflight
from benchlib.stats import planner
from benchlib.validation import Strict, at_most

__all__ = [
    *("DataName", "DeviceName", "EnvironmentName", "FrameworkName", "InferenceName", "LaneName", "ModeName"),
    *("PrecisionName", "WorkloadName", "Hyperparameters", "Folder", "Settings", "Margin", "Model", "Models"),
    *("BatchSize", "BatchSizes", "Count", "Counts", "Devices", "Environments", "Epochs", "Grid", "Rate", "Rates"),
    *("Samples", "Seed", "Seeds", "Subject", "SubjectList", "Subjects", "Task", "TrainingSteps", "WorldSizes"),
]

MOST_BYTES = 100_000

MOST_CONDITIONS = 2000
"""More cannot be checked in a second or two, and nobody has the time to measure them."""

DEFAULTS = "defaults.yaml"
"""The file of a profile with the settings that all its comparisons have."""


def not_empty(values: object) -> object:
    """For a validator: refuse an empty list, or an empty mapping to lists."""
    if isinstance(values, list | dict) and not values:
        kind = "list" if isinstance(values, list) else "mapping"
        raise ValueError(f"there is nothing to measure in an empty {kind}; give at least one value")
    return values


def _each_once(values: list) -> list:
    texts = [repr(one.model_dump(exclude={"if_there"}) if isinstance(one, BaseModel) else one) for one in values]
    times = Counter(texts)
    for value, one in zip(values, texts, strict=True):
        if times[one] > 1:
            text = str(value) if isinstance(value, BaseModel) else shown(value)
            raise ValueError(f"{text} is there twice; give each once")
    return values


def _resolvable(value: float) -> float:
    if value < planner.LEAST_PRECISION:
        raise ValueError(planner.TOO_PRECISE)
    return value


def _evaluates(name: str) -> str:
    if not workloads.load(name).evaluates:
        others = " or ".join(one for one in workloads.names() if workloads.load(one).evaluates)
        raise ValueError(f"its steps are not those of inference; choose {others}")
    return name


def _operator(name: str) -> str:
    if not _has_work(name):
        others = ", ".join(one for one in workloads.names() if _has_work(one))
        raise ValueError(f"is no operator whose multiply-adds are known; choose {others}")
    return name


def _has_work(name: str) -> bool:
    loaded = workloads.load(name)
    of_operator = loaded.kind == "operator" and loaded.work is not None
    return of_operator and loaded.work(loaded.values({})).multiply_adds > 0


Item = TypeVar("Item")
Grid = Annotated[list[Item], BeforeValidator(not_empty), AfterValidator(_each_once)]
"""A list of values, at least one, each once."""

DataName = str
Folder = str | None  # of all results; None: outputs/quick of the project
Hyperparameters = dict[str, Any]
InferenceName = Annotated[WorkloadName, AfterValidator(_evaluates)]
OperatorName = Annotated[WorkloadName, AfterValidator(_operator)]

Seed, Epochs = validation.Seed, validation.Epochs  # the limits of ``Lab.train``
BatchSize = Annotated[int, Field(ge=1)]  # memory is its limit
Rate = Annotated[
    float, Field(gt=0, allow_inf_nan=False), at_most(10**6, "the weights would be no numbers after the first step")
]
Threshold = Annotated[float, Field(allow_inf_nan=False)]  # of the workload's metric
Count = Annotated[int, Field(ge=1)]
Samples = Annotated[int, Field(ge=1), at_most(10**9, "no data set here has as many samples")] | None  # None: all
WorldSizes = Grid[Annotated[int, Field(ge=2)]]  # numbers of processes
TrainingSteps = Annotated[int, Field(ge=0, le=10_000)]  # 0: none
BatchSizes, Rates, Counts, Seeds = Grid[BatchSize], Grid[Rate], Grid[Count], Grid[Seed]
Passes = Grid[Literal["forward", "forward+backward"]]
Devices = Grid[DeviceName] | None  # None: all that this machine has
Environments = Annotated[Grid[EnvironmentName], Field(min_length=2)]

# The half-width of the ratios' 95 % intervals, relative.
Precision = Annotated[float, Field(gt=0, lt=1), AfterValidator(_resolvable)]
Pilot = Annotated[
    int, Field(ge=planner.LEAST_PILOT), at_most(planner.MOST_PILOT, "a pilot is for a first look at the variance")
]
Budget = Annotated[float, Field(gt=0, allow_inf_nan=False), at_most(planner.MOST_BUDGET_S, "that is a year")]
BlockTime = Annotated[
    float,
    Field(gt=0, allow_inf_nan=False),
    at_most(planner.LONGEST_BLOCK_S, "a worker that is silent for long counts as hung"),
]
Minutes = Annotated[float, Field(gt=0, allow_inf_nan=False), at_most(planner.MOST_BUDGET_S / 60, "that is a year")]
Margin = Annotated[float, Field(gt=0, lt=1)]  # relative


class Settings(BaseModel):
    """The settings of comparisons, as ``Lab.compare`` takes them: a profile's defaults, and what its notebook has."""

    model_config = Strict.model_config

    precision: Precision
    budget_s: Budget = 60.0  # of each comparison, where a notebook is run by itself
    pilot: Pilot  # processes of each condition, at least
    block_s: BlockTime
    margin: Margin  # a ratio whose interval lies within so much of 1 is "the same within" it


class Defaults(Strict, Settings):
    """What ``defaults.yaml`` has: the settings of all comparisons, and the minutes of all measurements."""

    minutes: Minutes


class Subject(BaseModel):
    """What is compared: a framework of an environment, in a mode and a lane."""

    model_config = Strict.model_config

    framework: FrameworkName
    if_there: bool = False  # where it is not, it is left out, and the notebook says so; else refused
    environment: EnvironmentName = environments.DEFAULT
    mode: ModeName
    lane: LaneName

    @field_validator("environment")
    @classmethod
    def _is_there(cls, name: str, others: ValidationInfo) -> str:
        return name if others.data.get("if_there") else environments.require(name)

    def __str__(self) -> str:
        return f"{implementation(self.framework, self.environment)} {self.mode} {self.lane}"


def _first_stays(subjects: list) -> list:
    if subjects[0].if_there:
        raise ValueError(f"{subjects[0]} is the first, which cannot be left out: take its if_there out")
    return subjects


SubjectList = Annotated[Grid[Item], AfterValidator(_first_stays)]
"""A list of subjects, of which all but the first may be left out where they are not there."""

Subjects = SubjectList[Subject]
"""The first is the baseline."""


class RatedSubject(Subject):
    """A subject with the learning rates that it is trained with."""

    learning_rates: Rates


RatedSubjects = SubjectList[RatedSubject]


class Operator(BaseModel):
    """An operator at a base size, and the values that are varied from there, one at a time (see :func:`sizes`)."""

    model_config = Strict.model_config

    workload: OperatorName
    batch_size: BatchSize
    hyperparameters: Hyperparameters
    vary: Annotated[dict[str, Counts], BeforeValidator(not_empty)]

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if "passes" in {*self.hyperparameters, *self.vary}:
            raise ValueError("passes: take it out, and list the kinds of passes under passes")
        for varied, batch_size, hyperparameters in sizes(self.model_dump()):
            place = f"vary.{varied}" if varied else "its size"
            try:
                one = Condition(workload=self.workload, batch_size=batch_size, hyperparameters=hyperparameters)
            except BenchlibError as error:
                raise ValueError(f"{place}: {str(error).removeprefix('Condition: ')}") from None
            if preflight.too_large(one):
                raise ValueError(f"{place}: {preflight.TOO_LARGE}")
        return self


Operators = Grid[Operator]


def sizes(operator: Mapping[str, Any]) -> list[tuple[str, int, dict[str, Any]]]:
    """The sizes of an :class:`Operator`, its base first: what is varied, the batch size and the hyperparameters."""
    base = {"batch_size": operator["batch_size"], **operator["hyperparameters"]}
    each = [(name, {**base, name: value}) for name, values in operator["vary"].items() for value in values]
    each = [("", base), *((name, size) for name, size in each if size != base)]
    return [(name, size.pop("batch_size"), size) for name, size in each]


class Model(BaseModel):
    """A workload with the sizes of its model."""

    model_config = Strict.model_config

    workload: WorkloadName
    data: DataName
    hyperparameters: Hyperparameters


Models = Grid[Model]


class Task(Model):
    """A model, with its data and all that its conditions have in common."""

    batch_size: BatchSize
    learning_rate: Rate | None  # None: of a workload that does not train
    train_samples: Samples


def defaults(folder: Path) -> Defaults | None:
    """The settings of a profile's comparisons, checked; None where it has no file of them."""
    path = folder / DEFAULTS
    return typed(Defaults, path, read(path)) if path.exists() else None


Kind = TypeVar("Kind", bound=BaseModel)


def typed(kind: type[Kind], path: Path, given: Mapping[str, Any]) -> Kind:
    """The model of values; a BenchlibError names path, key and value of all that is wrong."""
    try:
        return kind(**given)
    except BenchlibError as error:
        lines = [line.removeprefix(f"{kind.__name__}: ") for line in str(error).splitlines()]
        raise BenchlibError("\n".join(f"{path}: {line}" for line in lines)) from None


def read(path: Path) -> dict[str, Any]:
    """Read a parameter file: a number is decimal, a boolean is true or false, and all else is text. A BenchlibError
    names the file, and the line of what is wrong.
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
        raise BenchlibError(f"{path}: expected parameters, one 'name: value' a line, found: {shown(values)}")
    return values


class _Loader(yaml.SafeLoader):
    """YAML without aliases, tags and double keys, and without what only YAML 1.1 reads so (010 is 8, no is false)."""

    yaml_implicit_resolvers: ClassVar[dict] = {}

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node:
        event = self.peek_event()
        if isinstance(event, yaml.AliasEvent) or event.tag is not None:
            raise yaml.MarkedYAMLError(problem="write it out: no alias, no tag", problem_mark=event.start_mark)
        node = super().compose_node(parent, index)
        keys = [str(key.value) for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
        for twice in {key for key in keys if keys.count(key) > 1}:
            raise yaml.MarkedYAMLError(problem=f"the key {shown(twice)} is there twice", problem_mark=node.start_mark)
        return node


for _tag, _pattern in {
    "null": "~|null|",
    "bool": "true|false",
    "int": "[-+]?(0|[1-9][0-9]*)",
    "float": r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan",
}.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), None)
