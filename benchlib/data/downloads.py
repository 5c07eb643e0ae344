"""Files from their homes: found in the folder that ``BENCHLIB_DATA`` names, or downloaded into the user's cache."""

from __future__ import annotations

import functools
import hashlib
import os
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from benchlib.data import archives
from benchlib.errors import BenchlibError, require_package

VARIABLE = "BENCHLIB_DATA"


def offered_folder() -> Path | None:
    """The folder that ``BENCHLIB_DATA`` names; None if it names none."""
    named = os.environ.get(VARIABLE)
    return Path(named) if named else None


def find(names: Sequence[str], home: str, instead: str) -> Path | None:
    """The first of these names in the folder that ``BENCHLIB_DATA`` names; None if it names none. Reads no file."""
    named = offered_folder()
    for name in names if named else ():
        if os.path.exists(named / name):  # which, where it may not look, says no
            return named / name
    if named:
        raise BenchlibError(
            f"{VARIABLE}={named}: there is none of {', '.join(names)} in it; put one there (from {home}), or unset "
            f"{VARIABLE} to have it downloaded, or use data: {instead}, which needs no download"
        )
    return None


def download(url: str, known: str, what: str, instead: str) -> Path:
    """A file from its home, kept in the user's cache: ``known`` by its hash (``md5:...``), a part of ``what``."""
    require_package("pooch", "data", f"{what}, which has to be downloaded,")
    import pooch

    cache, name = Path(pooch.os_cache("benchlib")), url.rpartition("/")[2]
    try:
        return Path(pooch.retrieve(url, known, fname=name, path=cache))  # which logs what it downloads
    except (OSError, ValueError) as error:  # no network, no space, or another file arrived
        why = "".join(one if one.isprintable() else "?" for one in str(error)[:300])  # it may repeat a server's words
        raise BenchlibError(
            f"{url}: {what} could not be downloaded to {cache}: {why}; get it in another way and set {VARIABLE} to its "
            f"folder, or use data: {instead}, which needs no download"
        ) from error


@dataclass(frozen=True)
class FileSet:
    """A data set that is published as several files, known by their sha256."""

    title: str
    home: str  # their addresses, up to the name
    folder: str  # that they may lie in, in the folder that ``BENCHLIB_DATA`` names
    sha256: Mapping[str, str]
    instead: str  # the data set that needs no download
    content: Mapping[str, str] = field(default_factory=dict)  # sha256 of files in gzip, unpacked

    def place(self) -> Path | None:
        """The folder in ``BENCHLIB_DATA`` that has the files; None if it names no folder. Reads no file."""
        first = next(iter(self.sha256))
        names = dict.fromkeys(f"{folder}{one}" for folder in ("", f"{self.folder}/") for one in _names(first))
        found = find(list(names), self.home, self.instead)
        return found and found.parent

    def identity(self) -> str:
        """A hash of the files' hashes, which :meth:`paths` verifies."""
        return hashlib.sha256("".join(self.sha256.values()).encode()).hexdigest()

    def paths(self) -> dict[str, Path]:
        """All files by name, found or downloaded; one that is missing, cut or altered is a BenchlibError."""
        place, found = self.place(), {}
        for name, expected in self.sha256.items():
            if place is None:
                found[name] = download(self.home + name, f"sha256:{expected}", self.title, self.instead)
                continue
            found[name] = path = next((place / one for one in _names(name) if (place / one).exists()), place / name)
            remedy = f"get this file of {self.title} from {self.home}{name}"
            if not self._repack(name, path):
                require_hash(path, "sha256", expected, remedy)
        return found

    def _repack(self, name: str, path: Path) -> bool:
        """Whether a file's content is the original's, while its gzip is another or none."""
        with suppress(OSError, EOFError, zlib.error):  # damaged
            return hashlib.sha256(archives.unpack(path)).hexdigest() == self.content.get(name)
        return False


def hash_of(path: Path, algorithm: str, remedy: str = "make it readable") -> str:
    """The hash of a file, computed again only when its size or time of change differ."""
    try:
        known = path.stat()
        return _cached_hash(str(path), algorithm, known.st_size, known.st_mtime_ns)
    except OSError as error:
        raise BenchlibError(f"{path}: this file cannot be read ({error.strerror}); {remedy}") from error


def require_hash(path: Path, algorithm: str, expected: str, remedy: str) -> None:
    """Raise a BenchlibError where a file is not the one with this hash."""
    if hash_of(path, algorithm, remedy) != expected:
        raise BenchlibError(f"{path}: it is cut or altered: its {algorithm} is not {expected}; {remedy}")


@functools.lru_cache(maxsize=64)
def _cached_hash(path: str, algorithm: str, size: int, modified_ns: int) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, algorithm).hexdigest()


def _names(name: str) -> tuple[str, str]:
    return name, name.removesuffix(".gz")
