"""ResNet-50 v1, as the libraries of Keras and Gluon have it, in our own code."""
