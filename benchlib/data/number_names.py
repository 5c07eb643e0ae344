"""Names of numbers, English to French: a translation task that needs no download."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np

from benchlib.data import DataSet
from benchlib.data.kinds import TRANSLATIONS
from benchlib.data.translations import Pairs
from benchlib.errors import require_package

DATA_SET = DataSet(
    "names of numbers",
    "number_names: numbers in English and French words, made by num2words; 4,000 for training and 500 for testing, "
    "drawn below a million. It stands in for a translation task, and says nothing about one.",
    4_000,
    TRANSLATIONS,
)

TRAIN, TEST, BELOW = 4_000, 500, 1_000_000


def require() -> None:
    """Raise a BenchlibError if num2words is not there."""
    require_package("num2words", "data", "data 'number_names'")


def identity() -> str:
    """The package that makes the names, with its version."""
    return f"num2words {version('num2words')}"


def load() -> Pairs:
    """So many different numbers below a million, drawn evenly by the number of their digits."""
    from num2words import num2words

    rng = np.random.default_rng(0)
    drawn: dict[int, None] = {}
    while len(drawn) < TRAIN + TEST:
        drawn[int(rng.integers(10 ** rng.integers(1, len(str(BELOW))))) % BELOW] = None
    pairs = [(num2words(number, lang="en"), num2words(number, lang="fr")) for number in drawn]
    return Pairs(pairs[:TRAIN], pairs[TRAIN:], identity())
