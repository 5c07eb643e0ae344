"""Turns the CIFAR-10 images that lie beside the repository into the original's layout, for the product's own loader.

The images are JPEG copies: the pixels are not the original's. As a program: ``python tests/cifar10_from_shared.py
TARGET`` writes all 60,000 images to TARGET/cifar-10-batches-py; then ``BENCHLIB_DATA=TARGET``.
"""

import argparse
import io
import itertools
import pickle
import struct
from pathlib import Path

import numpy as np

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "cifar10"


def write_all(target: Path) -> Path:
    """Write all 60,000 images; decoding them takes 10 to 40 s."""
    with np.load(SHARED / "cifar10_jpeg.npz") as arrays:
        return write(
            target,
            _decode(arrays["train_jpeg"], arrays["train_offset"]),
            arrays["train_label"],
            _decode(arrays["test_jpeg"], arrays["test_offset"]),
            arrays["test_label"],
        )


def write(target: Path, train: np.ndarray, train_labels: np.ndarray, test: np.ndarray, test_labels: np.ndarray) -> Path:
    """Write images (n, 32, 32, 3) and labels (n,) as five batches and a test batch; returns the batches' folder."""
    folder = Path(target) / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for number, (images, labels) in enumerate(zip(np.split(train, 5), np.split(train_labels, 5), strict=True), start=1):
        (folder / f"data_batch_{number}").write_bytes(batch(images, labels, f"training batch {number} of 5"))
    (folder / "test_batch").write_bytes(batch(test, test_labels, "testing batch 1 of 1"))
    return folder


def batch(images: np.ndarray, labels: np.ndarray, label: str) -> bytes:
    """One batch as Python 2 pickled the original: a dictionary with byte strings for keys."""
    file = io.BytesIO()
    _Python2Pickler(file, protocol=2).dump(
        {
            b"data": np.ascontiguousarray(images.transpose(0, 3, 1, 2)).reshape(len(images), -1),
            b"labels": [int(label) for label in labels],
            b"batch_label": label.encode(),
            b"filenames": [b"%06d.png" % number for number in range(len(images))],
        }
    )
    return file.getvalue()


class _Python2Pickler(pickle._Pickler):
    """Writes bytes as Python 2 wrote its strings."""

    def save_string(self, text: bytes) -> None:
        self.write(b"U" + bytes([len(text)]) + text if len(text) < 256 else b"T" + struct.pack("<i", len(text)) + text)
        self.memoize(text)

    dispatch = pickle._Pickler.dispatch | {bytes: save_string}


def _decode(jpeg: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    from PIL import Image

    images = np.empty((len(offsets) - 1, 32, 32, 3), dtype=np.uint8)
    for number, (start, end) in enumerate(itertools.pairwise(offsets)):
        images[number] = np.asarray(Image.open(io.BytesIO(jpeg[start:end].tobytes())).convert("RGB"))
    return images


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("target", type=Path, help="folder to write cifar-10-batches-py to")
    print(write_all(parser.parse_args().target))
