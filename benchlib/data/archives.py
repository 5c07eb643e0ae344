"""What is packed, read without being written anywhere: however much it says that it holds, no more than a limit is
unpacked, and no path, link or device in it is followed.
"""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from benchlib.errors import BenchlibError, shown

MOST_BYTES = 2**30
"""Of an archive or a text, unpacked: CIFAR-10 has 0.2 GB, and a text is held in memory as words."""

MOST_FOR_ONE = 100
"""Bytes of a text for each that is packed, beyond the first MiB: a novel has 3, gzip makes up to 1,032 of one."""

MOST_MEMBERS = 200_000
"""IMDB has 100,000."""

LONGEST_HEADER = 1024
"""Bytes of an extended header, which has a long name or a time of change: Python 3.11's patterns take a time that grows
with the square of its length.
"""

ENDS = 100
"""So often more is asked for behind an archive's end before it is taken for cut: tarfile skips what a header says that
there is, however much, in steps of 10 KiB.
"""


def opened(path: Path) -> io.BufferedIOBase:
    """A file's content, in gzip or not. Its first bytes decide: some browsers unpack a file and keep its name."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path) if packed else path.open("rb")


def members(archive: Path, wanted: Callable[[str], object], remedy: str) -> Iterator[tuple[str, bytes]]:
    """The files of these names in a ``.tar.gz`` or ``.tar``, in its order, as (name, content).

    A BenchlibError that names the archive, and ends with the ``remedy``, for one that is cut, altered or too large, for
    a member whose path leaves the folder it would be unpacked to, and for a link or device with a wanted name.
    """
    try:
        with (
            opened(archive) as unpacked,
            tarfile.open(fileobj=_Limited(unpacked), mode="r|", tarinfo=_Member) as tar,
        ):
            for number, member in enumerate(tar):
                if number >= MOST_MEMBERS:
                    raise _Refused(f"it has more than {MOST_MEMBERS:,} members")
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts:
                    raise _Refused(f"member {shown(member.name)} climbs out of the archive: it was refused")
                if not 0 <= member.size <= MOST_BYTES:  # by an extended header
                    raise _Refused(f"member {shown(member.name)} says that it has {member.size:,} bytes")
                if wanted(name := member.name.removeprefix("./")):  # which "tar c ." begins names with
                    yield name, _content(tar, member)
    except _Refused as error:
        raise BenchlibError(f"{archive}: {error}; {remedy}") from None
    except Exception as error:  # what a damaged archive raises is not limited to a few types
        raise BenchlibError(
            f"{archive}: it cannot be unpacked ({type(error).__name__}: {error}), so it is cut or altered; {remedy}"
        ) from error


def unpacked(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a file, in gzip or not; a BenchlibError if that has more than ``most`` bytes, or more for its size
    than any text, before more are unpacked.

    A file that is cut or altered raises what gzip does: an OSError, EOFError or zlib.error.
    """
    most, count, chunks = min(most, MOST_FOR_ONE * path.stat().st_size + 2**20), 0, []
    with opened(path) as file:
        while chunk := file.read(2**20):
            chunks.append(chunk)
            count += len(chunk)
            if count > most:
                raise BenchlibError(
                    f"{path}: it holds more than {most:,} bytes, the most that is read of it: take a part of it"
                )
    return b"".join(chunks)


class _Refused(Exception):
    """What is wrong with an archive, in words."""


def _content(opened: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    if not member.isfile() or member.issparse():
        raise _Refused(f"member {shown(member.name)} is a folder, a link, a device or has holes: expected a file")
    content = opened.extractfile(member).read()
    if len(content) != member.size:
        raise _Refused(f"member {shown(member.name)} has {len(content):,} of {member.size:,} bytes, so it is cut")
    return content


class _Limited(io.RawIOBase):
    """A file of which no more than ``MOST_BYTES`` are read."""

    def __init__(self, file: io.BufferedIOBase) -> None:
        self._file, self._left, self._ends = file, MOST_BYTES, 0

    def read(self, size: int = -1) -> bytes:
        content = self._file.read(size)  # tarfile asks for 10 KiB at a time
        self._left -= len(content)
        self._ends += not content
        if self._left < 0:
            raise _Refused(f"it holds more than {MOST_BYTES:,} bytes")
        if self._ends > ENDS:
            raise _Refused("it ends before what its headers say that it has, so it is cut or altered")
        return content


class _Member(tarfile.TarInfo):
    """A header, refused where it counts what cannot be."""

    EXTENSIONS = (
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    )

    @classmethod
    def frombuf(cls, buf: bytes, encoding: str, errors: str) -> tarfile.TarInfo:
        member = super().frombuf(buf, encoding, errors)
        if not 0 <= member.size <= MOST_BYTES:
            raise _Refused(f"member {shown(member.name)} says that it has {member.size:,} bytes")
        if member.type in cls.EXTENSIONS and member.size > LONGEST_HEADER:
            raise _Refused(f"it has an extended header of {member.size:,} bytes, the most is {LONGEST_HEADER:,}")
        return member
