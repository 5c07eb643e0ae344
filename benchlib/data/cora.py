"""Cora, the citation graph, in the form and with the split of Planetoid (Yang, Cohen and Salakhutdinov, ICML 2016):
found in the folder that ``BENCHLIB_DATA`` names, or downloaded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchlib.data import DataSet, pickles
from benchlib.data.downloads import FileSet
from benchlib.data.graphs import Graph, check
from benchlib.data.kinds import GRAPHS
from benchlib.errors import BenchlibError

DATA_SET = DataSet(
    "Cora",
    "Cora: one graph of 2,708 papers in 7 classes, with 1,433 words each and 5,278 citations; Planetoid's split "
    "(Yang et al. 2016), of which 140 papers are trained on and 1,000 tested; the 500 for validation are not used.",
    1,
    GRAPHS,
)

FILES = FileSet(
    title="Cora",
    home="https://github.com/kimiyoung/planetoid/raw/af6abf468a772cc055bec88c52e4d6f51b7c37e3/data/",
    folder="cora",
    sha256={
        "ind.cora.x": "23cfa55d91c6f624233f5eb7b6e3f141f1bd2b2ae39608a63cf5d084bb27baab",
        "ind.cora.y": "94465c14eb53e04ca262198dcbb2521ee8af60fb3f3d546cd6ca24a511b0e7d1",
        "ind.cora.tx": "b9afbaa4a400df991f6f02ef677e1e44da55ffc04801fd02f9e673987829226a",
        "ind.cora.ty": "41f5ac76596a1699cc33f53084a2419e92961c42bb75f36fc38e616d348532ad",
        "ind.cora.allx": "9419ba2f26f5c35243db64aba110e0f35a04851609e0dc5433450676ca6b8543",
        "ind.cora.ally": "2b998f5cc7fedc86e7f97ca2498f47a1ffc1462c29e2d578b23bf3f62b6e7d71",
        "ind.cora.graph": "58f13302f39dde8852dad6fe6d15b89b077b6d7f837626bce671ef80344b383d",
        "ind.cora.test.index": "297ce89af2b51a6a194181c7dbe1796c6a1cf9cd9349a88383b1b1e227867875",
    },
    instead="digits_graph",
)

CLASSES = 7

MOST_NUMBERS = 2**26
"""Of a matrix, 256 MB: Cora's has 3.9 million."""

MOST_EDGES = 2**20
"""Cora names 10,858."""


def require() -> None:
    """Raise a BenchlibError if ``BENCHLIB_DATA`` names a folder without Cora. Reads no file."""
    FILES.place()


def identity() -> str:
    """What the graph is."""
    return FILES.identity()


def load() -> Graph:
    """2,708 papers with 1,433 words each (1 or 0) in 7 classes; 140 are trained on, 1,000 tested.

    Raises a BenchlibError that names the file, what was expected and what to do, for one that is missing, cut or
    altered.
    """
    paths = {name.removeprefix("ind.cora."): path for name, path in FILES.paths().items()}
    folder = paths["graph"].parent
    words = [_read(paths[name], _words) for name in ("allx", "tx")]
    classes = [_read(paths[name], _classes) for name in ("ally", "ty")]
    train, edges = np.arange(len(_read(paths["y"], _classes))), _read(paths["graph"], _edges)
    if [len(of) for of in words] != [len(of) for of in classes] or words[0].shape[1] != words[1].shape[1]:
        raise BenchlibError(
            f"{folder}: these are not the files of Cora: allx, ally, tx and ty have the shapes "
            f"{words[0].shape}, {classes[0].shape}, {words[1].shape} and {classes[1].shape}; {_remedy()}"
        )
    features, one_hot = np.concatenate(words), np.concatenate(classes)
    labels = np.where(one_hot.sum(axis=1) == 1, one_hot.argmax(axis=1), -1).astype(np.int32)
    order = _order(paths["test.index"], len(words[1]), len(features))
    places = np.sort(order)  # the rows of the test set come in the order of the index file
    features[order], labels[order] = features[places], labels[places]
    graph = Graph(features, labels, edges, train, places, str(folder))
    check(graph, str(paths["graph"]), CLASSES)
    return graph


