"""A graph convolutional network that labels the nodes of small graphs, in PyTorch."""

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

INPUT = {"features": (16, 8), "adjacency": (16, 16)}
CLASSES = 4
LABELS = (16,)


def data(samples, seed):
    """Random graphs, their adjacency with loops and normalised by the roots of the degrees."""
    rng = np.random.default_rng(seed)
    edges = np.triu(rng.random((samples, 16, 16)) < 0.2, 1)
    adjacency = (edges | edges.transpose(0, 2, 1) | np.eye(16, dtype=bool)).astype("float32")
    root = np.sqrt(adjacency.sum(axis=2))
    features = rng.standard_normal((samples, 16, 8), dtype="float32")
    adjacency = adjacency / root[:, :, None] / root[:, None, :]
    return {"features": features, "adjacency": adjacency, "labels": rng.integers(0, CLASSES, (samples, 16))}


class GraphConvolution(nn.Module):
    """The features of a node and of its neighbours, weighted, summed, plus a bias."""

    def __init__(self, in_features, out_features):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.empty(out_features))
        bound = 1 / math.sqrt(out_features)
        nn.init.uniform_(self.weight, -bound, bound)
        nn.init.uniform_(self.bias, -bound, bound)

    def forward(self, x, adj):
        return torch.bmm(adj, x @ self.weight) + self.bias


class GCN(nn.Module):
    """Two graph convolutions with dropout between them."""

    def __init__(self, nhid=32):
        super().__init__()
        self.gc1 = GraphConvolution(8, nhid)
        self.gc2 = GraphConvolution(nhid, CLASSES)

    def forward(self, x, adj):
        x = F.relu(self.gc1(x, adj))
        x = F.dropout(x, 0.5, training=self.training)
        return self.gc2(x, adj)
