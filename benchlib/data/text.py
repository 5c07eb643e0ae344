"""A text of the user's own, for BERT: ``text.txt``, or all ``*.txt`` and ``*.txt.gz`` of a folder ``text``, in the
folder that ``BENCHLIB_DATA`` names. Empty lines divide documents.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from pathlib import Path

from benchlib.data import DataSet, archives, downloads
from benchlib.data.corpus import Corpus, document
from benchlib.data.downloads import VARIABLE
from benchlib.data.kinds import CORPORA
from benchlib.errors import BenchlibError

DATA_SET = DataSet(
    "a text of yours",
    "text: the user's own text files; a tenth of their documents is tested.",
    None,
    CORPORA,
)

FILE, FOLDER = "text.txt", "text"


def require() -> None:
    """Raise a BenchlibError if there is no text. Reads none."""
    _files()


def identity() -> str:
    """A hash of the files' hashes."""
    return hashlib.sha256("".join(downloads.hash_of(path, "sha256") for path in _files()).encode()).hexdigest()


def load() -> Corpus:
    """The documents of all files, in the order of their names; one that is no text in UTF-8 is a BenchlibError."""
    paths, texts, left = _files(), [], archives.MOST_BYTES
    for path in paths:
        content = _read(path, left)
        left -= len(content)
        texts += [text for text in re.split(r"\n\s*\n", _decoded(path, content)) if text.strip()]
    return Corpus([document(text) for text in texts], str(paths[0] if len(paths) == 1 else paths[0].parent))


def _files() -> list[Path]:
    offered = downloads.offered()
    if offered is None:
        raise BenchlibError(
            f"data text is a text of yours: let {VARIABLE} name a folder with a file {FILE} or a folder {FOLDER} of "
            "*.txt files, or use data: pydoc, which needs none"
        )
    file, folder = offered / FILE, offered / FOLDER
    if os.path.isfile(file):
        return [file]
    found = sorted([*folder.glob("[!.]*.txt"), *folder.glob("[!.]*.txt.gz")]) if os.path.isdir(folder) else []
    if not found:
        raise BenchlibError(
            f"{VARIABLE}={offered}: there is neither {FILE} nor a folder {FOLDER} with *.txt files in it, one of which "
            "was expected; put one there, or use data: pydoc, which needs none"
        )
    return found


def _read(path: Path, most: int) -> bytes:
    """No more bytes than ``most``, unpacked: a text is held in memory, as words."""
    downloads.status(path)
    try:
        return archives.unpacked(path, most)
    except (OSError, EOFError, zlib.error) as error:
        raise BenchlibError(f"{path}: no text in UTF-8 can be read from it ({error}): save it as UTF-8") from error


def _decoded(path: Path, content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")  # some editors begin a file with a mark
    except UnicodeDecodeError as error:
        raise BenchlibError(f"{path}: no text in UTF-8 can be read from it ({error}): save it as UTF-8") from error
    if "\0" in text:  # which English in UTF-16 has in every other byte
        raise BenchlibError(f"{path}: no text in UTF-8 can be read from it (it has zero bytes): save it as UTF-8")
    return text
