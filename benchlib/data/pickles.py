"""Pickles from elsewhere, read without running what they ask for: dictionaries, lists, texts, numbers and arrays of
numbers, nothing else.

What is made by a pickle's own request is made here, of parts that were looked at: numpy's ``__setstate__`` believes
what it is told of a type, up to reading numbers as addresses.
"""

from __future__ import annotations

import io
import math
import pickle
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchlib.errors import SHOWN, BenchlibError, shown

MOST_BYTES = 2**26
"""Of a pickle: the largest that is read, a batch of CIFAR-10, has 31 MB."""

MOST_OPERATIONS = 2**20
"""Of a pickle, each of which may ask for 72 bytes with one: a batch of CIFAR-10 has about 50,000."""

_PLAIN = re.compile(r"[iu][1248]|f[248]")
# fmt: off
_KEPT = (
    pickle.PROTO, pickle.FRAME, pickle.STOP, pickle.MARK, pickle.NONE, pickle.NEWTRUE, pickle.NEWFALSE, pickle.INT,
    pickle.BININT, pickle.BININT1, pickle.BININT2, pickle.LONG, pickle.LONG1, pickle.LONG4, pickle.FLOAT,
    pickle.BINFLOAT, pickle.STRING, pickle.BINSTRING, pickle.SHORT_BINSTRING, pickle.UNICODE, pickle.BINUNICODE,
    pickle.SHORT_BINUNICODE, pickle.BINUNICODE8, pickle.BINBYTES, pickle.SHORT_BINBYTES, pickle.BINBYTES8,
    pickle.EMPTY_LIST, pickle.LIST, pickle.APPEND, pickle.APPENDS, pickle.EMPTY_TUPLE, pickle.TUPLE, pickle.TUPLE1,
    pickle.TUPLE2, pickle.TUPLE3, pickle.EMPTY_DICT, pickle.GET, pickle.BINGET, pickle.LONG_BINGET, pickle.PUT,
    pickle.BINPUT, pickle.LONG_BINPUT, pickle.MEMOIZE, pickle.GLOBAL, pickle.STACK_GLOBAL,
)
# fmt: on
_OPERATIONS = {code[0]: pickle._Unpickler.dispatch[code[0]] for code in _KEPT}

Admitted = Mapping[tuple[str, str], "Callable[..., object] | None"]
"""What a pickle may ask for beside numpy's arrays, by module and name, and what is called for it (None: nothing).
A class has a method ``take``, which looks at the state that the pickle gives it.
"""


def load(file: io.BufferedIOBase, what: str, encoding: str, admitted: Admitted) -> Any:
    """The object in ``file``, a part of ``what``; asking for anything that is not ``admitted`` is a BenchlibError.

    What a damaged file raises is not limited to a few types.
    """
    content = file.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise BenchlibError(f"it has more than {MOST_BYTES:,} bytes, the most that any file of {what} needs")
    return _Unpickler(content, what, encoding, admitted).load()


class _Type:
    """The type of an array's numbers, as a pickle tells it in two parts."""

    def __init__(self, text: str) -> None:
        self.text, self.order = text, "="

    def take(self, state: tuple) -> bool:
        """Is it the state of a plain type, whose byte order it has?"""
        orders = ("<", ">", "=", "|")
        plain = len(state) == 8 and state[2:] == (None, None, None, -1, -1, 0) and _text(state[1]) in orders
        if plain:
            self.order = _text(state[1])
        return plain


