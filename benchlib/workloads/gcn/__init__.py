"""A graph convolutional network, which says of each node of a graph which class it is of."""
