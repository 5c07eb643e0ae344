"""The topics of Python's own help: some English that every Python has, so it needs no download."""

from __future__ import annotations

import hashlib

from benchlib.data import DataSet
from benchlib.data.corpus import Corpus, document
from benchlib.data.kinds import CORPORA

DATA_SET = DataSet(
    "Python's help texts",
    "pydoc: the topics of Python's own help, about 0.46 MB of technical English; a tenth of them is tested. It "
    "stands in for a text corpus, and its accuracies say nothing about one.",
    None,
    CORPORA,
)


def identity() -> str:
    """A hash of the topics, which differ between Python's versions."""
    return hashlib.sha256("\n".join(_topics()).encode()).hexdigest()


def load() -> Corpus:
    """Each topic as a text."""
    return Corpus([document(topic) for topic in _topics()], "pydoc_data.topics")


def _topics() -> list[str]:
    from pydoc_data.topics import topics

    return [topics[name] for name in sorted(topics)]
