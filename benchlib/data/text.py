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
    "a text of yours", "text: the user's own text files; a tenth of their documents is tested.", None, CORPORA
)

FILE, FOLDER = "text.txt", "text"


def require() -> list[Path]:
    """The text's files; a BenchlibError if there are none. Reads none."""
    offered = downloads.offered_folder()
    file, folder = (offered or Path()) / FILE, (offered or Path()) / FOLDER
    if offered and os.path.isfile(file):  # which says no where it may not look
        return [file]
    found = [path for path in folder.glob("[!.]*") if path.name.endswith((".txt", ".txt.gz"))] if offered else []
    if not found:
        raise BenchlibError(
            f"{VARIABLE}={offered or ''}: data text is a text of yours: set this variable to a folder with {FILE}, or "
            f"with *.txt files in a folder {FOLDER}; or use data: pydoc, which needs none"
        )
    return sorted(found)


def identity() -> str:
    """A hash of the files' hashes."""
    return hashlib.sha256("".join(downloads.hash_of(path, "sha256") for path in require()).encode()).hexdigest()


def load() -> Corpus:
    """The documents of all files, in the order of their names."""
    paths, texts = require(), []
    for path in paths:
        try:
            text = archives.unpack(path).decode("utf-8-sig")  # some editors begin a file with a mark
            if "\0" in text:  # which English in UTF-16 has in every other byte
                raise ValueError("it has zero bytes")
        except (OSError, EOFError, ValueError, zlib.error) as error:
            raise BenchlibError(f"{path}: no text in UTF-8 can be read from it ({error}): save it as UTF-8") from error
        texts += [document(one) for one in re.split(r"\n\s*\n", text) if one.strip()]
    return Corpus(texts, str(paths[0] if len(paths) == 1 else paths[0].parent))
