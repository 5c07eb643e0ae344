"""CIFAR-10 in its original form, the python archive: found in the folder that ``BENCHLIB_DATA`` names, or downloaded.

The archive must be the original one (its md5 is known), or hold the same files. Files that someone unpacked or made in
the original's layout are read too: where their bytes are not the original's, that is said beside every accuracy.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchlib.data import DataSet, archives, downloads, pickles
from benchlib.data.downloads import Original
from benchlib.data.images import Images
from benchlib.data.kinds import IMAGES
from benchlib.errors import BenchlibError

DATA_SET = DataSet(
    "CIFAR-10",
    "CIFAR-10: 50,000 training and 10,000 test colour photographs of 32x32 pixels in 10 classes (Krizhevsky 2009); "
    "16 and 8 pixels are averages over 2x2 and 4x4 areas, larger images repeat each pixel; no augmentation.",
    50_000,
    IMAGES,
)

ARCHIVE = "cifar-10-python.tar.gz"
URL = f"https://www.cs.toronto.edu/~kriz/{ARCHIVE}"
ARCHIVE_MD5 = "c58f30108f718f92721af3b95e74349a"
FOLDER = "cifar-10-batches-py"
KERAS = (".tar.gz", "_archive", "-target.tar.gz", "-target_archive")
ARCHIVES = (ARCHIVE, ARCHIVE.removesuffix(".gz"), *(f"{FOLDER}{end}" for end in KERAS))
"""The original's name, without gzip, and the names under which versions of Keras keep it."""
FOLDERS = (FOLDER, f"{FOLDER}-target/{FOLDER}")  # the second is Keras's
BATCHES_MD5 = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
}
PER_BATCH = 10_000


@dataclass(frozen=True)
class _Found:
    path: Path  # the archive, or the folder of unpacked batches
    identity: str  # the same for the same images, wherever they lie
    note: str


def require() -> None:
    """Raise a BenchlibError if ``BENCHLIB_DATA`` names a folder without CIFAR-10. Reads no file."""
    _place()


def identity() -> str:
    """What the images are: a hash of the files' bytes, the same for the archive and what was unpacked from it."""
    place = _place()
    return "original" if place is None else _found(place).identity


def load() -> Images:
    """CIFAR-10 as images (n, 32, 32, 3) of 0 to 255, red, green and blue, and labels 0 to 9.

    Raises a BenchlibError that names the file, what was expected and what to do, for a file that is missing, cut or
    altered.
    """
    found = _found(_place() or downloads.download(Original(ARCHIVE, URL, "md5", ARCHIVE_MD5), "CIFAR-10", "digits"))
    batches = {}
    for name, content in _contents(found.path):
        batches[name] = _batch(content, f"{found.path}{os.sep}{name}")
    if missing := [name for name in BATCHES_MD5 if name not in batches]:
        raise BenchlibError(f"{found.path}: it has no member {FOLDER}/{missing[0]}; {_remedy()}")
    train = [batches[name] for name in BATCHES_MD5 if name != "test_batch"]
    images = Images(
        np.concatenate([pixels for pixels, _ in train]),
        np.concatenate([labels for _, labels in train]),
        *batches["test_batch"],
        source=str(found.path),
        note=found.note,
    )
    for split, labels in (("training", images.train_labels), ("test", images.test_labels)):
        counts, expected = np.bincount(labels, minlength=10), len(labels) // 10
        if (counts != expected).any():
            raise BenchlibError(
                f"{found.path}: its {split} labels name classes 0 to 9 {counts.tolist()} times, "
                f"expected {expected} times each: the files do not belong together or were altered; {_remedy()}"
            )
    return images


def _place() -> Path | None:
    """The archive or else the folder of batches that ``BENCHLIB_DATA`` offers; None if it names no folder."""
    return downloads.archive_or_folder(ARCHIVES, FOLDERS, URL, "digits")


