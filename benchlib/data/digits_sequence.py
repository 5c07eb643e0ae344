"""scikit-learn's digits as sequences: a real task for recurrent networks that needs no download."""

from __future__ import annotations

import numpy as np

from benchlib.data import DataSet, digits
from benchlib.data.kinds import SEQUENCES
from benchlib.data.sequences import FIRST, Sequences

DATA_SET = DataSet(
    "digits as sequences",
    "digits_sequence: scikit-learn's handwritten digits read pixel by pixel, as up to 64 tokens of 17 greys; 1,437 "
    "for training and 360 for testing. It stands in for texts, and says nothing about them.",
    1_437,
    SEQUENCES,
)


require, identity = digits.require, digits.identity


def load(size: int) -> Sequences:
    """Each image row by row as tokens, one of 17 greys each, up to its last pixel that is not empty: 33 to 64 tokens.
    The ``size`` of the vocabulary has no effect: there are but 17 words.
    """
    images = digits.load()
    train, test = ([_tokens(one) for one in split] for split in (images.train_images, images.test_images))
    greys = [f"grey {value}" for value in range(17)]
    return Sequences(train, images.train_labels, test, images.test_labels, greys, images.source)


def _tokens(image: np.ndarray) -> np.ndarray:
    greys = image.ravel()
    return (FIRST + greys[: np.flatnonzero(greys)[-1] + 1]).astype(np.int32)
