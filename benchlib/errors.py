"""Errors that a user can act on, and failures of workers. Standard library only: workers import it."""

from __future__ import annotations

import difflib
import errno
import importlib.util
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

SHOWN = 80
"""Characters of a value that an error repeats."""


class BenchlibError(Exception):
    """Wrong input, or something missing: the fact, the place and the remedy."""


class NotInThisVersion(BenchlibError):
    """A mode, a precision or an operation that an installed version of a framework lacks: a refusal, no fault."""


@dataclass(frozen=True)
class Failure:
    """The reason why a worker gave no result, with its type, so that no caller parses a sentence."""

    sentence: str  # "worker failed in 'check': TypeError: no kernel"
    printed: str | None = None  # the end of its output; None: it could not be started
    exception: str = ""  # the class that it answered with; empty: it died, hung, or its answer could not be read
    message: str = ""  # the exception's
    request: str = ""  # that it answered

    @property
    def is_refusal(self) -> bool:
        """Did the framework refuse the request, by an exception of its own that is not want of memory?"""
        lacked_memory = _NO_MEMORY.search(f"{self.exception} {self.message}")
        own = self.exception != "BenchlibError" or self.request == "open"
        return bool(self.exception) and own and not lacked_memory

    def __str__(self) -> str:
        if self.printed is None:
            return self.sentence
        return f"{self.sentence}. The end of what it said:\n{self.printed or '(nothing)'}"


_NO_MEMORY = re.compile(r"memoryerror|out of memory|allocate memory", re.IGNORECASE)
"""The words of frameworks and allocators for want of memory."""


def quote(value: object) -> str:
    """``value`` as Python writes it, cut after ``SHOWN`` characters."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of more digits than Python writes, lists in lists without end
        return f"a {type(value).__name__} that is too large to be shown"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text):,} characters)"


def no_such(what: str, name: object, known: Iterable[str]) -> str:
    """A sentence that refuses ``name`` and offers the nearest name that exists.

    >>> no_such("workload", "cnm", ["cnn", "conv2d"])
    "unknown workload 'cnm': did you mean 'cnn'? (there are: cnn, conv2d)"
    """
    known = sorted(known)
    given = name if isinstance(name, str) else quote(name)
    near = difflib.get_close_matches(given[:SHOWN].lower(), known, n=1, cutoff=0.5)
    hint = f" did you mean {near[0]!r}?" if near else ""
    return f"unknown {what} {quote(name)}:{hint} (there are: {', '.join(known)})"


def require_package(module: str, extra: str, purpose: str) -> None:
    """Refuse ``purpose`` where a top-level module of benchlib's ``extra`` is not installed; imports nothing."""
    if importlib.util.find_spec(module) is None:
        raise BenchlibError(f"{purpose} needs {module}, which is not installed: pip install 'benchlib[{extra}]'")


REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "free space there"),
    errno.EFBIG: "allow larger files (ulimit -f)",
    **dict.fromkeys((errno.EROFS, errno.EACCES, errno.EPERM), "make it writable"),
}
"""The remedy for a file that cannot be written, by the system's error number: these need no traceback."""


def write_error(error: OSError, place: Path | str) -> str:
    """A sentence on the file that could not be written, which is ``place`` unless the error says otherwise.

    >>> write_error(OSError(28, "No space left on device"), "outputs")
    'outputs: No space left on device: free space there, or choose another folder with --outputs'
    """
    remedy = f"{REMEDIES[error.errno]}, or " if error.errno in REMEDIES else ""
    return f"{error.filename or place}: {error.strerror or error}: {remedy}choose another folder with --outputs"
