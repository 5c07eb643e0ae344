"""Pickles of others, read without running code of theirs: they may ask for numpy's arrays and admitted types only."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping
from typing import Any

from benchlib.errors import BenchlibError, quote

_ARRAYS = {("numpy", "ndarray"), ("numpy", "dtype"), ("_codecs", "encode")}
_ARRAYS |= {(module, "_reconstruct") for module in ("numpy.core.multiarray", "numpy._core.multiarray")}


class _Unpickler(pickle.Unpickler):
    admitted: Mapping[tuple[str, str], type] = {}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) in _ARRAYS:
            return super().find_class(module, name)
        if (module, name) not in self.admitted:
            raise BenchlibError(f"its pickle asks for {quote(f'{module}.{name}')}: it was refused, not run")
        return self.admitted[module, name]


def load(content: bytes, encoding: str, admitted: Mapping[tuple[str, str], type] | None = None) -> Any:
    """The object in a pickle; a BenchlibError where it asks for anything but arrays and ``admitted`` types."""
    unpickler = _Unpickler(io.BytesIO(content), encoding=encoding)
    unpickler.admitted = admitted or {}
    return unpickler.load()
