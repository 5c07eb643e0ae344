"""Pydantic models whose errors name the file, the key and the value, and give the remedy."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from benchlib.errors import BenchlibError, no_such, quote

MOST_LINES = 20  # of a refusal

Number = TypeVar("Number", int, float)


class Strict(BaseModel):
    """A frozen model that takes no unknown key and converts no type; a wrong value is a BenchlibError."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def __init__(self, /, **values: object) -> None:  # "self" may be a key in a file
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise BenchlibError(explain(error, type(self).__name__, type(self).model_fields)) from None


def at_most(greatest: float, why: str) -> AfterValidator:
    """Refuse a greater number, and say why."""

    def check(value: Number) -> Number:
        if value > greatest:
            raise ValueError(f"the most is {greatest:,}: {why}")
        return value

    return AfterValidator(check)


Seed = Annotated[int, Field(ge=0), at_most(2**32 - 1, "numpy's generators take no greater seed")]
Epochs = Annotated[int, Field(ge=1), at_most(100_000, "each is a row of every run's record")]


class Training(Strict):
    """Arguments of ``Lab.train``."""

    seeds: list[Seed]
    epochs: Epochs
    most_epochs: Epochs | None


def explain(error: ValidationError, where: str, keys: Iterable[str] = ()) -> str:
    """All faults, a line each: ``where: key: the fault, with the value, and the remedy``."""
    items = error.errors(include_url=False)
    lines = [_line(item, keys) for item in items[:MOST_LINES]]
    if len(items) > MOST_LINES:
        lines.append(f"and {len(items) - MOST_LINES:,} more values are wrong")
    return "\n".join(f"{where}: {line}" for line in lines)


def _line(item: dict, keys: Iterable[str]) -> str:
    key = ".".join(_part(part) for part in item["loc"])
    value, kind = item["input"], item["type"]
    if kind == "extra_forbidden" and len(item["loc"]) > 1:
        return f"unknown key '{key}', with value {quote(value)}; take it out"
    if kind == "extra_forbidden":
        return no_such("key", item["loc"][0], keys)
    if kind == "missing":
        return f"{key}: missing; give it a value"
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        return f"{key}: {quote(value)} is text, not a number: write it without quotes"
    message = item["msg"].removeprefix("Value error, ")
    return f"{key}: {quote(value)}: {message}" if key else message  # of the whole, it names the part itself


_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def _part(part: object) -> str:
    """A part of a key: as it is, if that is short and in one line."""
    return str(part) if isinstance(part, int) or re.fullmatch(r"[ -~]{1,60}", part) else quote(part)
