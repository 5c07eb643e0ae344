"""Texts and other sequences of tokens with a class each: words, vocabulary, numbers, and a common length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchlib.errors import BenchlibError

PADDING, START, UNKNOWN, FIRST = 0, 1, 2, 3
"""Tokens that are no words; words are numbered from ``FIRST``, the most frequent first, as in Keras's IMDB."""


@dataclass(frozen=True)
class Texts:
    """A data set of texts as its loader gives it; labels int32 from 0."""

    train_texts: list[str]
    train_labels: np.ndarray
    test_texts: list[str]
    test_labels: np.ndarray
    source: str
    note: str = ""
    files: Sequence[str] = ()  # where each text is, those for training first; empty where they lie in no files


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
    """The most frequent words, so many that with the tokens that are no words there are ``size``; ties by alphabet."""
    counts = Counter(word for text in texts for word in text)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return ranked[: size - FIRST]


def from_texts(texts: Texts, size: int) -> Sequences:
    """The texts as tokens, each after a ``START``; the vocabulary is that of the training texts."""
    train, test = ([words(text) for text in split] for split in (texts.train_texts, texts.test_texts))
    for place, text in enumerate([*train, *test]):
        if not text:
            raise BenchlibError(f"{_where(texts, place)} has no word of letters, digits or apostrophes: get it again")
    names = vocabulary(train, size)
    numbers = {word: FIRST + place for place, word in enumerate(names)}

    def tokens(text: Sequence[str]) -> np.ndarray:
        return np.array([START, *(numbers.get(word, UNKNOWN) for word in text)], dtype=np.int32)

    return Sequences(
        [tokens(text) for text in train],
        texts.train_labels,
        [tokens(text) for text in test],
        texts.test_labels,
        names,
        texts.source,
        texts.note,
    )


def _where(texts: Texts, place: int) -> str:
    if texts.files:
        return f"{texts.files[place]}: this text"
    split, first = ("training", 0) if place < len(texts.train_texts) else ("test", len(texts.train_texts))
    return f"{texts.source}: {split} text {place - first}"


def padded(sequences: Sequence[np.ndarray], length: int, before: bool) -> tuple[np.ndarray, np.ndarray]:
    """Tokens (n, length) int32 and how many of each are not padding, (n,) int32.

    What is too long loses its beginning if there is padding ``before`` the tokens, as in Keras; else its end.

    >>> padded([np.array([5, 6]), np.array([7, 8, 9, 10])], 3, before=True)[0].tolist()
    [[0, 5, 6], [8, 9, 10]]
    >>> padded([np.array([5, 6]), np.array([7, 8, 9, 10])], 3, before=False)[0].tolist()
    [[5, 6, 0], [7, 8, 9]]
    """
    tokens = np.full((len(sequences), length), PADDING, dtype=np.int32)
    lengths = np.empty(len(sequences), dtype=np.int32)
    for row, sequence in enumerate(sequences):
        if not len(sequence):
            raise BenchlibError(f"sequence {row} is empty: there is nothing to read in it")
        kept = sequence[-length:] if before else sequence[:length]
        lengths[row] = len(kept)
        tokens[row, slice(length - len(kept), None) if before else slice(len(kept))] = kept
    return tokens, lengths
