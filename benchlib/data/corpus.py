"""Texts for BERT: words, a vocabulary of their own, pairs of sentences, and words that are masked."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchlib.data import files
from benchlib.errors import BenchlibError

PADDING, START, UNKNOWN, SEPARATOR, MASK, FIRST = 0, 1, 2, 3, 4, 5
"""Tokens that are no words; words are numbered from ``FIRST``, the most frequent first."""

PASSES = 5
"""Each training text is cut into pairs so many times, with other cuts and other masked words each time."""

SHARE_MASKED = 0.15
TEST_EVERY = 10  # of the documents
Document = list[list[str]]
"""A text's sentences, each a list of words."""


@dataclass(frozen=True)
class Corpus:
    """Texts as their loader gives them."""

    documents: list[Document]
    source: str
    note: str = ""


def document(text: str) -> Document:
    r"""The sentences of a text, lower case; a line that ends ends a sentence. Each Chinese character is a word.

    >>> document("One, two. Three!\n\n春眠")
    [['one', ',', 'two', '.'], ['three', '!'], ['春', '眠']]
    """
    sentences = re.split(r"(?<=[.!?])\s+|(?<=[。\uff01\uff1f])|\n", text.lower())
    found = (re.findall(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+|[^\w\s]", sentence) for sentence in sentences)
    return [words for words in found if words]


def arrays(corpus: Corpus, words: int, length: int, masked: int, samples: int | None) -> dict[str, np.ndarray]:
    """What workers map, for both splits, as int32: ``tokens`` and ``segments`` (n, length), the ``places`` of masked
    words and, as ``labels``, what they were (n, masked; -1 where there are fewer), and whether the second sentence
    ``follows`` the first (n,). As in Devlin et al. (2019), appendix A.1: of the words (those in the vocabulary) 15 %
    are masked, 8 in 10 of them by a token, 1 by another word, 1 not at all; half of the second sentences are from
    elsewhere.
    """
    test = corpus.documents[::TEST_EVERY]
    train = [one for place, one in enumerate(corpus.documents) if place % TEST_EVERY]
    if not any(train) or not any(test):
        raise BenchlibError(
            f"{corpus.source}: {len(corpus.documents)} texts are too few for training and testing: {TEST_EVERY} "
            "are the least, with a word each; empty lines divide texts"
        )
    counts = Counter(word for one in train for sentence in one for word in sentence)
    vocabulary = sorted(counts, key=lambda word: (-counts[word], word))[: words - FIRST]
    numbers = {word: FIRST + place for place, word in enumerate(vocabulary)}
    found = {"vocabulary": files.text(vocabulary)}
    for split, documents, passes in (("train", train, PASSES), ("test", test, 1)):
        rng = np.random.default_rng(passes)
        tokens = [[[numbers.get(word, UNKNOWN) for word in sentence] for sentence in one] for one in documents]
        pairs = [pair for _ in range(passes) for pair in _pairs(tokens, length - 3, rng) if _has_words(pair)]
        if not pairs:
            raise BenchlibError(
                f"{corpus.source}: no {split} text has two words, one of them in the vocabulary, so there are no pairs "
                "of sentences"
            )
        pairs = [pairs[i] for i in rng.permutation(len(pairs))]
        if split == "train":
            if samples is not None and samples > len(pairs):
                raise BenchlibError(
                    f"{corpus.source}: its texts make {len(pairs)} pairs for training at length {length}, but "
                    f"train_samples {samples} are asked for: ask for so many or fewer, or null for all"
                )
            pairs = pairs[:samples]
        rows = [_row(pair, FIRST + len(vocabulary), length, masked, rng) for pair in pairs]
        for name, column in zip(
            ("tokens", "segments", "places", "labels", "follows"), zip(*rows, strict=True), strict=True
        ):
            found[f"{split}_{name}"] = np.array(column, dtype=np.int32)
    return found


Pair = tuple[list[int], list[int], bool]


def _pairs(documents: list[list[list[int]]], most: int, rng: np.random.Generator) -> Iterator[Pair]:
    """Two runs of tokens, ``most`` together, and whether the second follows the first."""
    texts = [np.array([token for sentence in one for token in sentence]) for one in documents]
    lengths = np.array([len(text) for text in texts])
    for number, text in enumerate(texts):
        elsewhere = np.where(np.arange(len(texts)) == number, 0, lengths)
        start = int(rng.integers(max(1, min(most, len(text)) // 2)))
        while start + 2 <= len(text):
            longest = min(most, len(text) - start) // 2  # so that something is left to follow
            first = text[start : start + int(rng.integers(max(1, longest // 2), longest + 1))]
            rest, begin = most - len(first), start + len(first)
            follows = bool(rng.random() < 0.5) or not elsewhere.any()
            if follows:
                second = text[begin : begin + rest]
            else:
                other = texts[rng.choice(len(texts), p=elsewhere / elsewhere.sum())]
                place = int(rng.integers(max(1, len(other) - rest)))
                second = other[place : place + rest]
            yield first.tolist(), second.tolist(), follows
            start += len(first) + (len(second) if follows else 0)


def _has_words(pair: Pair) -> bool:
    return any(token >= FIRST for token in (*pair[0], *pair[1]))


def _row(
    pair: Pair, words: int, length: int, masked: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, int]:
    first, second, follows = pair
    tokens = np.full(length, PADDING)
    segments = np.zeros(length)
    whole = [START, *first, SEPARATOR, *second, SEPARATOR]
    tokens[: len(whole)] = whole
    segments[len(first) + 2 : len(whole)] = 1
    candidates = np.flatnonzero(tokens >= FIRST)  # to guess that a word is unknown is no guess of a word
    count = min(masked, len(candidates), max(1, round(SHARE_MASKED * len(candidates))))
    chosen = np.sort(rng.choice(candidates, size=count, replace=False))
    places, labels = np.zeros(masked), np.full(masked, -1)
    places[: len(chosen)], labels[: len(chosen)] = chosen, tokens[chosen]
    lot = rng.random(len(chosen))
    tokens[chosen[lot < 0.8]] = MASK
    other = chosen[(lot >= 0.8) & (lot < 0.9)]
    tokens[other] = rng.integers(FIRST, words, size=len(other))
    return tokens, segments, places, labels, int(follows)
