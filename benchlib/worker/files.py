"""Folders of numpy arrays that the parent writes once and workers map: there whole or not at all, checked when read. A
folder holds ``NAME.npy`` files and ``data.json``, which has the sha256 of each and describes them.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchlib.errors import REMEDIES, BenchlibError

INDEX = "data.json"


def write(folder: Path, arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
    """Write ``arrays``, and ``about`` (JSON) that describes them, as ``folder``, in one rename; an old one stays."""
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
    # The lock ends with its process: the next writer removes the remains of a killed one.
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
            hashes = {name: {"sha256": _sha256(partial / f"{name}.npy")} for name in arrays}
            index = {"about": dict(about), "arrays": hashes}
            (partial / INDEX).write_text(json.dumps(index, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
            os.rename(partial, folder)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def arrays(folder: Path) -> dict[str, np.ndarray]:
    """The arrays of ``folder`` by name, mapped read-only, after their hashes were checked."""
    check(folder)
    mapped = {name: np.lib.format.open_memmap(f"{folder}/{name}.npy", mode="r") for name in _index(folder)["arrays"]}
    return {name: np.asarray(array) for name, array in mapped.items()}  # an array cut from a memmap owns no memory


def check(folder: Path) -> None:
    """Compare every file of ``folder`` with its hash; a BenchlibError names the first that does not fit."""
    for name, expected in _index(folder)["arrays"].items():
        path = Path(folder) / f"{name}.npy"
        if not path.is_file():
            raise BenchlibError(f"{path}: this file of prepared data is missing; {_remedy(folder)}")
        if _sha256(path) != expected:
            said = f"its sha256 is another than {INDEX} says"
            raise BenchlibError(f"{path}: this file of prepared data is cut or altered: {said}; {_remedy(folder)}")


def describe(folder: Path) -> dict[str, Any]:
    """The description of the arrays of ``folder``, by their writer."""
    return _index(folder)["about"]


def text(lines: Iterable[str]) -> np.ndarray:
    """Lines as an array that a folder can hold, uint8; :func:`lines` gives them back."""
    return np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)


def lines(array: np.ndarray) -> list[str]:
    """The lines given to :func:`text`."""
    return array.tobytes().decode().split("\n")


def digest(folder: Path) -> str:
    """One hash of all arrays of ``folder``, their names included: equal digests mean equal data."""
    return hashlib.sha256(json.dumps(_index(folder)["arrays"], sort_keys=True).encode()).hexdigest()[:16]


def pack(file: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write many small arrays as one npz archive, with one member for each type of number, which is read faster."""
    by_type = {}  # type: dict[str, list[np.ndarray]]
    for array in arrays.values():
        by_type.setdefault(str(array.dtype), []).append(array.reshape(-1))
    index = json.dumps([[name, str(array.dtype), array.shape] for name, array in arrays.items()])
    members = {kind: np.concatenate(parts) for kind, parts in by_type.items()}
    np.savez(file, index=np.frombuffer(index.encode(), np.uint8), **members)


def unpack(file: str | Path) -> dict[str, np.ndarray]:
    """The arrays packed as ``file``; a broken one raises the errors of numpy and zipfile."""
    with np.load(file, allow_pickle=False) as archive:
        left, found = {name: archive[name] for name in archive.files}, {}
    for name, kind, shape in json.loads(left.pop("index").tobytes().decode()):
        count = int(np.prod(shape, dtype=np.int64))
        found[name], left[kind] = left[kind][:count].reshape(shape), left[kind][count:]
    return found


def _index(folder: Path) -> dict[str, Any]:
    path = Path(folder) / INDEX
    try:
        index = json.loads(path.read_text(encoding="utf-8"))
        return {"about": index["about"], "arrays": {name: one["sha256"] for name, one in index["arrays"].items()}}
    except FileNotFoundError:
        raise BenchlibError(f"{path}: there is no prepared data here; {_remedy(folder)}") from None
    except OSError as error:  # of rights, or of too many open files: the folder is not to blame
        raise BenchlibError(f"{path}: this list of prepared data cannot be read ({error.strerror})") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BenchlibError(f"{path}: this list of prepared data cannot be read; {_remedy(folder)}") from None


def _remedy(folder: Path) -> str:
    return f"delete the folder {folder} and run again, which makes it again"


def _sha256(path: Path) -> str:
    status = path.stat()
    return _cached_hash(str(path), status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _cached_hash(path: str, size: int, modified_ns: int) -> str:
    """The hash of a file, read again only when size or time of change differ: CIFAR-10 prepared is 0.7 GB."""
    whole = hashlib.sha256()
    with open(path, "rb") as file:
        for chunk in iter(lambda: file.read(2**20), b""):
            whole.update(chunk)
    return whole.hexdigest()
