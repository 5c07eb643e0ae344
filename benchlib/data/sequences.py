"""Texts and other sequences of tokens with a class each: words, vocabulary, numbers, and a common length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchlib.errors import BenchlibError, quote

PADDING, START, UNKNOWN, FIRST = 0, 1, 2, 3
"""Tokens that are no words; words are numbered from ``FIRST``, the most frequent first, as in Keras's IMDB."""


@dataclass(frozen=True)
class Sequences:
    """Tokens, whatever they were made of. ``vocabulary`` names them, from ``FIRST`` on."""

    train: list[np.ndarray]
    train_labels: np.ndarray
    test: list[np.ndarray]
    test_labels: np.ndarray
    vocabulary: list[str]
    source: str
    note: str = ""


def words(text: str) -> list[str]:
    """Lower-case words of letters, digits and apostrophes; the data set's line breaks go.

    >>> words("It's GOOD.<br />Really: 10/10")
    ["it's", 'good', 'really', '10', '10']
    """
    return re.findall(r"[a-z0-9']+", text.replace("<br />", " ").lower())


def vocabulary(texts: Iterable[Sequence[str]], size: int) -> list[str]:
    """The ``size`` most frequent words; ties by alphabet."""
    counts = Counter(word for text in texts for word in text)
    return sorted(counts, key=lambda word: (-counts[word], word))[:size]


Texts = tuple[list[str], np.ndarray]
"""Texts of a split, and the class of each, int32 from 0."""


def from_texts(train: Texts, test: Texts, size: int, source: str, note: str = "") -> Sequences:
    """The texts as tokens, each after a ``START``; the vocabulary is that of the training texts."""
    split = [[words(text) for text in texts] for texts, _ in (train, test)]
    for text, found in zip([*train[0], *test[0]], [*split[0], *split[1]], strict=True):
        if not found:
            raise BenchlibError(f"{source}: the text {quote(text)} has no word of letters, digits or apostrophes")
    names = vocabulary(split[0], size - FIRST)
    numbers = {word: FIRST + place for place, word in enumerate(names)}
    tokens = [
        [np.array([START, *(numbers.get(word, UNKNOWN) for word in text)], dtype=np.int32) for text in texts]
        for texts in split
    ]
    return Sequences(tokens[0], train[1], tokens[1], test[1], names, source, note)


def pad(sequences: Sequence[Sequence[int]], length: int, before: bool) -> tuple[np.ndarray, np.ndarray]:
    """Tokens (n, length) int32 and how many of each are not padding, (n,) int32.

    A longer sequence loses its beginning if padding comes ``before`` the tokens, as in Keras; else its end.

    >>> pad([np.array([5, 6]), np.array([7, 8, 9, 10])], 3, before=True)[0].tolist()
    [[0, 5, 6], [8, 9, 10]]
    >>> pad([np.array([5, 6]), np.array([7, 8, 9, 10])], 3, before=False)[0].tolist()
    [[5, 6, 0], [7, 8, 9]]
    """
    tokens = np.full((len(sequences), length), PADDING, dtype=np.int32)
    lengths = np.empty(len(sequences), dtype=np.int32)
    for row, sequence in enumerate(sequences):
        kept = sequence[-length:] if before else sequence[:length]
        lengths[row] = len(kept)
        tokens[row, slice(length - len(kept), None) if before else slice(len(kept))] = kept
    return tokens, lengths
