"""Turns pydantic's findings into errors that name the file, the key and the value, and say what to do."""

from __future__ import annotations

import difflib
import re

from pydantic import BaseModel, ConfigDict, ValidationError

from benchlib.errors import BenchlibError


class Strict(BaseModel):
    """A frozen model that takes no unknown key and converts no type; a wrong value is a BenchlibError."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    def __init__(self, **values: object) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise BenchlibError(explain(error, type(self).__name__, type(self).model_fields)) from None


def explain(error: ValidationError, where: str, keys: object = ()) -> str:
    """All that is wrong, a line each: ``where: key: what was wrong, with the value, and what to do``."""
    return "\n".join(f"{where}: {_line(item, list(keys))}" for item in error.errors())


def _line(item: dict, keys: list[str]) -> str:
    key = ".".join(str(part) for part in item["loc"])
    value, kind = item["input"], item["type"]
    if kind == "extra_forbidden" and len(item["loc"]) > 1:
        return f"unknown key {key!r}, with value {value!r}; take it out"
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(key, keys, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"unknown key {key!r}{hint} (there are: {', '.join(keys)})"
    if kind == "missing":
        return f"{key}: missing; give it a value"
    if isinstance(value, str) and re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", value.strip()):
        return f"{key}: {value!r} is text, not a number; YAML reads 1e-3 as text: write 0.001 or 1.0e-3, without quotes"
    message = item["msg"].removeprefix("Value error, ")
    return f"{key}: {value!r}: {message}" if key else message  # what is about the whole says itself which part it means
