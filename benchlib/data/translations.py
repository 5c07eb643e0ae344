"""Sentences in two languages: words, vocabularies, numbers and a common length; and numbers back to sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from benchlib.data.sequences import pad, vocabulary
from benchlib.worker import files

PADDING, START, UNKNOWN, END, FIRST = 0, 1, 2, 3, 4
"""Tokens that are no words; words are numbered from ``FIRST``, the most frequent first."""


@dataclass(frozen=True)
class Pairs:
    """A data set as its loader gives it: sentences, and their translations in the same places."""

    train: list[tuple[str, str]]
    test: list[tuple[str, str]]
    source: str
    note: str = ""


def words(text: str) -> list[str]:
    """Lower-case words and marks; a part up to an apostrophe is its own word, and a mark inside a word says so.

    >>> words("L'homme a dix-sept chiens.")
    ["l'", 'homme', 'a', 'dix', '@-@', 'sept', 'chiens', '.']
    """
    return re.findall(r"\w+'|\w+|@.@|[^\w\s]", re.sub(r"(?<=\w)([-,.])(?=\w)", r"@\1@", text.lower()))


def sentence(tokens: Iterable[int], vocabulary: Sequence[str]) -> str:
    """The words up to ``END`` as a text again; ``vocabulary`` names them from ``FIRST`` on.

    >>> sentence([4, 5, 2, 6, 3, 4], ["l'", "homme", "."])
    "l'homme <unknown>."
    >>> sentence([4, 5, 4], ["dix", "@-@"])
    'dix-dix'
    """
    found, inside = "", False
    for token in tokens:
        if token == END:
            break
        word = vocabulary[token - FIRST] if token >= FIRST else "<unknown>"
        mark = re.fullmatch("@(.)@", word)
        joined = not found or inside or found.endswith(("'", "(")) or re.fullmatch(r"@.@|[.,;:!?)]", word)
        found += (mark[1] if mark else word) if joined else f" {word}"
        inside = mark is not None
    return found


def arrays(
    pairs: Pairs, source_words: int, target_words: int, length: int, samples: int | None
) -> dict[str, np.ndarray]:
    """The workers' int32 arrays of both splits: ``source`` (n, length) with ``lengths`` (n,), ``target`` and
    ``labels``. ``target`` begins with ``START``; ``labels`` are the word after each of its tokens, -1 where there is
    none. Also the vocabularies, of the training sentences, and the test's ``references``, as text.

    Of the training pairs the first ``samples`` are taken. Sentences are cut to ``length``, their end included.
    """
    train = [(words(source), words(target)) for source, target in pairs.train[:samples]]
    test = [(words(source), words(target)) for source, target in pairs.test]
    sources = vocabulary((source for source, _ in train), source_words - FIRST)
    targets = vocabulary((target for _, target in train), target_words - FIRST)
    found: dict[str, np.ndarray] = {}
    for split, of_split in (("train", train), ("test", test)):
        source, lengths = _pad([source for source, _ in of_split], sources, length)
        labels, label_lengths = _pad([target for _, target in of_split], targets, length)
        target = np.concatenate([np.full((len(labels), 1), START, dtype=np.int32), labels[:, :-1]], axis=1)
        target[target == END] = PADDING
        labels[np.arange(length) >= label_lengths[:, None]] = -1
        found |= {f"{split}_source": source, f"{split}_lengths": lengths}
        found |= {f"{split}_target": target, f"{split}_labels": labels}
    return {
        **found,
        "source_vocabulary": files.text(sources),
        "target_vocabulary": files.text(targets),
        "test_references": files.text(target.lower() for _, target in pairs.test),
    }


def _pad(sentences: list[list[str]], names: list[str], length: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens with ``END`` (n, length), and how many they are."""
    numbers = {word: FIRST + place for place, word in enumerate(names)}
    tokens = [[*(numbers.get(word, UNKNOWN) for word in one[: length - 1]), END] for one in sentences]
    return pad(tokens, length, before=False)
