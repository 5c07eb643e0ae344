"""IMDB, the Large Movie Review Dataset 1.0 (Maas et al., ACL 2011): the archive or its unpacked folder in the folder
that ``BENCHLIB_DATA`` names, or downloaded.
"""

from __future__ import annotations

import functools
import hashlib
import re
import stat
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchlib.data import DataSet, archives, downloads
from benchlib.data.downloads import Original
from benchlib.data.kinds import SEQUENCES
from benchlib.data.sequences import Sequences, Texts, from_texts
from benchlib.errors import BenchlibError

DATA_SET = DataSet(
    "IMDB",
    "IMDB: 25,000 film reviews for training and 25,000 for testing, half of them positive (Maas et al. 2011); "
    "words are lower-case runs of letters, digits and apostrophes, the vocabulary is that of the training reviews.",
    25_000,
    SEQUENCES,
)

ARCHIVE, FOLDER = "aclImdb_v1.tar.gz", "aclImdb"
ARCHIVES = (ARCHIVE, ARCHIVE.removesuffix(".gz"), "aclImdb_v1_archive")
FOLDERS = (FOLDER, "aclImdb_v1/aclImdb", "aclImdb_v1_extracted/aclImdb")
"""The original's names first; the last archive and the last two folders are Keras's."""
URL = f"https://ai.stanford.edu/~amaas/data/sentiment/{ARCHIVE}"
MD5 = "7c2ac02c03563afcf9b574c7e56c153a"
LABELS = {"neg": 0, "pos": 1}
RATINGS = {"neg": range(1, 5), "pos": range(7, 11)}  # stars of ten (Maas et al., section 4.1)
PER_LABEL = 12_500  # reviews of each label in each split
LONGEST = 2**20  # bytes of a review: those published have at most 14,000
UNPACKED = "reviews unpacked or packed again, whose text cannot be checked against the published archive."
_REVIEW = re.compile(r"aclImdb/(train|test)/(neg|pos)/([0-9]{1,5})_([0-9]{1,2})\.txt")


def require() -> None:
    """Raise a BenchlibError if ``BENCHLIB_DATA`` names a folder without IMDB. Reads no file."""
    _place()


def identity() -> str:
    """What the reviews are: the archive's md5, or a hash of the files that are unpacked or packed again."""
    place = _place()
    return MD5 if place is None or _is_original(place) else _hash_of_texts(place)


def load(size: int) -> Sequences:
    """25,000 reviews for training and as many for testing as tokens, with a vocabulary of ``size``; 0 is negative.

    Raises a BenchlibError that names the file, what was expected and what to do: for an archive that is cut or damaged,
    for reviews that are missing, empty or rated against their label. Of a folder, and of an archive that somebody
    packed again, only the number of reviews is known, not their text: its note says so.
    """
    place = _place() or downloads.download(Original(ARCHIVE, URL, "md5", MD5), "IMDB", "digits_sequence")
    note = "" if _is_original(place) else UNPACKED
    reviews: dict[str, dict[tuple[int, str], tuple[str, str]]] = {"train": {}, "test": {}}
    for where, split, label, number, rating, text in _reviews(place):
        if not text.strip():
            raise BenchlibError(f"{where}: review {split}/{label}/{number} is empty; {_remedy()}")
        if rating not in RATINGS[label]:
            lowest, highest = RATINGS[label][0], RATINGS[label][-1]
            raise BenchlibError(
                f"{where}: review {split}/{label}/{number} has a rating of {rating}, expected {lowest} to {highest} of "
                f"one with the label {label}; {_remedy()}"
            )
        reviews[split][number, label] = where, text
    found, where = {}, []
    for split, by_number in reviews.items():
        keys = sorted(by_number)  # by number, neg before pos: so any beginning is balanced
        labels = np.array([LABELS[label] for _, label in keys], dtype=np.int32)
        counts = np.bincount(labels, minlength=2).tolist()
        if counts != [PER_LABEL, PER_LABEL]:
            raise BenchlibError(
                f"{place}: {split} has {counts[0]} negative and {counts[1]} positive reviews, expected {PER_LABEL} of "
                f"each; {_remedy()}"
            )
        found[split] = ([by_number[key][1] for key in keys], labels)
        where += [by_number[key][0] for key in keys]
    return from_texts(Texts(*found["train"], *found["test"], str(place), note, where), size)


def _place() -> Path | None:
    """The archive or else the folder that ``BENCHLIB_DATA`` offers; None if it names no folder."""
    return downloads.archive_or_folder(ARCHIVES, FOLDERS, URL, "digits_sequence")


def _is_original(place: Path) -> bool:
    return place.name != FOLDER and downloads.hash_of(place, "md5") == MD5


def _reviews(place: Path) -> Iterator[tuple[str, str, str, int, int, str]]:
    """Where each review is, its split, label, number, rating and text; nothing is written."""
    for name, content in _contents(place):
        match, where = _REVIEW.fullmatch(name), f"{place.parent / name}" if place.is_dir() else f"{place}: {name}"
        try:
            yield where, match[1], match[2], int(match[3]), int(match[4]), content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BenchlibError(f"{where}: it is no text in UTF-8 ({error}); {_remedy()}") from None


def _contents(place: Path) -> Iterator[tuple[str, bytes]]:
    return _unpacked(place) if place.name == FOLDER else members(place)


def members(archive: Path) -> Iterator[tuple[str, bytes]]:
    """The reviews in an archive; see ``archives.members``."""
    return archives.members(archive, _REVIEW.fullmatch, _remedy())


def _unpacked(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The reviews in a folder. A link in it is refused: what an archive brought may lead anywhere."""
    links = [one for one in (*folder.glob("*"), *folder.glob("*/*")) if one.is_symlink()]
    if links:
        raise BenchlibError(f"{links[0]}: it is a link, expected a folder or a file of IMDB; {_remedy()}")
    for path in sorted(folder.glob("*/*/*.txt")):
        name = path.relative_to(folder.parent).as_posix()
        if _REVIEW.fullmatch(name):
            yield name, _content(path)


def _content(path: Path) -> bytes:
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise BenchlibError(f"{path}: it is a link, a folder, a pipe or a device, expected a file; {_remedy()}")
        with path.open("rb") as file:
            content = file.read(LONGEST + 1)
    except OSError as error:
        raise BenchlibError(f"{path}: it cannot be read ({error.strerror or error}); make it readable") from error
    if len(content) > LONGEST:
        raise BenchlibError(f"{path}: it has more than {LONGEST:,} bytes, more than any review; {_remedy()}")
    return content


@functools.cache
def _hash_of_texts(place: Path) -> str:
    """Read once in a process: there are 50,000 files. An archive has them in any order."""
    hashed = hashlib.sha256()
    for name, content in sorted(_contents(place)):
        hashed.update(f"{name} {len(content)} ".encode() + content)
    return hashed.hexdigest()


def _remedy() -> str:
    return f"get the original again from {URL} (md5 {MD5}) and replace what is there"
