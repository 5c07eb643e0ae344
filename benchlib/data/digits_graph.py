"""A graph over scikit-learn's digits: each is joined to those nearest to it. A real task that needs no download."""

from __future__ import annotations

import numpy as np

from benchlib.data import DataSet, digits
from benchlib.data.graphs import Graph
from benchlib.data.images import balanced_order
from benchlib.data.kinds import GRAPHS

DATA_SET = DataSet(
    "digits as a graph",
    "digits_graph: scikit-learn's 1,797 handwritten digits as nodes, joined to the 6 nearest of them by their 64 "
    "pixels; 20 of each class are trained on, the rest is tested. It stands in for Cora, and says nothing of it.",
    1,
    GRAPHS,
)

NEIGHBOURS = 6
TRAIN = 20  # nodes of each class, as Planetoid's split of Cora has


require, identity = digits.require, digits.identity


def load() -> Graph:
    """1,797 images as nodes, with their 64 pixels; an edge to each of the nearest 6 by Euclidean distance."""
    from sklearn.neighbors import NearestNeighbors

    images = digits.load()
    pixels = np.concatenate([images.train_images, images.test_images]).reshape(-1, 64).astype(np.float32)
    labels = np.concatenate([images.train_labels, images.test_labels])
    _, nearest = NearestNeighbors(n_neighbors=NEIGHBOURS + 1, algorithm="brute").fit(pixels).kneighbors(pixels)
    edges = np.stack([np.repeat(np.arange(len(pixels)), NEIGHBOURS + 1), nearest.ravel()], axis=1)
    edges = edges[edges[:, 0] != edges[:, 1]]
    order = balanced_order(labels, seed=0)
    train = np.concatenate([[node for node in order if labels[node] == label][:TRAIN] for label in range(10)])
    test = np.setdiff1d(np.arange(len(labels)), train)
    return Graph(pixels, labels, edges, train, test, images.source)