def _found(place: Path) -> _Found:
    """Make sure of the bytes at ``place``."""
    if place.name in ARCHIVES:
        md5 = downloads.hash_of(place, "md5")
        if md5 != ARCHIVE_MD5 and _packed(place, md5) != BATCHES_MD5:
            raise BenchlibError(
                f"{place}: not the original archive of CIFAR-10: its md5 is {md5} ({place.stat().st_size:,} bytes), "
                f"expected {ARCHIVE_MD5} (170,498,071 bytes), and the files in it have other md5s than the original's, "
                f"so it is cut or altered; {_remedy()}"
            )
        return _Found(place, "original", "")
    for name in BATCHES_MD5:
        if not (place / name).is_file():
            expected = ", ".join(BATCHES_MD5)
            raise BenchlibError(f"{place / name}: this file of CIFAR-10 is missing; expected: {expected}; {_remedy()}")
    found = {name: downloads.hash_of(place / name, "md5") for name in BATCHES_MD5}
    other = [name for name in BATCHES_MD5 if found[name] != BATCHES_MD5[name]]
    if not other:
        return _Found(place, "original", "")
    if len(other) < len(BATCHES_MD5):
        raise BenchlibError(
            f"{place / other[0]}: this file is cut or altered: its md5 is {found[other[0]]}, expected "
            f"{BATCHES_MD5[other[0]]}, while others beside it are the original's; {_remedy()}"
        )
    return _Found(
        place,
        hashlib.sha256("".join(found.values()).encode()).hexdigest(),
        "Not the original bytes: no file of this CIFAR-10 has the md5 of the original archive's, so its pixels may "
        "differ. Do not compare these accuracies with published ones to the tenth of a point.",
    )


@functools.cache
def _packed(archive: Path, _md5: str) -> dict[str, str]:
    """The md5 of each batch in an archive that somebody packed again; read once in a process."""
    return {name: hashlib.md5(file.read()).hexdigest() for name, file in _contents(archive)}


def _contents(place: Path) -> Iterator[tuple[str, io.BufferedIOBase]]:
    """The batches as (name, open file); nothing is written."""
    if place.is_dir():
        for name in BATCHES_MD5:
            with (place / name).open("rb") as file:
                yield name, file
        return
    names = {f"{FOLDER}/{name}": name for name in BATCHES_MD5}
    for member, content in archives.members(place, names.get, _remedy()):
        yield names[member], io.BytesIO(content)


def _batch(file: io.BufferedIOBase, where: str) -> tuple[np.ndarray, np.ndarray]:
    """One batch: images (n, 32, 32, 3) and labels (n,)."""
    try:
        content = pickles.load(file, "CIFAR-10", "bytes", {})
        pixels, labels = content[b"data"], _labels(content[b"labels"])
    except BenchlibError as error:
        raise BenchlibError(f"{where}: {error}; {_remedy()}") from None
    except Exception as error:  # what a damaged pickle raises is not limited to a few types
        raise BenchlibError(
            f"{where}: a Python pickle with 'data' and 'labels' was expected, but it cannot be read as one "
            f"({type(error).__name__}: {error}), so it is cut or altered; {_remedy()}"
        ) from error
    shape, kind = getattr(pixels, "shape", None), getattr(pixels, "dtype", type(pixels).__name__)
    if shape != (PER_BATCH, 3072) or kind != np.uint8:
        raise BenchlibError(
            f"{where}: its data is {kind} of shape {shape}, expected uint8 of shape ({PER_BATCH}, 3072); {_remedy()}"
        )
    if labels.shape != (PER_BATCH,) or labels.dtype.kind not in "iu":
        raise BenchlibError(
            f"{where}: its labels are {labels.dtype} of shape {labels.shape}, expected {PER_BATCH} whole numbers; "
            f"{_remedy()}"
        )
    wrong = np.flatnonzero((labels < 0) | (labels > 9))
    if len(wrong):
        raise BenchlibError(f"{where}: label {labels[wrong[0]]} of image {wrong[0]} is not one of 0 to 9; {_remedy()}")
    return pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), labels.astype(np.int32)


def _labels(labels: object) -> np.ndarray:
    """A list of numbers or an array as an array. Lists in lists are none: a few bytes of a pickle can hold one that no
    memory does.
    """
    if not isinstance(labels, list | np.ndarray):
        raise TypeError(f"labels are a {type(labels).__name__}")
    for one in labels if isinstance(labels, list) else ():
        if not isinstance(one, int | float):
            raise TypeError(f"a label is a {type(one).__name__}")
    return np.array(labels)


def _remedy() -> str:
    return f"get the original again from {URL} (md5 {ARCHIVE_MD5}) and replace what is there"
