"""Graphs whose nodes have features and classes, made into the inputs of a graph convolution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Graph:
    """A data set as its loader gives it. ``train`` and ``test`` are the numbers of the nodes of a split."""

    features: np.ndarray  # (nodes, features) float32
    labels: np.ndarray  # (nodes,) int32, from 0
    edges: np.ndarray  # (edges, 2), undirected; in any order, in one direction or both
    train: np.ndarray
    test: np.ndarray
    source: str
    note: str = ""


def arrays(graph: Graph) -> dict[str, np.ndarray]:
    """The workers' arrays: both splits as one sample each, the whole graph, with the split's labels and -1 elsewhere.

    ``features`` (1, nodes, features) has each row divided by its sum. ``edges`` (1, edges, 2) int32 run from node to
    node, in both directions, and from each node to itself, ordered by target. ``weights`` (1, edges) are 1 over the
    roots of both nodes' numbers of edges, themselves included. Source: Kipf and Welling, "Semi-supervised
    classification with graph convolutional networks", ICLR 2017, section 2.
    """
    nodes = len(graph.features)
    sums = graph.features.sum(axis=1, keepdims=True)
    features = np.divide(graph.features, sums, out=np.zeros_like(graph.features), where=sums > 0)
    loops = np.repeat(np.arange(nodes), 2).reshape(-1, 2)
    both = np.concatenate([graph.edges, graph.edges[:, ::-1], loops])
    edges = np.unique(both[:, ::-1], axis=0)[:, ::-1].astype(np.int32)  # by target, then source
    degrees = np.bincount(edges[:, 1], minlength=nodes)
    weights = (1 / np.sqrt(degrees[edges[:, 0]] * degrees[edges[:, 1]])).astype(np.float32)
    found: dict[str, np.ndarray] = {}
    for split, chosen in (("train", graph.train), ("test", graph.test)):
        labels = np.full(nodes, -1, dtype=np.int32)
        labels[chosen] = graph.labels[chosen]
        sample = {"features": features, "edges": edges, "weights": weights, "labels": labels}
        found |= {f"{split}_{name}": array[None] for name, array in sample.items()}
    return found
