"""Why a worker gave nothing, typed from where it arises: nobody has to read it out of a sentence."""

from __future__ import annotations

import re

from pydantic import BaseModel, ConfigDict


class Failure(BaseModel):
    """Why a worker gave nothing: in a sentence, with the end of what it printed; and the exception that it answered
    with, if it has answered.
    """

    model_config = ConfigDict(frozen=True)

    sentence: str  # "worker failed in 'check': TypeError: no kernel"
    printed: str | None = None  # None: it could not be started
    exception: str = ""  # the name of its class; empty: the worker died, hung, talked rubbish or was never asked
    message: str = ""  # the exception's
    request: str = ""  # that it answered

    @property
    def is_refusal(self) -> bool:
        """Did the framework refuse what it was asked for, by an exception of its own? A worker that died, hung or
        talked rubbish has not answered, nor has one that lacked memory, or whose model is not built as the workload
        says.
        """
        lacked_memory = _NO_MEMORY.search(f"{self.exception} {self.message}")
        own = self.exception != "BenchlibError" or self.request == "open"
        return bool(self.exception) and own and not lacked_memory

    def __str__(self) -> str:
        if self.printed is None:
            return self.sentence
        return f"{self.sentence}. The end of what it said:\n{self.printed or '(nothing)'}"


_NO_MEMORY = re.compile(r"memoryerror|out of memory|allocate memory", re.IGNORECASE)
"""How frameworks and allocators say it."""