class _Csr:
    """A pickled scipy matrix of compressed rows, whatever scipy is installed."""

    def take(self, state: dict[str, Any]) -> None:
        shape, values, columns, starts = (state[name] for name in ("_shape", "data", "indices", "indptr"))
        if type(shape) is not tuple or [type(n) for n in shape] != [int, int] or min(shape) < 0:
            raise ValueError("the shape of its matrix is no two numbers")
        if math.prod(shape) > MOST_NUMBERS:
            raise ValueError(f"its matrix has the shape {shape}, more than {MOST_NUMBERS:,} numbers")
        for name, array, kinds in (("data", values, "iuf"), ("indices", columns, "iu"), ("indptr", starts, "iu")):
            if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in kinds:
                raise ValueError(f"the {name} of its matrix are no row of numbers")
        counts = np.diff(starts.astype(np.int64))
        whole = len(starts) == shape[0] + 1 and starts[0] == 0 and starts[-1] == len(columns) == len(values)
        if not whole or (counts < 0).any() or ((columns < 0) | (columns >= shape[1])).any():
            raise ValueError(f"its matrix of shape {shape} has numbers elsewhere")
        if not np.isfinite(values).all():
            raise ValueError("its matrix has a number that is not finite")
        self.dense = np.zeros(shape, dtype=np.float32)
        self.dense[np.repeat(np.arange(shape[0]), counts), columns] = values


def _dictionary(_factory: None) -> dict[Any, Any]:
    """In place of one that makes what is missing."""
    return {}


_ADMITTED = {
    ("scipy.sparse.csr", "csr_matrix"): _Csr,
    ("scipy.sparse._csr", "csr_matrix"): _Csr,
    ("collections", "defaultdict"): _dictionary,
    ("__builtin__", "list"): None,
}


def _read(path: Path, array: Callable[[Any], np.ndarray]) -> np.ndarray:
    """What a file of Cora holds, as an array."""
    try:
        with path.open("rb") as file:
            return array(pickles.load(file, "Cora", "latin1", _ADMITTED))
    except BenchlibError as error:
        raise BenchlibError(f"{path}: {error}; {_remedy()}") from None
    except Exception as error:  # what a damaged pickle raises is not limited to a few types
        raise BenchlibError(
            f"{path}: it cannot be read as this part of Cora ({type(error).__name__}: {error}); {_remedy()}"
        ) from error


def _words(part: Any) -> np.ndarray:
    """Float32 (papers, words)."""
    if not isinstance(part, _Csr):
        raise TypeError(f"expected a sparse matrix, it holds a {type(part).__name__}")
    return part.dense


def _classes(part: Any) -> np.ndarray:
    """Whole numbers (papers, classes), one of which is 1."""
    if not isinstance(part, np.ndarray) or part.dtype.kind not in "iu" or part.shape[1:] != (CLASSES,):
        raise TypeError(f"expected whole numbers for {CLASSES} classes, it holds {getattr(part, 'shape', 'none')}")
    return part


def _edges(part: Any) -> np.ndarray:
    """Int64 (edges, 2), without those from a node to itself."""
    if not isinstance(part, dict) or not all(isinstance(others, list) for others in part.values()):
        raise TypeError("expected a dictionary of lists")
    if sum(len(others) for others in part.values()) > MOST_EDGES:
        raise ValueError(f"it has more than {MOST_EDGES:,} edges")
    edges = [(node, other) for node, others in part.items() for other in others]
    if not all(type(node) is int for edge in edges for node in edge):
        raise TypeError("the number of a node is no whole number")
    array = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return array[array[:, 0] != array[:, 1]]


def _order(path: Path, count: int, nodes: int) -> np.ndarray:
    """Int64 (count,): the numbers of the nodes that are tested, each once."""
    numbers = path.read_bytes().split()
    if not all(re.fullmatch(rb"[0-9]{1,9}", number) for number in numbers):
        raise BenchlibError(f"{path}: it has something else than the numbers of nodes; {_remedy()}")
    order = np.array([int(number) for number in numbers], dtype=np.int64)
    if len(order) != count or len(np.unique(order)) != count or order.max(initial=0) >= nodes:
        raise BenchlibError(
            f"{path}: expected the numbers of {count} different nodes below {nodes}, it has {len(order)} numbers, of "
            f"which the greatest is {order.max(initial=0)}; {_remedy()}"
        )
    return order


def _remedy() -> str:
    return f"get it again from {FILES.home}"
