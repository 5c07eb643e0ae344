"""What a training run can be asked for, whether by a parameter file or by a call."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field

from benchlib.validation import Strict

Number = TypeVar("Number", int, float)


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
    """Arguments of ``Lab.train``; a BenchlibError names the first that is out of range."""

    seeds: list[Seed]
    epochs: Epochs
    most_epochs: Epochs | None
