"""A graph convolutional network that labels the nodes of small graphs, in MindSpore."""

from mindspore import Parameter, nn, ops
from mindspore.common.initializer import Uniform, initializer


class GraphConv(nn.Cell):
    """The features of a node and of its neighbours, weighted, summed, plus a bias."""

    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.fc = nn.Dense(in_channels, out_channels, has_bias=False)
        self.offset = Parameter(initializer(Uniform(out_channels**-0.5), (out_channels,)), name="offset")

    def construct(self, features, adjacency):
        return ops.bmm(adjacency, self.fc(features)) + self.offset


class NodeClassifier(nn.Cell):
    """Two graph convolutions with dropout between them."""

    def __init__(self, in_channels=8, hidden=32, num_classes=4):
        super().__init__()
        self.conv_in = GraphConv(in_channels, hidden)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(p=0.5)
        self.conv_out = GraphConv(hidden, num_classes)

    def construct(self, features, adjacency):
        hidden = self.relu(self.conv_in(features, adjacency))
        hidden = self.dropout(hidden)
        return self.conv_out(hidden, adjacency)