class _Unpickler(pickle._Unpickler):
    """The one written in Python: its operations can be chosen, and those that make objects replaced. The other one's
    memo, an array in C, is as long as a pickle says.
    """

    def __init__(self, content: bytes, what: str, encoding: str, admitted: Admitted) -> None:
        super().__init__(io.BytesIO(content), encoding=encoding)
        self._what, self._copied, self._most = what, 0, 3 * len(content)
        arrays = {"ndarray": None, "dtype": self._type}
        named = {("numpy", name): function for name, function in arrays.items()}
        named |= {(module, "_reconstruct"): self._array for module in _MULTIARRAY}
        self._admitted = {**named, ("_codecs", "encode"): self._latin1, **admitted}
        self._may_be_called = {id(one) for one in self._admitted.values() if one is not None}
        self.dispatch = _Counted()

    def find_class(self, module: str, name: str) -> object:
        if (module, name) not in self._admitted:
            asked = f"{module}.{name}"
            raise self._refused(asked if asked.isprintable() and len(asked) <= SHOWN else shown(asked))
        return self._admitted[module, name]

    def call(self, function: object, arguments: object) -> object:
        """What a pickle asks for."""
        if id(function) not in self._may_be_called or type(arguments) is not tuple:
            raise self._refused("a call of what cannot be called")
        return function(*arguments)

    def set_state(self, of: Any, state: Any) -> None:
        """An array gets its numbers, its type a byte order, an object of an admitted class what it holds."""
        if type(of) is np.ndarray:
            self._fill(of, state)
        elif type(of) is _Type:
            if type(state) is not tuple or not of.take(state):
                raise self._refused("a numpy type that is no plain one")
        elif isinstance(of, tuple(one for one in self._admitted.values() if isinstance(one, type))):
            of.take(state)
        else:
            raise self._refused(f"a state of a {type(of).__name__}")

    def _array(self, *_: object) -> np.ndarray:
        return np.empty(0, dtype=np.uint8)

    def _type(self, text: object, *_: object) -> _Type:
        if not _PLAIN.fullmatch(_text(text)):
            raise self._refused(f"the numpy type {_said(text)}")
        return _Type(_text(text))

    def _fill(self, array: np.ndarray, state: Any) -> None:
        try:
            _, shape, kind, by_columns, content = state
        except (TypeError, ValueError):
            raise self._refused("an array with another state than numpy's") from None
        plain = type(shape) is tuple and all(type(n) is int and 0 <= n < 2**31 for n in shape) and type(kind) is _Type
        if not plain or type(content) not in (bytes, str):
            raise self._refused("an array of what are no numbers")
        numbers = np.dtype(kind.text).newbyteorder(kind.order)
        if isinstance(content, str):  # of Python 2
            content = content.encode("latin1")
        self._count(len(content))
        if len(content) != math.prod(shape) * numbers.itemsize:
            raise self._refused(f"an array of shape {shown(shape)} and type {numbers} in {len(content):,} bytes")
        array.__setstate__((1, shape, numbers, bool(by_columns), content))

    def _latin1(self, text: str, encoding: str) -> bytes:
        """How Python 3 writes bytes in the pickle protocol of Python 2."""
        if encoding != "latin1":
            raise self._refused(f"the encoding {_said(encoding)}")
        self._count(len(text))
        return text.encode("latin1")

    def _count(self, copied: int) -> None:
        self._copied += copied
        if self._copied > self._most:
            raise self._refused(f"more than {self._most:,} bytes of {self._most // 3:,}")

    def _refused(self, asked: str) -> BenchlibError:
        return BenchlibError(
            f"its pickle asks for {asked}, which no file of {self._what} needs: it was refused, not run"
        )


_MULTIARRAY = ("numpy.core.multiarray", "numpy._core.multiarray")  # the second is numpy 2's


class _Counted:
    """The operations, up to so many of them."""

    def __init__(self) -> None:
        self._left = MOST_OPERATIONS

    def __getitem__(self, code: int) -> Callable[[_Unpickler], None]:
        self._left -= 1
        if self._left < 0:
            raise pickle.UnpicklingError(f"it has more than {MOST_OPERATIONS:,} operations")
        if code not in _OPERATIONS:
            raise pickle.UnpicklingError(f"it has an operation {bytes([code])!r}, which no such file needs")
        return _OPERATIONS[code]


def _call(self: _Unpickler) -> None:
    arguments = self.stack.pop()
    self.stack[-1] = self.call(self.stack[-1], arguments)


def _set_state(self: _Unpickler) -> None:
    state = self.stack.pop()
    self.set_state(self.stack[-1], state)


def _set_item(self: _Unpickler) -> None:
    items = [self.stack.pop(-2), self.stack.pop()]
    _add(self.stack[-1], items)


def _set_items(self: _Unpickler) -> None:
    items = self.pop_mark()
    _add(self.stack[-1], items)


def _dictionary(self: _Unpickler) -> None:
    items, made = self.pop_mark(), {}
    _add(made, items)
    self.append(made)


def _add(dictionary: object, items: list[Any]) -> None:
    """Keys are texts and numbers: the hash of tuples in tuples can take for ever."""
    if type(dictionary) is not dict or not all(type(key) in (str, bytes, int) for key in items[::2]):
        raise pickle.UnpicklingError("it has a dictionary whose keys are no texts or numbers")
    dictionary.update(zip(items[::2], items[1::2], strict=True))


_OPERATIONS |= {
    pickle.REDUCE[0]: _call,
    pickle.NEWOBJ[0]: _call,
    pickle.BUILD[0]: _set_state,
    pickle.SETITEM[0]: _set_item,
    pickle.SETITEMS[0]: _set_items,
    pickle.DICT[0]: _dictionary,
}


def _text(value: object) -> str:
    """Of a text as Python 2 or 3 wrote it; nothing else has one."""
    if isinstance(value, bytes):
        return value.decode("latin1")
    return value if isinstance(value, str) else ""


def _said(value: object) -> str:
    """A text as it is; of anything else only what it is: tuples in tuples may be without end when written out."""
    return shown(value) if isinstance(value, str | bytes) else f"a {type(value).__name__}"
