"""Many small arrays in one file, as a worker hands them to the parent: an npz archive with one member for each type of
number. A member for each array would cost as much to read as a certificate takes to compare.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Mapping

import numpy as np

INDEX = "index"
"""Member with name, type and shape of each array, in order, as JSON in uint8."""


def write(file: str | Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write ``arrays``, by name, as ``file``."""
    by_type = {}  # type: dict[str, list[np.ndarray]]
    for array in arrays.values():
        by_type.setdefault(str(array.dtype), []).append(array.reshape(-1))
    index = [[name, str(array.dtype), array.shape] for name, array in arrays.items()]
    members = {f"of {name}": np.concatenate(parts) for name, parts in by_type.items()}
    np.savez(file, **{INDEX: np.frombuffer(json.dumps(index).encode(), np.uint8)}, **members)


def read(file: str | Path) -> dict[str, np.ndarray]:
    """What was written as ``file``. A broken file raises whatever it makes numpy and zipfile raise; one whose members
    are not those of its index, a ValueError.
    """
    with open(file, "rb") as opened:
        members = np.load(opened, allow_pickle=False)
        if isinstance(members, np.ndarray):
            raise ValueError("it is one array, and no archive")
        left = {name: members[name] for name in members.files}
    arrays = {}
    for name, kind, shape in json.loads(left.pop(INDEX).tobytes().decode()):
        member, count = left[f"of {kind}"], int(np.prod(shape, dtype=np.int64))
        if len(member) < count or str(member.dtype) != kind:
            raise ValueError(f"{name}: {len(member)} numbers of {member.dtype} are left, of {count} of {kind}")
        arrays[name], left[f"of {kind}"] = member[:count].reshape(shape), member[count:]
    over = [name for name, member in left.items() if len(member)]
    if over:
        raise ValueError(f"more numbers {', '.join(over)} than the arrays have")
    return arrays
