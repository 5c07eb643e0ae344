"""A classifier of short texts with a GRU in both directions, in PyTorch."""

import torch
from torch import nn

INPUT = (24,)
VOCABULARY = 1000
CLASSES = 5


class GRUClassifier(nn.Module):
    """Embedding, GRU, the last state of each direction, dropout, a dense layer."""

    def __init__(self, embedding_dim=48, hidden_size=64):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, embedding_dim)
        self.gru = nn.GRU(embedding_dim, hidden_size, batch_first=True, bidirectional=True)
        self.dropout = nn.Dropout(0.3)
        self.fc = nn.Linear(2 * hidden_size, CLASSES)

    def forward(self, tokens):
        _, h_n = self.gru(self.embedding(tokens))
        last = torch.cat([h_n[0], h_n[1]], dim=1)
        return self.fc(self.dropout(last))
