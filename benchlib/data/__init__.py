"""The data sets there are, and what a reader has to know about each.

Workers import this module, so it needs the standard library only. The parent turns a data set into files
(``benchlib.data.prepare``); workers map those files and take batches from them (``benchlib.data.batches``), so every
framework sees the same numbers in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchlib.errors import BenchlibError, unknown


@dataclass(frozen=True)
class _DataSet:
    title: str
    note: str
    train_size: int | None  # None: drawn as needed


_DATA_SETS = {
    "cifar10": _DataSet(
        "CIFAR-10",
        "CIFAR-10: 50,000 training and 10,000 test colour photographs of 32x32 pixels in 10 classes (Krizhevsky 2009); "
        "16 and 8 pixels are averages over 2x2 and 4x4 areas; no augmentation.",
        50_000,
    ),
    "digits": _DataSet(
        "digits",
        "digits: 8x8 grey images of handwritten digits that come with scikit-learn, 1,437 for training and 360 for "
        "testing, enlarged by repeating pixels and given three equal channels. A small, easy task: its accuracies say "
        "nothing about CIFAR-10.",
        1_437,
    ),
    "random": _DataSet(
        "random numbers",
        "random: inputs and output gradients drawn from a seeded generator; there is nothing to learn and no accuracy.",
        None,
    ),
}


def names() -> list[str]:
    """The data sets there are."""
    return sorted(_DATA_SETS)


def train_size(name: str) -> int | None:
    """How many training samples data set ``name`` has; None where they are drawn as needed."""
    return _get(name).train_size


def title(name: str) -> str:
    """Data set ``name`` in one or two words, for tables and axes."""
    return _get(name).title


def note(name: str) -> str:
    """What a reader has to know about data set ``name`` as published.

    What is special about the files that were really read is kept with the prepared data:
    ``files.about(folder)["note"]``.
    """
    return _get(name).note


def _get(name: str) -> _DataSet:
    if name not in _DATA_SETS:
        raise BenchlibError(unknown("data set", name, _DATA_SETS))
    return _DATA_SETS[name]
