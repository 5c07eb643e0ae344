"""Cora, the citation graph, in the form and with the split of Planetoid (Yang, Cohen and Salakhutdinov, ICML 2016).
Its files are found in the folder that ``BENCHLIB_DATA`` names, or downloaded.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from benchlib.data import DataSet, pickles
from benchlib.data.downloads import FileSet
from benchlib.data.graphs import Graph
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

require, identity = FILES.place, FILES.identity


def load() -> Graph:
    """2,708 papers with 1,433 words each (1 or 0) in 7 classes; 140 are trained on, 1,000 tested."""
    paths = {name.removeprefix("ind.cora."): path for name, path in FILES.paths().items()}
    parts = {name: _read(path) for name, path in paths.items() if name != "test.index"}
    features = np.concatenate([parts["allx"].dense(), parts["tx"].dense()])
    labels = np.concatenate([parts["ally"], parts["ty"]]).argmax(axis=1).astype(np.int32)
    edges = np.array([(node, other) for node, others in parts["graph"].items() for other in others if other != node])
    order = np.loadtxt(paths["test.index"], dtype=np.int64)
    places = np.sort(order)  # the rows of the test set come in the order of the index file
    features[order], labels[order] = features[places], labels[places]
    return Graph(features, labels, edges, np.arange(len(parts["y"])), places, str(paths["graph"].parent))


class _Csr:
    """A pickled scipy matrix of compressed rows, whatever scipy is installed."""

    _shape: tuple[int, int]
    data: np.ndarray
    indices: np.ndarray
    indptr: np.ndarray

    def dense(self) -> np.ndarray:
        """Float32, by scipy's names of the parts, which unpickling makes attributes."""
        dense = np.zeros(self._shape, dtype=np.float32)
        dense[np.repeat(np.arange(len(dense)), np.diff(self.indptr)), self.indices] = self.data
        return dense


_ADMITTED = {
    ("scipy.sparse.csr", "csr_matrix"): _Csr,
    ("scipy.sparse._csr", "csr_matrix"): _Csr,
    ("collections", "defaultdict"): defaultdict,
    ("__builtin__", "list"): list,
}


def _read(path: Path) -> Any:
    try:
        return pickles.load(path.read_bytes(), "latin1", _ADMITTED)
    except BenchlibError as error:
        raise BenchlibError(f"{path}: {error}; get it again from {FILES.home}") from None
