"""What is measured once for all that it depends on, and kept as JSON under a key of that."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict

from benchlib.errors import BenchlibError


class Once(BaseModel):
    """How often it was tried, and in which run the last time was."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    attempts: int = 1
    run: str = ""

    def __repr__(self) -> str:
        return str(self)

    @property
    def failed(self) -> bool:
        """Is it to be tried once more?"""
        raise NotImplementedError

    @classmethod
    def kept(cls, path: Path) -> Self | None:
        """What lies there; None where nothing does, or something that was cut or is of a condition that is no more."""
        try:
            return cls.model_validate_json(path.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError, BenchlibError):
            return None
