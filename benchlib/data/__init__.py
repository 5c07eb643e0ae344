"""The data sets there are, and what a reader has to know about each.

The parent turns a data set into files (``benchlib.data.prepare``); workers map those files and take batches from them
(``benchlib.worker.batches``), so every framework sees the same numbers in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from benchlib.errors import BenchlibError, unknown


class Chosen(Protocol):
    """What a condition has chosen that its data depend on; conditions are a floor above, and ask here what there is."""

    workload: str
    data: str
    hyperparameters: Mapping[str, Any]
    batch_size: int
    train_samples: int | None


@dataclass(frozen=True)
class _DataSet:
    title: str
    note: str
    train_size: int | None  # None: drawn as needed


_DATA_SETS = {
    "cifar10": _DataSet(
        "CIFAR-10",
        "CIFAR-10: 50,000 training and 10,000 test colour photographs of 32x32 pixels in 10 classes (Krizhevsky 2009); "
        "16 and 8 pixels are averages over 2x2 and 4x4 areas, larger images repeat each pixel; no augmentation.",
        50_000,
    ),
    "cora": _DataSet(
        "Cora",
        "Cora: one graph of 2,708 papers in 7 classes, with 1,433 words each and 5,278 citations; Planetoid's split "
        "(Yang et al. 2016), of which 140 papers are trained on and 1,000 tested; the 500 for validation are not used.",
        1,
    ),
    "imdb": _DataSet(
        "IMDB",
        "IMDB: 25,000 film reviews for training and 25,000 for testing, half of them positive (Maas et al. 2011); "
        "words are lower-case runs of letters, digits and apostrophes, the vocabulary is that of the training reviews.",
        25_000,
    ),
    "digits_sequence": _DataSet(
        "digits as sequences",
        "digits_sequence: scikit-learn's handwritten digits read pixel by pixel, as up to 64 tokens of 17 greys; 1,437 "
        "for training and 360 for testing. It stands in for texts, and says nothing about them.",
        1_437,
    ),
    "digits_graph": _DataSet(
        "digits as a graph",
        "digits_graph: scikit-learn's 1,797 handwritten digits as nodes, joined to the 6 nearest of them by their 64 "
        "pixels; 20 of each class are trained on, the rest is tested. It stands in for Cora, and says nothing of it.",
        1,
    ),
    "multi30k": _DataSet(
        "Multi30k",
        "Multi30k: 29,000 descriptions of pictures in English and French for training and 1,000 for testing "
        "(test_2016_flickr), task 1 (Elliott et al. 2016, 2017); lower case, words outside the vocabulary are unknown.",
        29_000,
    ),
    "number_names": _DataSet(
        "names of numbers",
        "number_names: numbers in English and French words, made by num2words; 4,000 for training and 500 for testing, "
        "drawn below a million. It stands in for a translation task, and says nothing about one.",
        4_000,
    ),
    "pydoc": _DataSet(
        "Python's help texts",
        "pydoc: the topics of Python's own help, about 0.46 MB of technical English; a tenth of them is tested. It "
        "stands in for a text corpus, and its accuracies say nothing about one.",
        None,
    ),
    "text": _DataSet(
        "a text of yours",
        "text: the user's own text files; a tenth of their documents is tested.",
        None,
    ),
    "digits": _DataSet(
        "digits",
        "digits: 8x8 grey images of handwritten digits that come with scikit-learn, 1,437 for training and 360 for "
        "testing, enlarged by repeating pixels where more are asked for, and given three equal channels. A small, easy "
        "task: its accuracies say nothing about CIFAR-10.",
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
