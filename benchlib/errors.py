"""Errors that a user can act on: what was wrong, where, and what to do.

Everything that a user's input can cause is raised as a :class:`BenchlibError` before anything is measured. This module
needs only the standard library, because workers import it too.
"""

from __future__ import annotations

import difflib
import errno
import importlib.util
from collections.abc import Iterable
from pathlib import Path

SHOWN = 80
"""Characters of a value that an error repeats: it is read by people, and the value is in their file."""


class BenchlibError(Exception):
    """Wrong input, or something missing, told in a way that a user can act on."""


def shown(value: object) -> str:
    """``value`` as Python writes it, cut after ``SHOWN`` characters.

    >>> shown("cnn")
    "'cnn'"
    >>> shown(10**300)
    '10000000000000000000000000000000000000000000000000000000000000000000000000000000... (301 characters)'
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of more digits than Python writes, lists in lists without end
        return f"a {type(value).__name__} that is too large to be shown"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text):,} characters)"


def unknown(what: str, name: object, known: Iterable[str]) -> str:
    """A sentence that refuses ``name`` and offers the nearest name that exists.

    >>> unknown("workload", "cnm", ["cnn", "conv2d"])
    "unknown workload 'cnm': did you mean 'cnn'? (there are: cnn, conv2d)"
    """
    known = sorted(known)
    given = name if isinstance(name, str) else shown(name)
    near = difflib.get_close_matches(given[:SHOWN].lower(), known, n=1, cutoff=0.5)
    hint = f" did you mean {near[0]!r}?" if near else ""
    return f"unknown {what} {shown(name)}:{hint} (there are: {', '.join(known)})"


def require_package(module: str, extra: str, purpose: str) -> None:
    """Raise a BenchlibError if a top-level ``module`` is not installed, which ``purpose`` needs and ``extra`` of
    benchlib's distribution brings. Imports nothing.
    """
    if importlib.util.find_spec(module) is None:
        raise BenchlibError(f"{purpose} needs {module}, which is not installed: pip install 'benchlib[{extra}]'")


REMEDIES = {
    errno.ENOSPC: "free space there",
    errno.EDQUOT: "free space there",
    errno.EFBIG: "allow larger files (ulimit -f)",
    errno.EROFS: "make it writable",
    errno.EACCES: "make it writable",
    errno.EPERM: "make it writable",
}
"""What to do about what the system says of a file that cannot be written."""

UNWRITABLE = tuple(REMEDIES)
"""For these errors nobody needs a traceback."""


def unwritable(error: OSError, place: Path | str) -> str:
    """A sentence on what could not be written, which is ``place`` unless the error says otherwise.

    >>> unwritable(OSError(28, "No space left on device"), "outputs")
    'outputs: No space left on device: free space there, or choose another folder with --outputs'
    """
    remedy = f"{REMEDIES[error.errno]}, or " if error.errno in REMEDIES else ""
    return f"{error.filename or place}: {error.strerror or error}: {remedy}choose another folder with --outputs"
