"""Texts for BERT: words, a vocabulary of their own, pairs of sentences, and words that are masked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchlib.data.sequences import vocabulary
from benchlib.errors import BenchlibError
from benchlib.worker import files

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
    """The workers' int32 arrays of both splits. ``tokens`` and ``segments`` are (n, length). ``places`` of the masked
    words, and ``labels``, the words themselves, are (n, masked), with labels of -1 where there are fewer. ``follows``
    (n,) says whether the second sentence follows the first. As in Devlin et al. (2019), appendix A.1, 15 % of the words
    in the vocabulary are masked. Of these, 8 in 10 become a token, 1 another word, and 1 stays. Half of the second
    sentences are from elsewhere.
    """
    test = corpus.documents[::TEST_EVERY]
    train = [one for place, one in enumerate(corpus.documents) if place % TEST_EVERY]
    count = sum(map(bool, corpus.documents))
    if count < TEST_EVERY or not any(train) or not any(test):
        raise BenchlibError(
            f"{corpus.source}: {count} texts with a word in them are too few for training and testing: {TEST_EVERY} "
            "are the least; empty lines divide texts"
        )
    known = vocabulary((sentence for one in train for sentence in one), words - FIRST)
    numbers = {word: FIRST + place for place, word in enumerate(known)}
    found = {"vocabulary": files.text(known)}
    for split, documents, passes in (("train", train, PASSES), ("test", test, 1)):
        rng = np.random.default_rng(passes)
        texts = [
            np.array([numbers.get(word, UNKNOWN) for sentence in one for word in sentence], dtype=np.int32)
            for one in documents
        ]
        pairs = [pair for _ in range(passes) for pair in _pairs(texts, length - 3, rng)]
        pairs = [pair for pair in pairs if any((run >= FIRST).any() for run in pair[:2])]
        wanted = samples if split == "train" else None
        if len(pairs) < (wanted or 1):
            raise BenchlibError(
                f"{corpus.source}: at length {length} its texts make {len(pairs)} pairs of sentences with a known word "
                f"for {split}, and {wanted or 1} are asked for: set train_samples to so many or fewer, or null for all"
            )
        order = rng.permutation(len(pairs))[:wanted]
        rows = _rows([pairs[i] for i in order], FIRST + len(known), length, masked, rng)
        found |= {f"{split}_{name}": array for name, array in rows.items()}
    return found


Pair = tuple[np.ndarray, np.ndarray, bool]
"""Two runs of tokens, int32, and whether the second follows the first."""


def _pairs(texts: list[np.ndarray], most: int, rng: np.random.Generator) -> Iterator[Pair]:
    """Pairs of runs, ``most`` tokens together, cut from one text after the other; in time linear in the tokens."""
    lengths = np.array([len(text) for text in texts])
    ends = np.cumsum(lengths)  # of the texts, were they one behind the other
    for text, end in zip(texts, ends, strict=True):
        elsewhere = int(ends[-1]) - len(text)
        start = int(rng.integers(max(1, min(most, len(text)) // 2)))
        while start + 2 <= len(text):
            longest = min(most, len(text) - start) // 2  # so that something is left to follow
            first = text[start : start + int(rng.integers(max(1, longest // 2), longest + 1))]
            rest, begin = most - len(first), start + len(first)
            follows = bool(rng.random() < 0.5) or not elsewhere
            if follows:
                second = text[begin : begin + rest]
            else:
                token = int(rng.integers(elsewhere))  # each token of the other texts is as likely: long texts are more
                if token >= end - len(text):
                    token += len(text)  # skipped, so that even beside a text that is nearly all there is, one draw does
                other = texts[np.searchsorted(ends, token, side="right")]
                place = int(rng.integers(max(1, len(other) - rest)))
                second = other[place : place + rest]
            yield first, second, follows
            start += len(first) + (len(second) if follows else 0)


def _rows(pairs: list[Pair], words: int, length: int, masked: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """The arrays of a split, a row for each pair; ``words`` is the number of tokens there are."""
    tokens, segments = np.full((2, len(pairs), length), PADDING, dtype=np.int32)
    places, labels = np.zeros((2, len(pairs), masked), dtype=np.int32)
    labels[:] = -1
    for row, (first, second, _) in enumerate(pairs):
        both = np.concatenate([[START], first, [SEPARATOR], second, [SEPARATOR]])
        tokens[row, : len(both)] = both
        segments[row, len(first) + 2 : len(both)] = 1
        candidates = np.flatnonzero(tokens[row] >= FIRST)  # to guess that a word is unknown is no guess of a word
        count = min(masked, len(candidates), max(1, round(SHARE_MASKED * len(candidates))))
        chosen = np.sort(rng.choice(candidates, size=count, replace=False))
        places[row, :count], labels[row, :count] = chosen, tokens[row, chosen]
        lot = rng.random(count)
        tokens[row, chosen[lot < 0.8]] = MASK
        other = chosen[(lot >= 0.8) & (lot < 0.9)]
        tokens[row, other] = rng.integers(FIRST, words, size=len(other))
    follows = np.array([pair[2] for pair in pairs], dtype=np.int32)
    return {"tokens": tokens, "segments": segments, "places": places, "labels": labels, "follows": follows}
