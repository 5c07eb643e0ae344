"""A tagger: a label for each token, from an LSTM in both directions, in Keras."""

import keras
from keras import layers


class Tagger(keras.Model):
    """Embedding, two layers of LSTM, a dense layer for each token."""

    def __init__(self, vocabulary=1000, embedding_size=48, units=64, tags=12):
        super().__init__()
        self.embed = layers.Embedding(vocabulary, embedding_size)
        self.encoder = layers.Bidirectional(layers.LSTM(units, return_sequences=True))
        self.decoder = layers.LSTM(units, return_sequences=True)
        self.classifier = layers.Dense(tags)

    def call(self, tokens):
        x = self.embed(tokens)
        x = self.encoder(x)
        x = self.decoder(x)
        return self.classifier(x)
