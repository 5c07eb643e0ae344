"""Graphs: what a convolution takes, what is refused, and the two data sets."""

import dataclasses
import hashlib
import pickle
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

from benchlib.condition import Condition
from benchlib.data import cora, digits_graph
from benchlib.data.graphs import Graph, arrays
from benchlib.data.prepare import prepare
from benchlib.errors import BenchlibError
from benchlib.metrics import accuracy
from benchlib.worker import files

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "cora"
needs_cora = pytest.mark.skipif(not SHARED.exists(), reason=f"NO REAL CORA: {SHARED} is absent, so it is not read")


def path_of_three(**changes: object) -> Graph:
    """Nodes 0 - 1 - 2; the first is trained on, the last tested."""
    made = {
        "features": np.array([[1.0, 3.0], [0.0, 0.0], [2.0, 0.0]], dtype=np.float32),
        "labels": np.array([0, 1, 1], dtype=np.int32),
        "edges": np.array([[0, 1], [2, 1]]),
        "train": np.array([0]),
        "test": np.array([2]),
        "source": "made up",
    }
    return Graph(**{**made, **changes})


def test_a_graph_becomes_one_sample_with_normalised_edges():
    found = arrays(path_of_three())
    assert found["train_features"].tolist() == [[[0.25, 0.75], [0.0, 0.0], [1.0, 0.0]]], "rows add up to 1, or to 0"
    assert found["train_edges"][0].tolist() == [[0, 0], [1, 0], [0, 1], [1, 1], [2, 1], [1, 2], [2, 2]], "by target"
    assert found["train_edges"].dtype == np.int32
    by_edge = dict(zip(map(tuple, found["train_edges"][0].tolist()), found["train_weights"][0].tolist(), strict=True))
    assert by_edge[0, 0] == pytest.approx(1 / 2)
    assert by_edge[1, 1] == pytest.approx(1 / 3)
    assert by_edge[0, 1] == by_edge[1, 0] == pytest.approx(1 / np.sqrt(6))
    assert found["train_labels"].tolist() == [[0, -1, -1]]
    assert found["test_labels"].tolist() == [[-1, -1, 1]]


def test_an_edge_that_is_there_twice_counts_once():
    once, twice = path_of_three(), path_of_three(edges=np.array([[0, 1], [1, 0], [2, 1], [2, 1]]))
    for name, array in arrays(once).items():
        np.testing.assert_array_equal(arrays(twice)[name], array)


def test_what_has_no_label_does_not_count():
    labels = np.array([[0, -1, 1, 1]])
    assert accuracy(np.array([[0, 5, 1, 0]]), labels) == pytest.approx(2 / 3)


def test_digits_as_a_graph_join_what_is_alike():
    graph = digits_graph.load()
    assert graph.features.shape == (1797, 64)
    assert np.bincount(graph.labels[graph.train]).tolist() == [20] * 10
    assert len(graph.train) + len(graph.test) == 1797
    assert np.mean(graph.labels[graph.edges[:, 0]] == graph.labels[graph.edges[:, 1]]) > 0.9


def test_the_data_settle_what_fits_them(tmp_path):
    condition = Condition(workload="gcn")
    assert condition.hyperparameters["features"] == 64
    assert condition.but(data="cora").hyperparameters["features"] == 1433
    assert "features" not in str(condition.but(data="cora")), "what goes without saying"
    with pytest.raises(BenchlibError, match="features: 65: with data digits_graph it is 64"):
        Condition(workload="gcn", hyperparameters={"features": 65})
    with pytest.raises(BenchlibError, match="batch_size 2 is larger than the 1 training samples"):
        Condition(workload="gcn", batch_size=2)
    prepared = files.arrays(prepare(condition, 0, tmp_path))
    assert prepared["train_features"].shape == (1, 1797, 64)


def test_a_folder_without_cora_is_refused_before_anything_starts(tmp_path, monkeypatch):
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    with pytest.raises(BenchlibError, match=r"none of ind.cora.x, cora/ind.cora.x .*use data: digits_graph"):
        cora.require()


