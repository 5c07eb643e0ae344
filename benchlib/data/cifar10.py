"""CIFAR-10, the python archive or its folder: found in the folder that ``BENCHLIB_DATA`` names, or downloaded. A folder
of other batches in its layout is read, too: that is said beside every accuracy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchlib.data import DataSet, archives, downloads, pickles
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
ARCHIVES = (ARCHIVE, *(f"{FOLDER}{end}" for end in KERAS))
"""The original's name, and the names under which versions of Keras keep it."""
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
OTHER_BYTES = (
    "Not the original bytes: no file of this CIFAR-10 has the md5 of the original archive's, so its pixels may differ. "
    "Do not compare these accuracies with published ones to the tenth of a point."
)


def require() -> Path | None:
    """The archive or folder that ``BENCHLIB_DATA`` offers; None if it names no folder. Reads no file."""
    return downloads.find(ARCHIVES + FOLDERS, URL, "digits")


def identity() -> str:
    """A hash of the batches' bytes, the same for the archive and the unpacked files."""
    place = require()
    return "original" if place is None else _identity(place)


def load() -> Images:
    """CIFAR-10 as images (n, 32, 32, 3) of 0 to 255, red, green and blue, and labels 0 to 9."""
    place = require() or downloads.download(URL, f"md5:{ARCHIVE_MD5}", "CIFAR-10", "digits")
    note = "" if _identity(place) == "original" else OTHER_BYTES
    batches = {name: _batch(content, f"{place}/{name}") for name, content in _contents(place)}
    train = [batches[name] for name in BATCHES_MD5 if name != "test_batch"]
    pixels, labels = (np.concatenate(parts) for parts in zip(*train, strict=True))
    return Images(pixels, labels, *batches["test_batch"], source=str(place), note=note)


def _identity(place: Path) -> str:
    """Hash the batches; "original" where they are the published ones, as those of an archive have to be."""
    if not place.is_dir():
        downloads.require_hash(place, "md5", ARCHIVE_MD5, _remedy())
        return "original"
    found = {name: downloads.hash_of(place / name, "md5", _remedy()) for name in BATCHES_MD5}
    other = [name for name, md5 in BATCHES_MD5.items() if found[name] != md5]
    if 0 < len(other) < len(BATCHES_MD5):
        downloads.require_hash(place / other[0], "md5", BATCHES_MD5[other[0]], _remedy())
    return hashlib.sha256("".join(found.values()).encode()).hexdigest() if other else "original"


def _contents(place: Path) -> Iterator[tuple[str, bytes]]:
    """The batches by name; nothing is written."""
    if place.is_dir():
        yield from ((name, (place / name).read_bytes()) for name in BATCHES_MD5)
        return
    names = {f"{FOLDER}/{name}": name for name in BATCHES_MD5}
    yield from ((names[path], content) for path, content in archives.members(place, names.get))


def _batch(content: bytes, where: str) -> tuple[np.ndarray, np.ndarray]:
    """One batch: images (n, 32, 32, 3) and labels (n,)."""
    try:
        batch = pickles.load(content, "bytes")
        pixels, labels = batch[b"data"], np.array(batch[b"labels"])
        sizes = (pixels.dtype, pixels.shape, labels.shape)
        if sizes != (np.uint8, (PER_BATCH, 3072), (PER_BATCH,)) or not np.isin(labels, range(10)).all():
            raise ValueError(f"its data is {pixels.dtype} {pixels.shape} with labels {labels.shape}")
    except Exception as error:  # a damaged pickle may raise an error of any type
        raise BenchlibError(
            f"{where}: expected a pickle with {PER_BATCH} images as 'data', uint8 of 3072 numbers each, and 'labels' 0 "
            f"to 9 ({type(error).__name__}: {error}): it is cut or altered; {_remedy()}"
        ) from error
    return pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1), labels.astype(np.int32)


def _remedy() -> str:
    return f"get the original again from {URL} (md5 {ARCHIVE_MD5}) and replace the present one"
