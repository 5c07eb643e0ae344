"""IMDB, the Large Movie Review Dataset 1.0 (Maas et al., ACL 2011). The archive, or its unpacked folder, is found in
the folder that ``BENCHLIB_DATA`` names; else the archive is downloaded.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchlib.data import DataSet, archives, downloads
from benchlib.data.kinds import SEQUENCES
from benchlib.data.sequences import Sequences, from_texts
from benchlib.errors import BenchlibError

DATA_SET = DataSet(
    "IMDB",
    "IMDB: 25,000 film reviews for training and 25,000 for testing, half of them positive (Maas et al. 2011); "
    "words are lower-case runs of letters, digits and apostrophes, the vocabulary is that of the training reviews.",
    25_000,
    SEQUENCES,
)

ARCHIVE, FOLDER = "aclImdb_v1.tar.gz", "aclImdb"
ARCHIVES = (ARCHIVE, "aclImdb_v1_archive")
FOLDERS = (FOLDER, "aclImdb_v1/aclImdb", "aclImdb_v1_extracted/aclImdb")
"""The original's names first; the last archive and the last two folders are Keras's."""
URL = f"https://ai.stanford.edu/~amaas/data/sentiment/{ARCHIVE}"
MD5 = "7c2ac02c03563afcf9b574c7e56c153a"
LABELS = {"neg": 0, "pos": 1}
PER_LABEL = 12_500  # reviews of each label in each split
UNPACKED = "reviews unpacked, whose text cannot be checked against the published archive."
_REVIEW = re.compile(r"aclImdb/(train|test)/(neg|pos)/([0-9]+)_[0-9]+\.txt")


def require() -> Path | None:
    """The archive or folder that ``BENCHLIB_DATA`` offers; None if it names no folder. Reads no file."""
    return downloads.find(ARCHIVES + FOLDERS, URL, "digits_sequence")


def identity() -> str:
    """The archive's md5, or a hash of the files in a folder."""
    place = require()
    return MD5 if place is None or _is_original(place) else _hash_of_texts(place)


def load(size: int) -> Sequences:
    """25,000 reviews for training and as many for testing as tokens, with a vocabulary of ``size``; 0 is negative. Of a
    folder only the number of reviews is known: its note says so.
    """
    place = require() or downloads.download(URL, f"md5:{MD5}", "IMDB", "digits_sequence")
    note = "" if _is_original(place) else UNPACKED
    reviews: dict[str, dict[tuple[int, str], str]] = {"train": {}, "test": {}}
    for name, content in _contents(place):
        split, label, number = _REVIEW.fullmatch(name).groups()
        try:
            reviews[split][int(number), label] = content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BenchlibError(f"{place}: {name}: it is no text in UTF-8 ({error}); {_remedy()}") from None
    found = []
    for split, texts in reviews.items():
        keys = sorted(texts)  # by number, neg before pos: so any beginning is balanced
        labels = np.array([LABELS[label] for _, label in keys], dtype=np.int32)
        negative, positive = np.bincount(labels, minlength=2)
        if (negative, positive) != (PER_LABEL, PER_LABEL):
            raise BenchlibError(
                f"{place}: {split} has {negative} negative and {positive} positive reviews, expected {PER_LABEL} of "
                f"each; {_remedy()}"
            )
        found.append(([texts[key] for key in keys], labels))
    return from_texts(*found, size=size, source=str(place), note=note)


def _is_original(place: Path) -> bool:
    if place.name == FOLDER:
        return False
    downloads.require_hash(place, "md5", MD5, _remedy())
    return True


def _contents(place: Path) -> Iterator[tuple[str, bytes]]:
    """The reviews of an archive or a folder, by their path in it; nothing is written."""
    if place.name != FOLDER:
        yield from archives.members(place, _REVIEW.fullmatch)
        return
    for path in place.glob("*/*/*.txt"):
        if _REVIEW.fullmatch(name := path.relative_to(place.parent).as_posix()):
            try:
                yield name, path.read_bytes()
            except OSError as error:
                raise BenchlibError(f"{path}: it cannot be read ({error.strerror}); make it readable") from error


@functools.cache
def _hash_of_texts(place: Path) -> str:
    """Read once in a process: there are 50,000 files."""
    hashed = hashlib.sha256()
    for name, content in sorted(_contents(place)):
        hashed.update(f"{name} {len(content)} ".encode() + content)
    return hashed.hexdigest()


def _remedy() -> str:
    return f"get the original again from {URL} (md5 {MD5}) and replace the present one"