WORDS = np.array([[*map(int, bits)] for bits in ("1010", "0100", "0000", "0011", "1000", "0101", "1110")], np.float32)
TOPICS = [3, 0, 6, 6, 1, 2, 5]
CITED = {0: [1, 4, 4], 1: [0], 2: [2], 3: [6], 4: [0, 0], 5: [], 6: [3]}  # as in Cora: some twice, one by itself
TESTED = [6, 4, 5]  # in the order of the index file


@pytest.fixture
def small_cora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Writes seven nodes in Cora's files, and has their hashes be those expected: 0 and 1 are trained on, 2 and 3 have
    no part in it, 4 to 6 are tested. Takes what a file is to hold instead, by the end of its name; gives the folder.
    """
    monkeypatch.setenv("BENCHLIB_DATA", str(tmp_path))
    one_hot = np.eye(7, dtype=np.int32)[TOPICS]

    def write(**instead: object) -> Path:
        parts = {
            "x": scipy.sparse.csr_matrix(WORDS[:2]),
            "allx": scipy.sparse.csr_matrix(WORDS[:4]),
            "tx": scipy.sparse.csr_matrix(WORDS[TESTED]),
            "y": one_hot[:2],
            "ally": one_hot[:4],
            "ty": one_hot[TESTED],
            "graph": defaultdict(list, CITED),
        } | instead
        contents = {name: pickle.dumps(part, protocol=2) for name, part in parts.items()}  # the latest of Python 2
        contents["test.index"] = "".join(f"{node}\n" for node in TESTED).encode()
        for name, content in contents.items():
            (tmp_path / f"ind.cora.{name}").write_bytes(content)
        expect_hashes(tmp_path, monkeypatch)
        return tmp_path

    return write


def expect_hashes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in cora.FILES.sha256}
    monkeypatch.setattr(cora, "FILES", dataclasses.replace(cora.FILES, sha256=hashes))


def test_cora_s_files_become_a_graph(small_cora):
    folder = small_cora()
    graph = cora.load()
    np.testing.assert_array_equal(graph.features, WORDS)
    assert graph.features.dtype == np.float32
    assert graph.labels.tolist() == TOPICS
    assert graph.train.tolist() == [0, 1]
    assert graph.test.tolist() == [4, 5, 6]
    assert {tuple(sorted(edge)) for edge in graph.edges.tolist()} == {(0, 1), (0, 4), (3, 6)}
    assert graph.source == str(folder)
    assert arrays(graph)["test_labels"].tolist() == [[-1, -1, -1, -1, 1, 2, 5]]


def test_a_sparse_matrix_by_the_name_of_its_class_in_old_scipy_is_read(small_cora, monkeypatch):
    folder = small_cora()
    for name in ("ind.cora.x", "ind.cora.allx", "ind.cora.tx"):
        content = (folder / name).read_bytes()
        assert content.count(b"cscipy.sparse._csr\n") == 1
        (folder / name).write_bytes(content.replace(b"cscipy.sparse._csr\n", b"cscipy.sparse.csr\n"))
    expect_hashes(folder, monkeypatch)
    np.testing.assert_array_equal(cora.load().features, WORDS)


@needs_cora
def test_cora_is_read_as_it_was_published(monkeypatch):
    monkeypatch.setenv("BENCHLIB_DATA", str(SHARED))
    graph = cora.load()
    with np.load(SHARED / "cora.npz") as known:
        np.testing.assert_array_equal(graph.labels, known["y"])
        np.testing.assert_array_equal(graph.train, known["train"])
        np.testing.assert_array_equal(graph.test, known["test"])
        undirected = np.unique(np.sort(graph.edges, axis=1), axis=0)
        np.testing.assert_array_equal(undirected, known["edge"].T)
        rows, columns = np.nonzero(graph.features)
        np.testing.assert_array_equal(columns, known["x_indices"])
        np.testing.assert_array_equal(np.searchsorted(rows, np.arange(2709)), known["x_indptr"])


def test_a_cut_or_missing_file_of_cora_is_named(small_cora):
    cut = small_cora() / "ind.cora.tx"
    cut.write_bytes(cut.read_bytes()[:-1])
    with pytest.raises(BenchlibError, match=r"ind.cora.tx: it is cut or altered: its sha256 is"):
        cora.load()
    cut.unlink()
    with pytest.raises(BenchlibError, match=r"ind.cora.tx: this file cannot be read .*; get this file of Cora from"):
        cora.load()
