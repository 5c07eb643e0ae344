"""Archives and files in gzip, read without writing anything: no path, link or device in them is followed."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from benchlib.errors import BenchlibError, shown

MOST_BYTES = 2**30
"""Of an archive or a text, unpacked: CIFAR-10 has 0.2 GB, and a text is held in memory as words."""


def opened(path: Path) -> io.BufferedIOBase:
    """A file's content, in gzip or not. Its first bytes decide: some browsers unpack a file and keep its name."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else path.open("rb")


def unpacked(path: Path) -> bytes:
    """The content of a file, in gzip or not; one that is damaged raises an OSError, EOFError or zlib.error."""
    with opened(path) as file:
        content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise BenchlibError(
            f"{path}: it holds more than {MOST_BYTES:,} bytes, the most that is read: take a part of it"
        )
    return content


def members(archive: Path, wanted: Callable[[str], object], remedy: str) -> Iterator[tuple[str, bytes]]:
    """The files of these names in a ``.tar.gz`` or ``.tar``, in its order, as (name, content). A BenchlibError for one
    that is cut, altered or too large, whose paths leave it, or that has a link or device with a wanted name.
    """
    left = MOST_BYTES
    try:
        with opened(archive) as file, tarfile.open(fileobj=file, mode="r|") as tar:
            for member in tar:
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts:
                    raise tarfile.TarError(f"member {shown(member.name)} leads out of the archive")
                left -= member.size
                if left < 0:
                    raise tarfile.TarError(f"it holds more than {MOST_BYTES:,} bytes")
                if wanted(name := member.name.removeprefix("./")):  # which "tar c ." begins names with
                    if not member.isfile():
                        raise tarfile.TarError(f"member {shown(member.name)} is a folder, a link or a device, no file")
                    yield name, tar.extractfile(member).read()
    except Exception as error:  # what a damaged archive raises is not limited to a few types
        raise BenchlibError(f"{archive}: it cannot be unpacked ({error}), so it is cut or altered; {remedy}") from error
