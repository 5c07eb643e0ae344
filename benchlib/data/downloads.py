"""Files from their homes: found in the folder that ``BENCHLIB_DATA`` names, or downloaded into the user's cache."""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchlib.data import archives
from benchlib.errors import BenchlibError, require_package
from benchlib.progress import Progress

VARIABLE = "BENCHLIB_DATA"

MOST_BYTES = 2**30
"""Of a download: the largest, CIFAR-10, has 170 MB."""


@dataclass(frozen=True)
class Original:
    """A file as it was published: where, and the hash by which it is known."""

    name: str
    url: str
    algorithm: str  # "md5" or "sha256"
    hash: str


def offered() -> Path | None:
    """The folder that ``BENCHLIB_DATA`` names; None if it names none."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def download(original: Original, what: str, instead: str) -> Path:
    """The file from its home, kept in the user's cache; ``what`` it is a part of, and what needs no download."""
    require_package("pooch", "data", f"{what}, which has to be downloaded,")
    import pooch

    cache = Path(pooch.os_cache("benchlib"))
    downloader = pooch.HTTPDownloader(progressbar=_Steps(original.name), chunk_size=2**16)
    known = f"{original.algorithm}:{original.hash}"
    try:
        return Path(pooch.retrieve(original.url, known, fname=original.name, path=cache, downloader=downloader))
    except (OSError, ValueError) as error:  # no network, no space; what arrived is not the file
        why = "".join(one if one.isprintable() else "?" for one in str(error))  # it may repeat what a server says
        raise BenchlibError(
            f"{original.url}: {what} could not be downloaded to {cache}: {why}; download it in another way, put "
            f"it into a folder and let {VARIABLE} name that folder, or use data: {instead}, which needs no download"
        ) from error


def archive_or_folder(archives: Sequence[str], folders: Sequence[str], url: str, instead: str) -> Path | None:
    """The first of these names in the folder that ``BENCHLIB_DATA`` names; None if it names none. Reads no file."""
    named = offered()
    if named is None:
        return None
    for name in (*archives, *folders):
        if os.path.exists(named / name):  # which, where it may not look, says no
            return named / name
    raise BenchlibError(
        f"{VARIABLE}={named}: there is neither {archives[0]} nor a folder {folders[0]} in it, one of which was "
        f"expected; put one there (from {url}), or unset {VARIABLE} to have it downloaded, or use data: {instead}, "
        "which needs no download"
    )


@dataclass(frozen=True)
class FileSet:
    """A data set that is published as several files, known by their sha256."""

    title: str
    home: str  # their addresses, up to the name
    folder: str  # that they may lie in, in the folder that ``BENCHLIB_DATA`` names
    sha256: Mapping[str, str]
    instead: str  # the data set that needs no download
    content: Mapping[str, str] = field(default_factory=dict)  # sha256 of what files in gzip hold

    def place(self) -> Path | None:
        """The folder in ``BENCHLIB_DATA`` that has the files; None if it names no folder. Reads no file."""
        named = offered()
        if named is None:
            return None
        first = next(iter(self.sha256))
        for folder in (named, named / self.folder):
            if os.path.exists(folder / first) or os.path.exists(folder / first.removesuffix(".gz")):
                return folder
        raise BenchlibError(
            f"{VARIABLE}={named}: there is no {first} in it, nor in its folder {self.folder}; put the files of "
            f"{self.title} there (from {self.home}), or unset {VARIABLE} to have them downloaded, or use data: "
            f"{self.instead}, which needs no download"
        )

    def identity(self) -> str:
        """What the data is: a hash of the files' hashes, which :meth:`paths` makes sure of."""
        return hashlib.sha256("".join(self.sha256.values()).encode()).hexdigest()

    def paths(self) -> dict[str, Path]:
        """All files by name, found or downloaded; one that is missing, cut or altered is a BenchlibError."""
        place = self.place()
        found = {}
        for name, expected in self.sha256.items():
            if place is None:
                original = Original(name, self.home + name, "sha256", expected)
                found[name] = download(original, self.title, self.instead)
                continue
            names = [one for one in (name, name.removesuffix(".gz")) if os.path.exists(place / one)]
            found[name] = path = place / (names or [name])[0]
            if not path.is_file():
                raise BenchlibError(f"{path}: this file of {self.title} is missing; get it from {self.home}{name}")
            if (sha256 := hash_of(path, "sha256")) != expected and not self._packed_again(name, path):
                raise BenchlibError(
                    f"{path}: this file of {self.title} is cut or altered: its sha256 is {sha256}, expected "
                    f"{expected}; get it again from {self.home}{name}"
                )
        return found

    def _packed_again(self, name: str, path: Path) -> bool:
        """Whether what a file holds is the original's, while its gzip is another or none."""
        with suppress(OSError, EOFError, zlib.error):  # damaged
            return hashlib.sha256(archives.unpacked(path)).hexdigest() == self.content.get(name)
        return False


def status(path: Path) -> os.stat_result:
    """A file's size and time of change; a BenchlibError if it is none: to read a pipe or a device may take for ever."""
    try:
        known = path.stat()
    except OSError as error:
        raise BenchlibError(f"{path}: it cannot be read ({error.strerror or error}); make it readable") from error
    if not stat.S_ISREG(known.st_mode):
        raise BenchlibError(f"{path}: it is a folder, a pipe or a device, expected a file; put that there")
    return known


def hash_of(path: Path, algorithm: str) -> str:
    """The hash of a file, computed again only when its size or time of change differ; a BenchlibError if it is none, or
    cannot be read.
    """
    known = status(path)
    try:
        return _hashed(str(path), algorithm, known.st_size, known.st_mtime_ns)
    except OSError as error:
        raise BenchlibError(f"{path}: it cannot be read ({error.strerror or error}); make it readable") from error


@functools.lru_cache(maxsize=64)
def _hashed(path: str, algorithm: str, size: int, modified_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


class _Steps:
    """A download as pooch tells of it, shown as 20 steps; a file that is there already shows none."""

    total = 0  # bytes; pooch sets it

    def __init__(self, name: str) -> None:
        self._name = name
        self._bytes = 0
        self._progress: Progress | None = None

    def update(self, count: int) -> None:
        if self._bytes + count > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes, so it is something else")
        if self._progress is None:
            self._progress = Progress(20, f"downloading {self._name}").__enter__()
        self._bytes += count
        while self._progress.done < min(20, 20 * self._bytes // max(self.total, 1)):
            self._progress.step()

    def reset(self) -> None:
        self._bytes = 0

    def close(self) -> None:
        self._progress.__exit__(None)
