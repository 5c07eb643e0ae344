"""Archives that are known by their hash, and texts in gzip or not; nothing is written."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

from benchlib.errors import BenchlibError

MOST_BYTES = 2**30
"""The most bytes of a text, unpacked: it is held in memory as words."""


def unpack(path: Path) -> bytes:
    """The content of a file, in gzip or not; one that is damaged raises an OSError, EOFError or zlib.error. Its first
    bytes decide: some browsers unpack a file and keep its name.
    """
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if packed else path.open("rb") as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise BenchlibError(
            f"{path}: it holds more than {MOST_BYTES:,} bytes, the most that is read: take a part of it"
        )
    return content


def members(archive: Path, wanted: Callable[[str], object]) -> Iterator[tuple[str, bytes]]:
    """The files of these names in a ``.tar.gz``, in its order, as (name, content)."""
    with tarfile.open(archive, "r|gz") as tar:
        for member in tar:
            if member.isfile() and wanted(member.name):
                yield member.name, tar.extractfile(member).read()
