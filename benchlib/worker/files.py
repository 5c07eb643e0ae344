"""Folders of numpy arrays that the parent writes once and workers map: there whole or not at all, checked when read.

A folder holds ``NAME.npy`` files and ``data.json``, which has the sha256 of each and says what they are.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchlib.errors import REMEDIES, BenchlibError, shown

INDEX = "data.json"

_HASH = re.compile("[0-9a-f]{64}")

LONGEST_NAME = 200
"""Characters, so that ``NAME.npy`` is a file's name anywhere."""


def write(folder: Path, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
    """Write ``arrays`` and what they are ``about`` (JSON) as ``folder``, in one rename; one that is there stays.

    Where it cannot be written (a full disk), a BenchlibError says so, and nothing of it is left.
    """
    folder = Path(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _write(folder, arrays, about)
    except OSError as error:
        remedy = REMEDIES.get(error.errno, "mend that")
        raise BenchlibError(
            f"{folder}: this prepared data could not be written: {error.strerror or error}; {remedy}, and run again"
        ) from error


def _write(folder: Path, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
    partial = folder.with_name(f".partial-{folder.name}")
    # The lock ends with its process, so a killed writer leaves nothing but a partial folder, which the next one
    # removes.
    with open(folder.with_name(".lock"), "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError as error:
            raise BenchlibError(
                f"{folder.parent}: cannot be locked ({error.strerror}): choose results on a file system with file locks"
            ) from None
        if folder.exists():
            return
        shutil.rmtree(partial, ignore_errors=True)
        try:
            partial.mkdir()
            for name, array in arrays.items():
                np.save(partial / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)
            index = {
                "about": dict(about),
                "arrays": {
                    name: {
                        "sha256": _sha256(partial / f"{name}.npy"),
                        "shape": list(array.shape),
                        "dtype": str(array.dtype),
                    }
                    for name, array in arrays.items()
                },
            }
            (partial / INDEX).write_text(json.dumps(index, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            os.rename(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def arrays(folder: Path) -> dict[str, np.ndarray]:
    """The arrays of ``folder`` by name, mapped read-only, after their hashes were checked.

    A file that is missing, cut or altered is a BenchlibError that names it.
    """
    check(folder)
    return {name: _mapped(Path(folder) / f"{name}.npy") for name in _index(folder)["arrays"]}


def check(folder: Path) -> None:
    """Compare every file of ``folder`` with its hash; a BenchlibError names the first that does not fit."""
    for name, expected in _index(folder)["arrays"].items():
        path = Path(folder) / f"{name}.npy"
        if not path.is_file():
            raise BenchlibError(f"{path}: this file of prepared data is missing; {_remedy(folder)}")
        found = _sha256(path)
        if found != expected["sha256"]:
            raise BenchlibError(
                f"{path}: this file of prepared data is cut or altered: its sha256 is {found}, "
                f"expected {expected['sha256']}; {_remedy(folder)}"
            )


def about(folder: Path) -> dict[str, Any]:
    """What the arrays of ``folder`` are, as their writer said."""
    return _index(folder)["about"]


def text(lines: Iterable[str]) -> np.ndarray:
    """Lines as an array that a folder can hold, uint8; :func:`lines` gives them back."""
    return np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)


def lines(array: np.ndarray) -> list[str]:
    """What :func:`text` was given."""
    return array.tobytes().decode().split("\n")


def digest(folder: Path) -> str:
    """One hash of all arrays of ``folder``, their names included: equal digests mean equal data."""
    hashes = {name: entry["sha256"] for name, entry in _index(folder)["arrays"].items()}
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()[:16]


def _index(folder: Path) -> dict[str, Any]:
    path = Path(folder) / INDEX
    try:
        if path.exists() and not path.is_file():  # a pipe or a device may be read for ever
            raise ValueError
        index = json.loads(path.read_text(encoding="utf-8"))
        about, arrays = index["about"], index["arrays"]
        if not isinstance(about, dict) or not all(_HASH.fullmatch(entry["sha256"]) for entry in arrays.values()):
            raise ValueError
    except FileNotFoundError:
        raise BenchlibError(f"{path}: there is no prepared data here; {_remedy(folder)}") from None
    except OSError as error:  # of rights, or of too many open files: the folder is not to blame
        raise BenchlibError(f"{path}: this list of prepared data cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise BenchlibError(f"{path}: this list of prepared data cannot be read; {_remedy(folder)}") from None
    for name in arrays:
        if Path(name).name != name or not name.isprintable() or len(name) > LONGEST_NAME:
            raise BenchlibError(
                f"{path}: it names an array {shown(name)}, which is no file in this folder; {_remedy(folder)}"
            )
    return {"about": about, "arrays": arrays}


def _mapped(path: Path) -> np.ndarray:
    """An array, as a plain one: what is picked from a np.memmap does not own its memory."""
    try:
        return np.asarray(np.lib.format.open_memmap(path, mode="r"))
    except Exception as error:  # what a damaged file raises is not limited to a few types
        raise BenchlibError(
            f"{path}: this file of prepared data is no array of numbers ({error}); {_remedy(path.parent)}"
        ) from error


def _remedy(folder: Path) -> str:
    return f"delete the folder {folder} and run again: it is made anew"


def _sha256(path: Path) -> str:
    status = path.stat()
    return _hashed(str(path), status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _hashed(path: str, size: int, modified_ns: int) -> str:
    """The hash of a file, read again only when size or time of change differ: CIFAR-10 prepared is 0.7 GB."""
    whole = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(2**20), b""):
            whole.update(chunk)
    return whole.hexdigest()
