"""Pickles from elsewhere, read without running what they ask for: arrays, numbers, bytes and lists, nothing else."""

from __future__ import annotations

import codecs
import io
import pickle
from collections.abc import Mapping
from typing import Any

import numpy as np

from benchlib.errors import BenchlibError


def load(file: io.BufferedIOBase, what: str, encoding: str, admitted: Mapping[tuple[str, str], Any]) -> Any:
    """The object in ``file``, a part of ``what``. ``admitted`` is what it may ask for beside numpy's arrays, by module
    and name; asking for anything else is a BenchlibError. What a damaged file raises is not limited to a few types.
    """
    return _Unpickler(file, what, encoding, {**_arrays(what), **admitted}).load()


class _Unpickler(pickle.Unpickler):
    def __init__(
        self, file: io.BufferedIOBase, what: str, encoding: str, admitted: Mapping[tuple[str, str], Any]
    ) -> None:
        super().__init__(file, encoding=encoding)
        self._what, self._admitted = what, admitted

    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in self._admitted:
            raise BenchlibError(
                f"its pickle asks for {module}.{name}, which no file of {self._what} needs: it was refused, not run"
            )
        return self._admitted[module, name]


def _arrays(what: str) -> dict[tuple[str, str], Any]:
    def latin1(text: str, encoding: str) -> bytes:
        if encoding != "latin1":
            raise BenchlibError(
                f"its pickle asks for the encoding {encoding!r}, which no file of {what} needs: it was refused"
            )
        return codecs.encode(text, "latin1")

    return {
        ("numpy", "ndarray"): np.ndarray,
        ("numpy", "dtype"): np.dtype,
        ("numpy.core.multiarray", "_reconstruct"): np.core.multiarray._reconstruct,
        ("numpy._core.multiarray", "_reconstruct"): np.core.multiarray._reconstruct,  # written by numpy 2
        ("_codecs", "encode"): latin1,  # how Python 3 writes bytes in the pickle protocol of Python 2
    }
