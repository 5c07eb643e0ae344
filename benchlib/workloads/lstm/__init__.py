"""A bidirectional recurrent network with two LSTM layers, which reads a text and says which class it is of."""
