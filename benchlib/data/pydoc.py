"""The topics of Python's own help: some English that every Python has, so it needs no download."""

from __future__ import annotations

import hashlib

from benchlib.data.corpus import Corpus, document


def identity() -> str:
    """A hash of the topics, which differ between Python's versions."""
    return hashlib.sha256("\n".join(_topics()).encode()).hexdigest()


def load() -> Corpus:
    """Each topic as a text."""
    return Corpus([document(topic) for topic in _topics()], "pydoc_data.topics")


def _topics() -> list[str]:
    from pydoc_data.topics import topics

    return [topics[name] for name in sorted(topics)]
