"""A classifier of short texts with a GRU in both directions, in MindSpore."""

from mindspore import nn, ops


class GRUClassifier(nn.Cell):
    """Embedding, GRU, the last state of each direction, dropout, a dense layer."""

    def __init__(self, vocab_size=1000, embedding_dim=48, hidden_size=64, num_classes=5):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, embedding_dim)
        self.gru = nn.GRU(embedding_dim, hidden_size, num_layers=1, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(p=0.3)
        self.fc = nn.Dense(2 * hidden_size, num_classes)

    def construct(self, tokens):
        embedded = self.embedding(tokens)
        _, h_n = self.gru(embedded)
        last = ops.cat((h_n[0], h_n[1]), axis=1)
        return self.fc(self.dropout(last))
