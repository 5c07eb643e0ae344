"""A tagger: a label for each token, from an LSTM in both directions, in PyTorch."""

from torch import nn

INPUT = (24,)
VOCABULARY = 1000
CLASSES = 12
LABELS = (24,)


class LSTMTagger(nn.Module):
    """Embedding, two layers of LSTM, a dense layer for each token."""

    def __init__(self, embedding_dim=48, hidden_dim=64):
        super().__init__()
        self.word_embeddings = nn.Embedding(VOCABULARY, embedding_dim)
        self.lstm1 = nn.LSTM(embedding_dim, hidden_dim, batch_first=True, bidirectional=True)
        self.lstm2 = nn.LSTM(2 * hidden_dim, hidden_dim, batch_first=True)
        self.hidden2tag = nn.Linear(hidden_dim, CLASSES)

    def forward(self, sentence):
        embeds = self.word_embeddings(sentence)
        lstm_out, _ = self.lstm1(embeds)
        lstm_out, _ = self.lstm2(lstm_out)
        return self.hidden2tag(lstm_out)
