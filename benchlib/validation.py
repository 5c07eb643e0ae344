"""Turns pydantic's findings into errors that name the file, the key and the value, and say what to do."""

from __future__ import annotations

import difflib
import re

from pydantic import BaseModel, ConfigDict, ValidationError

from benchlib.errors import SHOWN, BenchlibError, shown

MOST_LINES = 20
"""Of a refusal: who has so much wrong mends these first."""


class Strict(BaseModel):
    """A frozen model that takes no unknown key and converts no type; a wrong value is a BenchlibError."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def __init__(self, /, **values: object) -> None:  # "self" may be a key in a file
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise BenchlibError(explain(error, type(self).__name__, type(self).model_fields)) from None


def explain(error: ValidationError, where: str, keys: object = ()) -> str:
    """All that is wrong, a line each: ``where: key: what was wrong, with the value, and what to do``."""
    items = error.errors(include_url=False)
    lines = [_line(item, list(keys)) for item in items[:MOST_LINES]]
    if len(items) > MOST_LINES:
        lines.append(f"and {len(items) - MOST_LINES:,} more values are wrong")
    return "\n".join(f"{where}: {line}" for line in lines)


def _line(item: dict, keys: list[str]) -> str:
    key = ".".join(_part(part) for part in item["loc"])
    value, kind = item["input"], item["type"]
    if kind == "extra_forbidden" and len(item["loc"]) > 1:
        return f"unknown key '{key}', with value {shown(value)}; take it out"
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(item["loc"][0][:SHOWN], keys, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"unknown key {shown(item['loc'][0])}{hint} (there are: {', '.join(keys)})"
    if kind == "missing":
        return f"{key}: missing; give it a value"
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        why = "is text, not a number: write it without quotes"
        return f"{key}: {shown(value)} {why}"
    message = item["msg"].removeprefix("Value error, ")
    if not key:  # what is about the whole says itself which part it means
        return message
    return f"{key}: {shown(value)}: {message}"


_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


def _part(part: object) -> str:
    """Of a key: as it is, if that is short and in one line."""
    return str(part) if isinstance(part, int) or re.fullmatch(r"[ -~]{1,60}", part) else shown(part)
