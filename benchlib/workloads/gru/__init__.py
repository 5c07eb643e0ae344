"""A recurrent network with one GRU layer, which reads a sequence of words and says which class it is of."""
