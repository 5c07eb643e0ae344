"""The digits that come with scikit-learn: real images that need no download."""

from __future__ import annotations

import hashlib

import numpy as np

from benchlib.data import DataSet
from benchlib.data.images import Images, balanced_order
from benchlib.data.kinds import IMAGES
from benchlib.errors import BenchlibError, require_package

DATA_SET = DataSet(
    "digits",
    "digits: 8x8 grey images of handwritten digits that come with scikit-learn, 1,437 for training and 360 for "
    "testing, enlarged by repeating pixels where more are asked for, and given three equal channels. A small, easy "
    "task: its accuracies say nothing about CIFAR-10.",
    1_437,
    IMAGES,
)

TEST = 360  # images of the 1,797, in the proportions of the classes; the split is the same for all seeds
SHA256 = "fe61bc84cd6a594d5ed1b937b7d8f8f791d4091d2a9df91fe5d6066156a4db6e"  # of images and labels, as bytes


def require() -> None:
    """Raise a BenchlibError if scikit-learn is not there."""
    require_package("sklearn", "data", "scikit-learn's digits")


def identity() -> str:
    """The hash of the images, which :func:`load` makes sure of."""
    return SHA256


def load() -> Images:
    """The digits as images (n, 8, 8, 1) of 0 to 16; a BenchlibError where scikit-learn has other ones."""
    import sklearn.datasets

    digits = sklearn.datasets.load_digits()
    images, labels = digits.images.astype(np.uint8)[..., None], digits.target.astype(np.int32)
    found = hashlib.sha256(images.tobytes() + labels.astype("<i4").tobytes()).hexdigest()
    if found != SHA256:
        raise BenchlibError(
            f"digits: scikit-learn {sklearn.__version__} has other images than expected "
            f"(sha256 {found}, expected {SHA256}): install the scikit-learn of requirements.lock again"
        )
    order = balanced_order(labels, seed=0)
    test, train = order[:TEST], order[TEST:]
    return Images(images[train], labels[train], images[test], labels[test], f"scikit-learn {sklearn.__version__}", "")
